/* state_folder.c - reading and replacing files of the state folder; see state_folder.h. */
#include "state_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path of a file. A relative XDG_STATE_HOME is to be ignored, says the specification. */
static int find_path(char path[PATH_MAX], const char *name)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (!*name || *name == '.' || strchr(name, '/'))
        return ESP_E_FILE;
    if (state && *state == '/')
        n = snprintf(path, PATH_MAX, "%s/espalier/%s", state, name);
    else if (home && *home == '/')
        n = snprintf(path, PATH_MAX, "%s/.local/state/espalier/%s", home, name);
    return n >= 0 && n < PATH_MAX ? ESP_OK : ESP_E_FILE;
}

/* Makes the folders above a file where they are missing, readable by their owner alone. */
static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = '\0';
        mkdir(folder, 0700);
    }
}

/* All of the file up to `size` bytes; a longer one gives size. */
static size_t read_all(int file, char *text, size_t size)
{
    size_t length = 0;
    ssize_t n;
    while (length < size && (n = read(file, text + length, size - length)) > 0)
        length += (size_t)n;
    return length;
}

static bool write_all(int file, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(file, text, length);
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

int esp_state_read(const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    struct stat status;
    if (find_path(path, name) < 0)
        return ESP_E_FILE;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hang */
    if (file < 0)
        return ESP_E_FILE;
    bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    size_t length = regular ? read_all(file, text, size) : size;
    close(file);
    if (length >= size || length > INT_MAX)
        return ESP_E_FILE;
    text[length] = '\0';
    return (int)length;
}

int esp_state_write(const char *name, const char *text)
{
    char path[PATH_MAX], beside[PATH_MAX];
    if (find_path(path, name) < 0 ||
        snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= (int)sizeof beside)
        return ESP_E_FILE;
    make_folders(path);
    int file = mkstemp(beside);
    if (file < 0)
        return ESP_E_FILE;
    bool written = write_all(file, text, strlen(text));
    written = close(file) == 0 && written;
    if (written && rename(beside, path) == 0)
        return ESP_OK;
    unlink(beside);
    return ESP_E_FILE;
}
