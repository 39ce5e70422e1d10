/* write_file.h - writes a file completely; if that fails, the old file stays.
 *
 * The bytes go to another file in the same folder, which is then renamed, so nobody ever sees
 * half a file, even after a crash. A replaced file keeps its owner, group and permissions, as
 * far as the user is allowed to set them; a new file gets the permissions that the umask
 * allows. Unfinished files are listed for signals (part_file.h).
 */
#ifndef ESP_WRITE_FILE_H
#define ESP_WRITE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes `length` bytes to `path`. With `over`, an existing regular file is replaced, even one
 * that a symbolic link leads to; without `over`, an existing file is an error. Returns 0, or
 * ESP_E_FILE with a sentence that names the file. */
int esp_write_file(const char *path, const char *bytes, size_t length, bool over, char *err,
                   size_t errlen);

/* Describes a file that is written in parts, under a temporary name. */
struct esp_writing {
    int file;  /* write to it with esp_write_all() */
    int noted; /* number returned by esp_part_file_begin() */
    bool over;
    char path[4096], place[4096], beside[4096];
};

/* Begins to write `path`. The rules for an existing file are the same as in
 * esp_write_file(). */
int esp_write_begin(struct esp_writing *writing, const char *path, bool over, char *err,
                    size_t errlen);
/* Ends writing. If `good` is true, the file gets its final name. Otherwise the file is removed,
 * and the function returns ESP_E_FILE; the caller must then write the reason to err. */
int esp_write_end(struct esp_writing *writing, bool good, char *err, size_t errlen);

/* Writes all bytes, with as many calls of write() as needed. Returns false and sets errno on
 * failure. Async-signal-safe. */
bool esp_write_all(int file, const char *bytes, size_t length);

/* Creates the missing parent folders of a file. Only their owner can read them. */
void esp_make_folders(const char *path);

#endif
