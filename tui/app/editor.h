/* editor.h - edits the input line in the user's editor. */
#ifndef ESP_EDITOR_H
#define ESP_EDITOR_H

#include <stddef.h>

/* Runs $VISUAL, $EDITOR or vi on a file with `line` and waits until the editor ends. Sets *text
 * to the edited text without the last newline; the caller frees it. Returns 0, or ESP_E_FILE
 * with a message if the editor cannot run or fails, or if the file is not text or is too long.
 * After an error *text is NULL. */
int esp_editor_run(const char *line, char **text, char *err, size_t errlen);

#endif
