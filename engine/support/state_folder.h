/* state_folder.h - files that keep learned values between runs, in $XDG_STATE_HOME/espalier.
 *
 * (~/.local/state/espalier if that variable is not set, as the XDG base directory specification
 * says.) A file is replaced as a whole or not at all: it is written under another name and
 * renamed. The contents are untrusted; the caller that reads a file checks them.
 */
#ifndef ESP_STATE_FOLDER_H
#define ESP_STATE_FOLDER_H

#include "engine/espalier.h"

/* Writes the plain name of the file for values of a kind ("sequoia") learned about `key`; ""
 * for an empty key. */
void esp_state_name(char *name, size_t size, const char *kind, const char *key);

/* Reads file `name`, a plain name, into `text` and adds a NUL. Returns its length, or
 * ESP_E_FILE if there is no such regular file or it does not fit into `size` bytes. */
int esp_state_read(const char *name, char *text, size_t size);

/* Replaces file `name`, making the folder if it is not there. Returns 0 or ESP_E_FILE. */
int esp_state_write(const char *name, const char *text);

#endif
