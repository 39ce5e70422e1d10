/* folder.c - makes a temporary model folder, which a test damages; see folder.h. */
#include "tests/folder.h"

#include <cJSON.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

static char folder[PATH_MAX]; /* "" if there is no folder */

const char *folder_path(void)
{
    return folder;
}

struct folder_bytes folder_read(const char *path)
{
    struct folder_bytes bytes = {0};
    FILE *file = fopen(path, "rb");
    CHECK(file, "cannot open %s", path);
    fseek(file, 0, SEEK_END);
    bytes.size = (size_t)ftell(file);
    rewind(file);
    bytes.data = calloc(1, bytes.size + 1);
    size_t n = fread(bytes.data, 1, bytes.size, file);
    fclose(file);
    CHECK(n == bytes.size);
    return bytes;
}

const char *folder_file(const char *name)
{
    static char path[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void folder_write(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(folder_file(name), "wb");
    CHECK(file);
    CHECK(fwrite(data, 1, size, file) == size);
    fclose(file);
}

void folder_write_text(const char *name, const char *text)
{
    folder_write(name, text, strlen(text));
}

static void remove_folder(void)
{
    DIR *dir = *folder ? opendir(folder) : NULL;
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (*entry->d_name != '.')
            unlink(folder_file(entry->d_name));
    closedir(dir);
    rmdir(folder);
    *folder = '\0';
}

void folder_copy(const char *name)
{
    static bool registered;
    if (!registered)
        atexit(remove_folder);
    registered = true;
    remove_folder();
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/esp-model-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(folder));
    char source[PATH_MAX + 300], vector[PATH_MAX];
    snprintf(vector, sizeof vector, "%s/%s", check_path("vectors/logits"), name);
    DIR *dir = opendir(vector);
    CHECK(dir, "no folder %s", vector);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (*entry->d_name == '.')
            continue;
        snprintf(source, sizeof source, "%s/%s", vector, entry->d_name);
        struct folder_bytes bytes = folder_read(source);
        folder_write(entry->d_name, bytes.data, bytes.size);
        free(bytes.data);
    }
    closedir(dir);
}

/* Sets root[key] or, if `inner` is not NULL, root[key][inner] to a JSON value. A NULL value
 * removes the member. */
static void set_json(cJSON *root, const char *key, const char *inner, const char *value)
{
    cJSON *object = inner ? cJSON_GetObjectItemCaseSensitive(root, key) : root;
    CHECK(object, "no %s", key);
    const char *name = inner ? inner : key;
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    if (value)
        cJSON_AddItemToObject(object, name, cJSON_CreateRaw(value));
}

void folder_edit(const char *file, const char *key, const char *inner, const char *value)
{
    struct folder_bytes bytes = folder_read(folder_file(file));
    cJSON *root = cJSON_Parse(bytes.data);
    CHECK(root);
    set_json(root, key, inner, value);
    char *text = cJSON_Print(root);
    folder_write_text(file, text);
    free(text);
    cJSON_Delete(root);
    free(bytes.data);
}

size_t folder_header_length(const struct folder_bytes *bytes)
{
    size_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | (unsigned char)bytes->data[i];
    return length;
}

void folder_write_tensors(const char *file, const char *header,
                          const struct folder_bytes *bytes)
{
    size_t length = strlen(header), data = 8 + folder_header_length(bytes);
    char *out = malloc(8 + length + bytes->size - data);
    for (int i = 0; i < 8; i++)
        out[i] = (char)(length >> (8 * i) & 255);
    memcpy(out + 8, header, length);
    memcpy(out + 8 + length, bytes->data + data, bytes->size - data);
    folder_write(file, out, 8 + length + bytes->size - data);
    free(out);
}

void folder_edit_header(const char *file, const char *key, const char *inner, const char *value)
{
    struct folder_bytes bytes = folder_read(folder_file(file));
    cJSON *root = cJSON_ParseWithLength(bytes.data + 8, folder_header_length(&bytes));
    CHECK(root);
    set_json(root, key, inner, value);
    char *text = cJSON_PrintUnformatted(root);
    folder_write_tensors(file, text, &bytes);
    free(text);
    cJSON_Delete(root);
    free(bytes.data);
}

void folder_strip_names(const char *file, const char *prefix)
{
    struct folder_bytes bytes = folder_read(folder_file(file));
    cJSON *root = cJSON_ParseWithLength(bytes.data + 8, folder_header_length(&bytes));
    const size_t length = strlen(prefix);
    CHECK(root);
    for (cJSON *item = root->child; item; item = item->next)
        if (strncmp(item->string, prefix, length) == 0)
            memmove(item->string, item->string + length, strlen(item->string + length) + 1);
    char *text = cJSON_PrintUnformatted(root);
    folder_write_tensors(file, text, &bytes);
    free(text);
    cJSON_Delete(root);
    free(bytes.data);
}
