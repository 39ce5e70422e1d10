/* safetensors.c - reads and checks safetensors files; see safetensors.h.
 *
 * Every number in a file is checked against the size of the file before it is used: the length
 * of the header; for each tensor that its numbers are whole, and that shape times element size
 * is exactly its range of bytes; and that all ranges together fill the data part without gaps
 * or overlaps. A file that was cut, or to which something was appended, fails the last check.
 *
 * Files are read and not mapped, because reading a mapped file that was cut meanwhile ends the
 * program (SIGBUS). A change of a file while the weights are read is found when the files are
 * released.
 */
#include "engine/model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/status.h"
#include "engine/model/json.h"
#include "kernels/model_desc.h"

enum { LENGTH_BYTES = 8, MAX_FILES = 4096 };

struct shard {
    char path[PATH_MAX];
    struct esp_tensor_file source;
    struct timespec changed; /* when the file was last written */
    size_t size;
};

struct esp_safetensors {
    struct shard **shards;
    int shard_count;
    struct esp_stored *tensors; /* sorted by name once all shards are read */
    size_t count;
};

/* Bits per element of every type of the format; other types cannot be checked and are refused.
 */
static int type_bits(const char *type)
{
    static const struct {
        const char *name;
        int bits;
    } types[] = {{"F32", 32},    {"F16", 16},    {"BF16", 16},   {"F64", 64},    {"I64", 64},
                 {"U64", 64},    {"C64", 64},    {"I32", 32},    {"U32", 32},    {"I16", 16},
                 {"U16", 16},    {"I8", 8},      {"U8", 8},      {"BOOL", 8},    {"F8_E4M3", 8},
                 {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].name) == 0)
            return types[i].bits;
    return 0;
}

/* The value of a whole number that a double holds exactly; -1 if it is not one. */
static int64_t whole(const cJSON *item)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53))
        return -1;
    int64_t value = (int64_t)item->valuedouble;
    return (double)value == item->valuedouble ? value : -1;
}

/* ------------------------------------------------------------------ one file */

static int read_shape(struct esp_stored *tensor, const cJSON *shape, int64_t *elements)
{
    const cJSON *item;
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > ESP_MAX_RANK)
        return -1;
    *elements = 1;
    cJSON_ArrayForEach(item, shape)
    {
        int64_t n = whole(item);
        if (n < 0 || __builtin_mul_overflow(*elements, n, elements))
            return -1;
        tensor->shape[tensor->rank++] = n;
    }
    return 0;
}

/* Fills `tensor` from a header entry. Returns NULL, or what is wrong with the entry. */
static const char *read_entry(struct esp_stored *tensor, const cJSON *entry, size_t data_size)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    int64_t begin = whole(cJSON_GetArrayItem(offsets, 0));
    int64_t end = whole(cJSON_GetArrayItem(offsets, 1));
    int64_t elements, bits;
    if (!cJSON_IsString(type) || type_bits(type->valuestring) == 0)
        return "has an unknown dtype";
    snprintf(tensor->type, sizeof tensor->type, "%s", type->valuestring);
    if (read_shape(tensor, cJSON_GetObjectItemCaseSensitive(entry, "shape"), &elements) < 0)
        return "has a bad shape";
    if (cJSON_GetArraySize(offsets) != 2 || begin < 0 || end < begin)
        return "has bad data_offsets";
    if ((uint64_t)end > data_size)
        return "lies outside the file, which may have been cut: get it again";
    if (__builtin_mul_overflow(elements, (int64_t)type_bits(tensor->type), &bits) || bits % 8 ||
        bits / 8 != end - begin)
        return "has data_offsets that do not fit its shape and dtype";
    tensor->begin = (size_t)begin;
    tensor->end = (size_t)end;
    return NULL;
}

static int by_place(const void *a, const void *b)
{
    const struct esp_stored *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int check_tiling(struct esp_stored *tensors, size_t count, size_t data_size,
                        const char *path, char *err, size_t errlen)
{
    size_t end = 0;
    if (count > 0)
        qsort(tensors, count, sizeof *tensors, by_place);
    for (size_t i = 0; i < count; end = tensors[i++].end)
        if (tensors[i].begin != end)
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "%s: tensor %s starts at byte %zu of the data instead of %zu", path,
                            tensors[i].name, tensors[i].begin, end);
    if (end != data_size)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s has %zu bytes of data, its tensors %zu",
                        path, data_size, end);
    return 0;
}

