/* line_file.h - reads a file that a user wrote, line by line: settings, themes. */
#ifndef ESP_LINE_FILE_H
#define ESP_LINE_FILE_H

#include <stddef.h>

/* Handles a line, which it may change. Returns 0, or a negative status with a sentence. */
typedef int esp_take_line(void *user, char *line, int number, char *err, size_t errlen);

/* Hands every line to `take`, until one fails: blanks at both ends taken off, numbered from 1,
 * empty ones and comments ("# ...") left out. Returns what `take` does; or ESP_E_FILE or
 * ESP_E_FORMAT with a sentence that names the file, and the line where one is too long or holds
 * a NUL. */
int esp_line_file_read(const char *path, esp_take_line *take, void *user, char *err,
                       size_t errlen);

#endif
