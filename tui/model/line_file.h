/* line_file.h - reads user files line by line: settings, themes. */
#ifndef ESP_LINE_FILE_H
#define ESP_LINE_FILE_H

#include <stddef.h>

/* Handles a line and may change it. Returns 0 or a negative status with a message. */
typedef int esp_take_line(void *user, char *line, int number, char *err, size_t errlen);

/* Passes each line to `take`, without surrounding blanks, until one fails. Skips empty lines
 * and comments ("# ..."). Line numbers start at 1. Returns the status of `take`; or ESP_E_FILE
 * or ESP_E_FORMAT with a message that names the file, and the line if it is too long or
 * contains a NUL. */
int esp_line_file_read(const char *path, esp_take_line *take, void *user, char *err,
                       size_t errlen);

#endif
