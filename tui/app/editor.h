/* editor.h - the user's editor on the input line. */
#ifndef ESP_EDITOR_H
#define ESP_EDITOR_H

#include <stddef.h>

/* Runs the editor that VISUAL or EDITOR names, or vi, on a file that holds `line`, and waits
 * for it. `*text` becomes what the file holds then, without the newline at its end; the caller
 * frees it. ESP_E_FILE with a sentence: it could not be run, it failed, or what it left is no
 * text or too long; then *text is NULL. */
int esp_editor_run(const char *line, char **text, char *err, size_t errlen);

#endif
