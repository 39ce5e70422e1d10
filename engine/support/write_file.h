/* write_file.h - writes a file as a whole or not at all.
 *
 * The bytes are written to another file in the same folder, which is then renamed. So neither a
 * reader nor a crash ever leaves half a file. A file that replaces another keeps its owner,
 * group and permissions, as far as the user may give them; a new one has those of the umask.
 * While it is written, it is noted for signals (part_file.h).
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

/* A file that is being written part by part, under another name. */
struct esp_writing {
    int file;  /* write to it with esp_write_all() */
    int noted; /* as esp_part_file_begin() gives it */
    bool over;
    char path[4096], place[4096], beside[4096];
};

/* Begins to write `path`, by the same rules. */
int esp_write_begin(struct esp_writing *writing, const char *path, bool over, char *err,
                    size_t errlen);
/* Ends it: with `good` the file gets its name, else it is removed. A sentence is written only
 * if it was good until now; `good` false is the caller's own failure, for which ESP_E_FILE is
 * returned, too. */
int esp_write_end(struct esp_writing *writing, bool good, char *err, size_t errlen);

/* Writes all bytes, with as many calls of write() as needed. False: it failed, and errno says
 * why. Async-signal-safe. */
bool esp_write_all(int file, const char *bytes, size_t length);

/* Makes the folders above a file where they are missing, readable by their owner alone. */
void esp_make_folders(const char *path);

#endif
