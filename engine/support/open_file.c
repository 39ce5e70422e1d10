/* open_file.c - see open_file.h. */
#include "engine/support/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int esp_open_regular(const char *path, int flags, mode_t mode, const char **wrong)
{
    struct stat about;
    int file = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
    *wrong = NULL;
    if (file < 0 && errno == ENXIO) /* a pipe that nobody reads, or a socket */
        *wrong = "it is not a regular file";
    else if (file < 0 || fstat(file, &about) < 0)
        *wrong = strerror(errno);
    else if (!S_ISREG(about.st_mode))
        *wrong = "it is not a regular file";
    if (*wrong && file >= 0)
        close(file);
    return *wrong ? -1 : file;
}

size_t esp_read_at(int file, void *bytes, size_t size, size_t at)
{
    size_t done = 0;
    ssize_t n = 1;
    while (done < size && (n > 0 || (n < 0 && errno == EINTR))) {
        n = pread(file, (char *)bytes + done, size - done, (off_t)(at + done));
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}
