/* state_folder.h - files for learned values, in $XDG_STATE_HOME/espalier.
 *
 * (Without that variable: ~/.local/state/espalier, by the XDG base directory specification.) A
 * file is never half-written: it is written under another name, then renamed.
 * Contents are untrusted; the caller checks what it reads.
 */
#ifndef ESP_STATE_FOLDER_H
#define ESP_STATE_FOLDER_H

#include "engine/espalier.h"

/* Writes the file name for values of a kind ("sequoia") learned for `key`; "" for an empty
 * key. */
void esp_state_name(char *name, size_t size, const char *kind, const char *key);

/* Reads file `name`, a plain name, into `text` and adds a NUL. Returns its length, or
 * ESP_E_FILE if there is no such regular file or it does not fit into `size` bytes. */
int esp_state_read(const char *name, char *text, size_t size);

/* Replaces file `name`; creates the folder if needed. Returns 0 or ESP_E_FILE. */
int esp_state_write(const char *name, const char *text);

#endif