static int read_header(struct esp_safetensors *set, struct shard *shard, const cJSON *header,
                       size_t data_at, char *err, size_t errlen)
{
    const cJSON *entry;
    size_t data_size = shard->size - data_at, first = set->count;
    struct esp_stored *tensors = realloc(
        set->tensors, (first + (size_t)cJSON_GetArraySize(header) + 1) * sizeof *tensors);
    if (!tensors)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", shard->path);
    set->tensors = tensors;
    cJSON_ArrayForEach(entry, header)
    {
        if (strcmp(entry->string, "__metadata__") == 0)
            continue;
        struct esp_stored *tensor = &set->tensors[set->count];
        memset(tensor, 0, sizeof *tensor);
        const char *wrong = read_entry(tensor, entry, data_size);
        if (wrong)
            return esp_fail(err, errlen, ESP_E_FORMAT, "%s: tensor %s %s", shard->path,
                            entry->string, wrong);
        tensor->name = strdup(entry->string);
        if (!tensor->name)
            return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", shard->path);
        tensor->source = &shard->source;
        tensor->offset = data_at + tensor->begin;
        tensor->file = shard->path;
        set->count++;
    }
    return check_tiling(set->tensors + first, set->count - first, data_size, shard->path, err,
                        errlen);
}

static int read_shard(struct esp_safetensors *set, struct shard *shard, char *err,
                      size_t errlen)
{
    unsigned char bytes[LENGTH_BYTES];
    uint64_t length = 0;
    if (shard->size < LENGTH_BYTES)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s is not a safetensors file: %zu bytes",
                        shard->path, shard->size);
    esp_tensor_file_read(&shard->source, 0, bytes, sizeof bytes);
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > ESP_JSON_LIMIT || length > shard->size - LENGTH_BYTES)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s is not a safetensors file, or was cut: its header has %llu bytes, "
                        "the file %zu",
                        shard->path, (unsigned long long)length, shard->size);
    char *text = malloc(length + 1);
    if (!text)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", shard->path);
    esp_tensor_file_read(&shard->source, LENGTH_BYTES, text, length);
    text[length] = '\0';
    cJSON *header;
    int status = esp_json_parse(&header, text, length, shard->path, err, errlen);
    free(text);
    if (status < 0)
        return status;
    status = read_header(set, shard, header, LENGTH_BYTES + (size_t)length, err, errlen);
    cJSON_Delete(header);
    return status;
}

/* The shard belongs to `set` as soon as it is open, so that a failure later closes it. */
static int add_shard(struct esp_safetensors *set, const char *folder, const char *name,
                     char *err, size_t errlen)
{
    struct stat status_of;
    struct shard *shard = calloc(1, sizeof *shard);
    if (!shard)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", name);
    int status = esp_file_open(&shard->source.fd, &shard->size, shard->path, folder, name, err,
                               errlen);
    if (status < 0) {
        free(shard);
        return status;
    }
    set->shards[set->shard_count++] = shard;
    if (fstat(shard->source.fd, &status_of) == 0)
        shard->changed = status_of.st_mtim;
    return read_shard(set, shard, err, errlen);
}

/* ------------------------------------------------------------------ the folder */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the distinct file names of weight_map, sorted; the text belongs to the index. A name
 * must not lead out of the folder. Returns how many there are, or a negative status. */
static int shard_names(const struct esp_json *index, const char ***names, char *err,
                       size_t errlen)
{
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(index->root, "weight_map"), *item;
    int count = 0, distinct = 0;
    if (!cJSON_IsObject(map) || !map->child)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s has no weight_map", index->path);
    *names = malloc((size_t)cJSON_GetArraySize(map) * sizeof **names);
    if (!*names)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", index->path);
    cJSON_ArrayForEach(item, map)
    {
        const char *name = cJSON_GetStringValue(item);
        if (!name || !*name || *name == '.' || strchr(name, '/'))
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "%s: the file of tensor %s is not a plain file name: %s",
                            index->path, item->string, name ? name : "(not text)");
        (*names)[count++] = name;
    }
    qsort(*names, (size_t)count, sizeof **names, by_text);
    for (int i = 0; i < count; i++)
        if (i == 0 || strcmp((*names)[i], (*names)[distinct - 1]) != 0)
            (*names)[distinct++] = (*names)[i];
    if (distinct > MAX_FILES)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED, "%s names %d files; %d is the most",
                        index->path, distinct, MAX_FILES);
    return distinct;
}

