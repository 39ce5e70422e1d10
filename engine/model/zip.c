/* zip.c - reads the directory of a zip archive; see zip.h. */
#include "engine/model/zip.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

enum {
    END = 22,        /* bytes of the end record */
    COMMENT = 65535, /* maximum bytes of the comment after the end record */
    LOCATOR = 20,    /* bytes of the locator, which large archives have before the end record */
    LARGE_END = 56,  /* bytes of the large end record; the locator has its position */
    ENTRY = 46,      /* bytes of an entry of the directory up to the name */
    LOCAL = 30,      /* bytes of the header before a file's contents, up to the name */
    DIRECTORY_LIMIT = 64 << 20
};

static int damaged(const char *path, const char *what, char *err, size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_FORMAT, "%s is a damaged zip archive: %s", path, what);
}

/* Describes where the directory of an archive is, and how many entries it has. */
struct place {
    uint64_t offset, size, count;
};

static int find_large(struct place *place, struct esp_tensor_file *file, size_t size,
                      size_t end_at)
{
    char locator[LOCATOR], end[LARGE_END];
    if (end_at < LOCATOR)
        return -1;
    esp_tensor_file_read(file, end_at - LOCATOR, locator, LOCATOR);
    uint64_t at = esp_little_endian(locator + 8, 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || size < LARGE_END || at > size - LARGE_END)
        return -1;
    esp_tensor_file_read(file, (size_t)at, end, LARGE_END);
    if (memcmp(end, "PK\6\6", 4) != 0)
        return -1;
    *place = (struct place){esp_little_endian(end + 48, 8), esp_little_endian(end + 40, 8),
                            esp_little_endian(end + 32, 8)};
    return 0;
}

static int find_directory(struct place *place, struct esp_tensor_file *file, size_t size,
                          const char *path, char *err, size_t errlen)
{
    const size_t tail = size < END + COMMENT ? size : END + COMMENT;
    char *bytes = malloc(tail + 1);
    size_t at = tail < END ? 0 : tail - END + 1;
    if (!bytes)
        return esp_no_memory(path, err, errlen);
    esp_tensor_file_read(file, size - tail, bytes, tail);
    while (at > 0 && memcmp(bytes + at - 1, "PK\5\6", 4) != 0)
        at--;
    int status = ESP_OK;
    if (at == 0) {
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%s is truncated, or was not written by PyTorch 1.6 or later", path);
    } else {
        const char *end = bytes + at - 1;
        *place = (struct place){esp_little_endian(end + 16, 4), esp_little_endian(end + 12, 4),
                                esp_little_endian(end + 10, 2)};
        if ((place->offset == UINT32_MAX || place->size == UINT32_MAX ||
             place->count == UINT16_MAX) &&
            find_large(place, file, size, size - tail + at - 1) < 0)
            status = damaged(path, "it has no directory", err, errlen);
    }
    free(bytes);
    if (status == ESP_OK && (place->size > DIRECTORY_LIMIT || place->offset > size ||
                             place->size > size - place->offset))
        status = damaged(path, "its directory lies outside the file", err, errlen);
    return status;
}

/* Reads the numbers that need more than 32 bits. They are in an extra field of the entry, in
 * the order of `value`. */
static int read_large(const char *extra, size_t length, uint64_t *value[3])
{
    for (size_t at = 0; at + 4 <= length;) {
        const uint64_t id = esp_little_endian(extra + at, 2),
                       bytes = esp_little_endian(extra + at + 2, 2);
        if (bytes > length - at - 4)
            return -1;
        size_t from = at + 4, end = from + (size_t)bytes;
        for (int i = 0; id == 1 && i < 3; i++) {
            if (*value[i] != UINT32_MAX)
                continue;
            if (end - from < 8)
                return -1;
            *value[i] = esp_little_endian(extra + from, 8);
            from += 8;
        }
        at = end;
    }
    return 0;
}

