/* write_file.h - writes a file as a whole or not at all.
 *
 * The bytes are written to another file in the same folder, which is then renamed. So neither a
 * reader nor a crash ever leaves half a file.
 */
#ifndef ESP_WRITE_FILE_H
#define ESP_WRITE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes `length` bytes to `path`. With `over`, an existing regular file is replaced, also one
 * that a symbolic link leads to; without it, an existing file is an error. Returns 0, or
 * ESP_E_FILE with a sentence that names the file. */
int esp_write_file(const char *path, const char *bytes, size_t length, bool over, char *err,
                   size_t errlen);

/* Writes all bytes, with as many calls of write() as needed. False: it failed, and errno says
 * why. Async-signal-safe. */
bool esp_write_all(int file, const char *bytes, size_t length);

/* Makes the folders above a file where they are missing, readable by their owner alone. */
void esp_make_folders(const char *path);

#endif
