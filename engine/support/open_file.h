/* open_file.h - opens files of unknown origin without waiting for them. */
#ifndef ESP_OPEN_FILE_H
#define ESP_OPEN_FILE_H

#include <sys/types.h>

/* Like open(), but only for regular files, because opening or reading a pipe could wait for
 * ever. Returns the file descriptor, or -1 and in `wrong` the reason as the end of a sentence
 * (static text). */
int esp_open_regular(const char *path, int flags, mode_t mode, const char **wrong);

#endif
