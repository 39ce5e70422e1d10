/* open_file.h - opens untrusted files without blocking on them. */
#ifndef ESP_OPEN_FILE_H
#define ESP_OPEN_FILE_H

#include <sys/types.h>

/* Works like open(), but refuses everything except regular files, because opening or reading a
 * pipe could block forever. Returns the file descriptor. On failure returns -1, and *wrong is
 * the reason, written as the end of a sentence (static text). */
int esp_open_regular(const char *path, int flags, mode_t mode, const char **wrong);

/* Reads up to `size` bytes of a file, starting at byte `at`. Returns how many were read. */
size_t esp_read_at(int file, void *bytes, size_t size, size_t at);

#endif
