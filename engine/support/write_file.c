/* write_file.c - writes a file under another name and renames it; see write_file.h. */
#include "engine/support/write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernels/status.h"
#include "engine/espalier.h"

bool esp_write_all(int file, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(file, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

/* Makes a file in the folder of `path` and writes its name to `beside`. Its permissions follow
 * the umask, which mkstemp() ignores and which a thread cannot read without changing it for all
 * threads. Returns the file descriptor, or -1 on failure. */
static int make_beside(const char *path, char *beside, size_t size)
{
    enum { TRIES = 100 };
    int file = -1;
    for (int i = 0; i < TRIES && file < 0; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (snprintf(beside, size, "%s.%d-%09ld", path, (int)getpid(), now.tv_nsec) >=
            (int)size)
            errno = ENAMETOOLONG;
        else
            file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

/* Renames a file; without `over`, only if nothing has the new name. */
static bool take_name(const char *from, const char *path, bool over)
{
    if (over)
        return rename(from, path) == 0;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    if (access(path, F_OK) == 0) { /* this file system cannot check and rename in one step */
        errno = EEXIST;
        return false;
    }
    return rename(from, path) == 0;
}

int esp_write_begin(struct esp_writing *w, const char *path, bool over, char *err,
                    size_t errlen)
{
    char real[PATH_MAX];
    struct stat status;
    bool there = stat(path, &status) == 0;
    if (there && !S_ISREG(status.st_mode))
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%.300s is no regular file; choose another name", path);
    if (there && !over)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%.300s is there already; choose another name, or add a ! to write "
                        "over it",
                        path);
    w->over = over;
    snprintf(w->path, sizeof w->path, "%s", path);
    /* A symbolic link is kept: the file that it leads to is written. */
    snprintf(w->place, sizeof w->place, "%s", there && realpath(path, real) ? real : path);
    w->file = make_beside(w->place, w->beside, sizeof w->beside);
    if (w->file < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "%.300s cannot be written: %s", path,
                        strerror(errno));
    return ESP_OK;
}

int esp_write_end(struct esp_writing *w, bool good, char *err, size_t errlen)
{
    bool closed = close(w->file) == 0;
    if (good && closed && take_name(w->beside, w->place, w->over))
        return ESP_OK;
    int error = errno;
    unlink(w->beside);
    return good ? esp_fail(err, errlen, ESP_E_FILE, "%.300s cannot be written: %s", w->path,
                           strerror(error))
                : (int)ESP_E_FILE;
}

int esp_write_file(const char *path, const char *bytes, size_t length, bool over, char *err,
                   size_t errlen)
{
    struct esp_writing writing;
    int status = esp_write_begin(&writing, path, over, err, errlen);
    if (status < 0)
        return status;
    bool written = esp_write_all(writing.file, bytes, length);
    if (!written)
        esp_fail(err, errlen, ESP_E_FILE, "%.300s cannot be written: %s", path,
                 strerror(errno));
    return esp_write_end(&writing, written, err, errlen);
}

void esp_make_folders(const char *path)
{
    char folder[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (slash - path >= PATH_MAX)
            return;
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = '\0';
        mkdir(folder, 0700);
    }
}
