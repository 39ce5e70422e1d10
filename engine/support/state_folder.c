/* state_folder.c - reading and replacing files of the state folder; see state_folder.h. */
#include "engine/support/state_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/support/open_file.h"
#include "engine/support/paths.h"
#include "engine/support/write_file.h"

static int find_path(char path[PATH_MAX], const char *name)
{
    if (!*name || *name == '.' || strchr(name, '/'))
        return ESP_E_FILE;
    return esp_user_path(path, PATH_MAX, ESP_USER_STATE, name);
}

/* Reads at most `size` bytes and returns their number; `size` means that the file is too
 * long. */
static size_t read_all(int file, char *text, size_t size)
{
    size_t length = 0;
    ssize_t n;
    while (length < size && (n = read(file, text + length, size - length)) > 0)
        length += (size_t)n;
    return length;
}

void esp_state_name(char *name, size_t size, const char *kind, const char *key)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *c = key; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    name[0] = '\0';
    if (*key)
        snprintf(name, size, "%s-%016llx.json", kind, (unsigned long long)hash);
}

int esp_state_read(const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    const char *wrong;
    if (find_path(path, name) < 0)
        return ESP_E_FILE;
    int file = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (file < 0)
        return ESP_E_FILE;
    size_t length = read_all(file, text, size);
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
