/* paths.c - finds the program's data folders and the user's folders; see paths.h.
 *
 * A program that was built but not installed is in a folder of the source tree (build/espalier,
 * build/tests/unit/model). An installed program is in PREFIX/bin, and its library is in
 * PREFIX/lib. The data are found by walking up a few folders from the running file, so the
 * source tree or PREFIX may be moved.
 */
#include "engine/support/paths.h"

#include <cJSON.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/support/hash.h"
#include "engine/support/open_file.h"
#include "engine/support/write_file.h"
#include "kernels/system.h"

#ifndef ESP_DATA_DIR
#define ESP_DATA_DIR "/usr/local/share/espalier"
#endif

enum { PARENTS = 4 };

static bool found(char *path, size_t size, const char *base, const char *below,
                  const char *kind, const char *name)
{
    int n = snprintf(path, size, "%s/%s%s%s%s", base, below, kind, *name ? "/" : "", name);
    return n >= 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/* Returns the folder of the source tree with this kind of data: models are in engine/;
 * lessons, recordings and suites are in sessions/. */
static const char *tree_of(const char *kind)
{
    const bool sessions = strcmp(kind, "lessons") == 0 || strcmp(kind, "samples") == 0 ||
                          strcmp(kind, "suites") == 0;
    return sessions ? "sessions/" : strcmp(kind, "models") == 0 ? "engine/" : "";
}

/* Searches the folder that contains `file`, and the parents of that folder. */
static bool found_above(char *path, size_t size, const char *file, const char *kind,
                        const char *name)
{
    char base[PATH_MAX];
    if (!file || !realpath(file, base))
        return false;
    const char *tree = tree_of(kind);
    for (int i = 0; i <= PARENTS; i++) {
        char *slash = strrchr(base, '/');
        if (!slash)
            return false;
        *slash = '\0';
        if (found(path, size, base, tree, kind, name) ||
            found(path, size, base, "share/espalier/", kind, name))
            return true;
    }
    return false;
}

int esp_find_data(char *path, size_t size, const char *kind, const char *name)
{
    Dl_info library;
    char program[PATH_MAX];
    const char *folder = getenv("ESPALIER_DATA");
    if (strchr(name, '/') || *name == '.')
        return ESP_E_FILE;
    if (folder && *folder && found(path, size, folder, "", kind, name))
        return 0;
    if (esp_program_path(program, sizeof program) &&
        found_above(path, size, program, kind, name))
        return 0;
    /* dladdr() finds the file that contains this function. ISO C does not allow converting a
     * function pointer to void *, so the bytes of the pointer are copied. */
    int (*self)(char *, size_t, const char *, const char *) = esp_find_data;
    void *address;
    memcpy(&address, &self, sizeof address);
    if (dladdr(address, &library) && found_above(path, size, library.dli_fname, kind, name))
        return 0;
    return found(path, size, ESP_DATA_DIR, "", kind, name) ? 0 : ESP_E_FILE;
}

/* Returns whether to list an entry. Hidden files and editors' backup files (dark.theme~) are
 * not listed. */
static int is_name(const struct dirent *entry)
{
    const char *end = strstr(entry->d_name, ".theme");
    return entry->d_name[0] != '.' && (!end || !end[strlen(".theme")]);
}

/* Orders names by the number that they begin with, then by their bytes. */
static int by_number(const struct dirent **a, const struct dirent **b)
{
    const long first = strtol((*a)->d_name, NULL, 10), second = strtol((*b)->d_name, NULL, 10);
    return first != second ? (first < second ? -1 : 1) : strcmp((*a)->d_name, (*b)->d_name);
}

int esp_list_folder(const char *folder, const char *ending, int index, char *name, size_t size)
{
    struct dirent **entries;
    int status = ESP_E_FILE, count = scandir(folder, &entries, is_name, by_number);
    if (count < 0)
        return ESP_E_FILE;
    for (int i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        int length = (int)strlen(entry) - (int)strlen(ending);
        if (length > 0 && strcmp(entry + length, ending) == 0 && index-- == 0 &&
            snprintf(name, size, "%.*s", length, entry) < (int)size)
            status = ESP_OK;
        free(entries[i]);
    }
    free(entries);
    return status;
}

int esp_list_data(const char *kind, int index, char *name, size_t size)
{
    char folder[PATH_MAX];
    if (esp_find_data(folder, sizeof folder, kind, "") < 0)
        return ESP_E_FILE;
    return esp_list_folder(folder, strcmp(kind, "themes") == 0 ? ".theme" : "", index, name,
                           size);
}

int esp_user_path(char *path, size_t size, enum esp_user_folder folder, const char *name)
{
    static const char *const variables[] = {"XDG_CONFIG_HOME", "XDG_STATE_HOME"};
    static const char *const below[] = {".config", ".local/state"};
    const char *base = getenv(variables[folder]), *home = getenv("HOME");
    int n = -1;
    if (base && *base == '/')
        n = snprintf(path, size, "%s/espalier/%s", base, name);
    else if (home && *home == '/')
        n = snprintf(path, size, "%s/%s/espalier/%s", home, below[folder], name);
    return n >= 0 && (size_t)n < size ? ESP_OK : ESP_E_FILE;
}

/* ------------------------------------------------------------------ learned values */

static int state_path(char path[PATH_MAX], const char *name)
{
    if (!*name || *name == '.' || strchr(name, '/'))
        return ESP_E_FILE;
    return esp_user_path(path, PATH_MAX, ESP_USER_STATE, name);
}

void esp_state_name(char *name, size_t size, const char *kind, const char *key)
{
    const uint64_t hash = esp_fnv(ESP_FNV_START, key, strlen(key));
    name[0] = '\0';
    if (*key)
        snprintf(name, size, "%s-%016llx.json", kind, (unsigned long long)hash);
}

int esp_state_read(const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    const char *wrong;
    if (state_path(path, name) < 0)
        return ESP_E_FILE;
    int file = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (file < 0)
        return ESP_E_FILE;
    const size_t length = esp_read_at(file, text, size, 0);
    close(file);
    if (length >= size || length > INT_MAX)
        return ESP_E_FILE;
    text[length] = '\0';
    return (int)length;
}

bool esp_state_exists(const char *name)
{
    char path[PATH_MAX];
    return state_path(path, name) == ESP_OK && access(path, F_OK) == 0;
}

/* A file that is replaced keeps its permissions. Therefore an empty private file is created
 * first. */
int esp_state_write_private(const char *name, const char *bytes, size_t length)
{
    char path[PATH_MAX], err[64];
    const char *wrong;
    if (state_path(path, name) < 0)
        return ESP_E_FILE;
    esp_make_folders(path);
    const int file = esp_open_regular(path, O_WRONLY | O_CREAT, S_IRUSR | S_IWUSR, &wrong);
    const bool private = file >= 0 && fchmod(file, S_IRUSR | S_IWUSR) == 0;
    if (file >= 0)
        close(file);
    return private ? esp_write_file(path, bytes, length, true, err, sizeof err)
                   : (int)ESP_E_FILE;
}

int esp_state_write(const char *name, const char *text)
{
    char path[PATH_MAX], err[64];
    if (state_path(path, name) < 0)
        return ESP_E_FILE;
    esp_make_folders(path);
    return esp_write_file(path, text, strlen(text), true, err, sizeof err);
}

cJSON *esp_state_object(const char *name, size_t size, const char *key)
{
    char *text = *name ? malloc(size) : NULL;
    const int length = text ? esp_state_read(name, text, size) : -1;
    cJSON *root = length < 0 ? NULL : cJSON_ParseWithLength(text, (size_t)length + 1);
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(root, "key"));
    free(text);
    if (found && strcmp(found, key) == 0)
        return root;
    cJSON_Delete(root);
    return NULL;
}

bool esp_state_write_object(const char *name, cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);
    const bool written = text && esp_state_write(name, text) == ESP_OK;
    cJSON_free(text);
    cJSON_Delete(object);
    return written;
}

bool esp_state_numbers(const cJSON *array, double *numbers, int count)
{
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != count)
        return false;
    for (int i = 0; i < count; i++) {
        const cJSON *item = cJSON_GetArrayItem(array, i);
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 1e6))
            return false;
        numbers[i] = item->valuedouble;
    }
    return true;
}