static int add_shards(struct esp_safetensors *set, const char *folder, char *err, size_t errlen)
{
    struct esp_json index;
    const char **names = NULL;
    int status = esp_json_read(&index, folder, "model.safetensors.index.json", err, errlen);
    if (status < 0)
        return status;
    int count = shard_names(&index, &names, err, errlen);
    status = count;
    if (count > 0 && !(set->shards = calloc((size_t)count, sizeof *set->shards)))
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", index.path);
    for (int i = 0; i < count && status >= 0; i++)
        status = add_shard(set, folder, names[i], err, errlen);
    free(names);
    esp_json_close(&index);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct esp_stored *)a)->name, ((const struct esp_stored *)b)->name);
}

static int open_all(struct esp_safetensors *set, const char *folder, char *err, size_t errlen)
{
    int status;
    if (esp_file_exists(folder, "model.safetensors")) {
        set->shards = calloc(1, sizeof *set->shards);
        status = set->shards ? add_shard(set, folder, "model.safetensors", err, errlen)
                             : esp_fail(err, errlen, ESP_E_MEMORY,
                                        "not enough memory for %s", folder);
    } else if (esp_file_exists(folder, "model.safetensors.index.json")) {
        status = add_shards(set, folder, err, errlen);
    } else {
        status =
            esp_fail(err, errlen, ESP_E_FILE,
                     "%s holds neither model.safetensors nor model.safetensors.index.json: "
                     "save the model in the safetensors format",
                     folder);
    }
    if (status < 0)
        return status;
    if (set->count > 0)
        qsort(set->tensors, set->count, sizeof *set->tensors, by_name);
    for (size_t i = 1; i < set->count; i++)
        if (by_name(&set->tensors[i - 1], &set->tensors[i]) == 0)
            return esp_fail(err, errlen, ESP_E_FORMAT, "%s: tensor %s is there twice",
                            set->tensors[i].file, set->tensors[i].name);
    return 0;
}

int esp_safetensors_open(struct esp_safetensors **set, const char *folder, char *err,
                         size_t errlen)
{
    *set = calloc(1, sizeof **set);
    if (!*set)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", folder);
    int status = open_all(*set, folder, err, errlen);
    if (status < 0) {
        esp_safetensors_close(*set);
        *set = NULL;
    }
    return status;
}

void esp_safetensors_close(struct esp_safetensors *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++)
        free(set->tensors[i].name);
    for (int i = 0; i < set->shard_count; i++) {
        if (set->shards[i]->source.fd >= 0)
            close(set->shards[i]->source.fd);
        free(set->shards[i]);
    }
    free(set->tensors);
    free(set->shards);
    free(set);
}

static bool as_it_was(const struct shard *shard)
{
    struct stat now;
    return !shard->source.failed && fstat(shard->source.fd, &now) == 0 &&
           (size_t)now.st_size == shard->size && now.st_mtim.tv_sec == shard->changed.tv_sec &&
           now.st_mtim.tv_nsec == shard->changed.tv_nsec;
}

int esp_safetensors_release(struct esp_safetensors *set, char *err, size_t errlen)
{
    int status = 0;
    for (int i = 0; i < set->shard_count; i++) {
        struct shard *shard = set->shards[i];
        if (shard->source.fd < 0)
            continue;
        if (status == 0 && !as_it_was(shard))
            status = esp_fail(err, errlen, ESP_E_FILE,
                              "%s changed while it was read, or could not be read to its end: "
                              "load it again when it is complete",
                              shard->path);
        close(shard->source.fd);
        shard->source.fd = -1;
    }
    return status;
}

struct esp_stored *esp_safetensors_find(const struct esp_safetensors *set, const char *name)
{
    struct esp_stored key = {.name = (char *)name};
    return set->count ? bsearch(&key, set->tensors, set->count, sizeof key, by_name) : NULL;
}

int esp_safetensors_unused(const struct esp_safetensors *set, const char **first)
{
    int count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (!set->tensors[i].used && count++ == 0)
            *first = set->tensors[i].name;
    return count;
}

bool esp_safetensors_has_prefix(const struct esp_safetensors *set, const char *prefix)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < set->count; i++)
        if (strncmp(set->tensors[i].name, prefix, length) == 0)
            return true;
    return false;
}