/* Reads the entry at `at` and sets *next to the position of the next entry. Returns NULL, or
 * the last part of an error message if the entry is damaged. */
static const char *read_entry(struct esp_zip_entry *entry, const char *directory, size_t length,
                              size_t at, size_t *next, struct esp_tensor_file *file,
                              size_t file_size)
{
    char local[LOCAL];
    const char *head = directory + at;
    if (length - at < ENTRY || memcmp(head, "PK\1\2", 4) != 0)
        return "its directory is truncated";
    const size_t name = (size_t)esp_little_endian(head + 28, 2),
                 extra = (size_t)esp_little_endian(head + 30, 2);
    const size_t texts = name + extra + (size_t)esp_little_endian(head + 32, 2);
    if (texts > length - at - ENTRY)
        return "its directory is truncated";
    uint64_t packed = esp_little_endian(head + 20, 4), size = esp_little_endian(head + 24, 4),
             start = esp_little_endian(head + 42, 4);
    uint64_t *large[3] = {&size, &packed, &start};
    if (read_large(head + ENTRY + name, extra, large) < 0)
        return "a size in its directory is truncated";
    if (esp_little_endian(head + 10, 2) != 0 || packed != size)
        return "an entry is compressed";
    if (file_size < LOCAL || start > file_size - LOCAL)
        return "an entry lies outside the file";
    esp_tensor_file_read(file, (size_t)start, local, LOCAL);
    const uint64_t begin =
        start + LOCAL + esp_little_endian(local + 26, 2) + esp_little_endian(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) != 0 || begin > file_size || size > file_size - begin)
        return "an entry lies outside the file";
    *entry = (struct esp_zip_entry){head + ENTRY, name, (size_t)begin, (size_t)size};
    *next = at + ENTRY + texts;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct esp_zip_entry *x = a, *y = b;
    const size_t both = x->length < y->length ? x->length : y->length;
    const int order = both ? memcmp(x->name, y->name, both) : 0;
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

int esp_zip_open(struct esp_zip *zip, struct esp_tensor_file *file, size_t size,
                 const char *path, char *err, size_t errlen)
{
    struct place place = {0};
    *zip = (struct esp_zip){0};
    int status = find_directory(&place, file, size, path, err, errlen);
    if (status < 0)
        return status;
    const size_t most = (size_t)place.size / ENTRY;
    const size_t count = place.count < most ? (size_t)place.count : most;
    zip->directory = malloc((size_t)place.size + 1);
    zip->entries = calloc(count + 1, sizeof *zip->entries);
    if (!zip->directory || !zip->entries) {
        esp_zip_close(zip);
        return esp_no_memory(path, err, errlen);
    }
    esp_tensor_file_read(file, (size_t)place.offset, zip->directory, (size_t)place.size);
    for (size_t at = 0; zip->count < count && status == ESP_OK; zip->count++) {
        const char *wrong = read_entry(&zip->entries[zip->count], zip->directory,
                                       (size_t)place.size, at, &at, file, size);
        if (wrong)
            status = damaged(path, wrong, err, errlen);
    }
    if (status < 0)
        esp_zip_close(zip);
    else
        qsort(zip->entries, zip->count, sizeof *zip->entries, by_name);
    return status;
}

void esp_zip_close(struct esp_zip *zip)
{
    free(zip->entries);
    free(zip->directory);
    *zip = (struct esp_zip){0};
}

const struct esp_zip_entry *esp_zip_find(const struct esp_zip *zip, const char *folder,
                                         size_t folder_length, const char *name,
                                         size_t name_length)
{
    char full[1024];
    if (folder_length > sizeof full || name_length > sizeof full - folder_length)
        return NULL;
    memcpy(full, folder, folder_length);
    memcpy(full + folder_length, name, name_length);
    const struct esp_zip_entry key = {.name = full, .length = folder_length + name_length};
    return bsearch(&key, zip->entries, zip->count, sizeof key, by_name);
}
