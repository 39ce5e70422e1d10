/* state_folder.h - what the program learns between runs: $XDG_STATE_HOME/espalier.
 *
 * (~/.local/state/espalier if that variable is not set, as the XDG base directory specification
 * says.) A file is replaced as a whole or not at all: it is written beside its name and
 * renamed. What is read may be anything; its reader checks it.
 */
#ifndef ESP_STATE_FOLDER_H
#define ESP_STATE_FOLDER_H

#include "espalier.h"

/* Reads file `name`, a plain name, into `text` and adds a NUL. Returns its length, or
 * ESP_E_FILE if there is no such regular file or it does not fit into `size` bytes. */
int esp_state_read(const char *name, char *text, size_t size);

/* Replaces file `name`, making the folder if it is not there. Returns 0 or ESP_E_FILE. */
int esp_state_write(const char *name, const char *text);

#endif
