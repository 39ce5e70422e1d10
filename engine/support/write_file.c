/* write_file.c - writes a file under a temporary name and renames it; see write_file.h. */
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
#include "kernels/system.h"
#include "engine/support/part_file.h"

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

/* Creates the temporary file in the same folder, and lists it for signals. mkstemp() is not
 * used, because it ignores the umask, and a thread cannot read the umask without changing it
 * for all threads. Returns the file descriptor, or -1 on failure. */
static int make_beside(struct esp_writing *w, mode_t mode)
{
    enum { TRIES = 100 };
    int file = -1;
    for (int i = 0; i < TRIES && file < 0; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (snprintf(w->beside, sizeof w->beside, "%s.part-%d-%09ld", w->place, (int)getpid(),
                     now.tv_nsec) >= (int)sizeof w->beside) {
            errno = ENAMETOOLONG;
            break;
        }
        w->noted = esp_part_file_begin(w->beside, w->path);
        file = open(w->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file >= 0)
            break;
        esp_part_file_end(w->noted);
        if (errno != EEXIST)
            break;
    }
    return file;
}

/* Gives a file the owner and permissions of the file it replaces, as far as the user is allowed
 * to set them. (The file was created with fewer permissions.) If the group cannot be kept, its
 * permissions are not given to the new group. */
static void take_permissions(int file, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;
    (void)!fchown(file, old->st_uid, (gid_t)-1);
    if (fchown(file, (uid_t)-1, old->st_gid) < 0)
        mode &= (mode_t)(0707 | (mode & 07) << 3);
    fchmod(file, mode);
}

/* Renames a file. If `over` is false, renames it only if no file has the new name. */
static bool take_name(const char *from, const char *path, bool over)
{
    if (over)
        return rename(from, path) == 0;
    if (esp_rename_to_new(from, path))
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
                        "%.300s is not a regular file; choose another name", path);
    if (there && !over)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%.300s already exists; choose another name, or add a ! to replace it",
                        path);
    w->over = over;
    snprintf(w->path, sizeof w->path, "%s", path);
    /* A symbolic link is not replaced: the file that it leads to is written. */
    snprintf(w->place, sizeof w->place, "%s", there && realpath(path, real) ? real : path);
    w->file = make_beside(w, there ? S_IRUSR | S_IWUSR : 0666);
    if (w->file < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "%.300s cannot be written: %s", path,
                        strerror(errno));
    if (there)
        take_permissions(w->file, &status);
    return ESP_OK;
}

int esp_write_end(struct esp_writing *w, bool good, char *err, size_t errlen)
{
    bool closed = close(w->file) == 0;
    const bool named = good && closed && take_name(w->beside, w->place, w->over);
    int error = errno;
    if (!named)
        unlink(w->beside);
    esp_part_file_end(w->noted);
    if (named)
        return ESP_OK;
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
