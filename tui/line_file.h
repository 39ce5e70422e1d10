/* line_file.h - reads a file that somebody wrote by hand, line by line: settings, themes. */
#ifndef ESP_LINE_FILE_H
#define ESP_LINE_FILE_H

#include <stddef.h>

/* Hands every line to `take`: blanks at both ends taken off, numbered from 1, empty ones and
 * comments ("# ...") left out. `take` may change it, and returns 0 or a negative status with a
 * sentence, which ends the reading. Returns that; or ESP_E_FILE, ESP_E_FORMAT, ESP_E_MEMORY with
 * a sentence that names the file, and the line where one is too long or holds a NUL. */
int esp_line_file_read(const char *path,
                       int (*take)(void *user, char *line, int number, char *err, size_t errlen),
                       void *user, char *err, size_t errlen);

#endif
