/* write_file.h - a file that is written as a whole or not at all.
 *
 * The bytes go to a file beside it, which then takes its name; so a reader, or a crash, never
 * finds half of it.
 */
#ifndef ESP_WRITE_FILE_H
#define ESP_WRITE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes `length` bytes to `path`. With `over` it takes the place of a regular file that is
 * there, else it is refused. Returns 0 or ESP_E_FILE with a sentence that names the file. */
int esp_write_file(const char *path, const char *bytes, size_t length, bool over, char *err,
                   size_t errlen);

/* Writes all bytes, however often it takes. False: it failed, and errno says why.
 * Async-signal-safe. */
bool esp_write_all(int file, const char *bytes, size_t length);

/* Makes the folders above a file where they are missing, readable by their owner alone. */
void esp_make_folders(const char *path);

#endif
