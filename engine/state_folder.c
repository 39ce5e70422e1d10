/* state_folder.c - reading and replacing files of the state folder; see state_folder.h. */
#include "state_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"
#include "write_file.h"

static int find_path(char path[PATH_MAX], const char *name)
{
    if (!*name || *name == '.' || strchr(name, '/'))
        return ESP_E_FILE;
    return esp_user_path(path, PATH_MAX, ESP_USER_STATE, name);
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
    char path[PATH_MAX], err[64];
    if (find_path(path, name) < 0)
        return ESP_E_FILE;
    esp_make_folders(path);
    return esp_write_file(path, text, strlen(text), true, err, sizeof err);
}
