/* safetensors.c - reads and checks safetensors files; see safetensors.h.
 *
 * Every number in a file is checked against the size of the file before it is used. The header
 * must be inside the file. The size of each tensor, which follows from its shape and type, must
 * equal its range of bytes. All ranges together must fill the data part without gaps or
 * overlaps. A file that was truncated or extended fails this check.
 */
#include "engine/model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "engine/model/json.h"
#include "engine/model/torch_file.h"
#include "kernels/model_desc.h"

enum { LENGTH_BYTES = 8, MAX_FILES = 4096 };

static const char INDEX[] = "model.safetensors.index.json", TORCH[] = "pytorch_model.bin";

/* Returns the number of bits per element of a type of the format. Returns 0 for an unknown
 * type, which is refused because the size of its tensors cannot be checked. */
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

/* Returns the value of `item` if it is a whole number from 0 to 2^53, all of which a double
 * represents exactly. Otherwise returns -1. */
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

/* Fills `tensor` from a header entry. Returns NULL on success. If the entry is invalid, returns
 * the end of an error message. */
static const char *read_entry(struct esp_stored *tensor, const cJSON *entry, size_t data_size)
{
    const cJSON *type = esp_json_item(entry, "dtype");
    const cJSON *offsets = esp_json_item(entry, "data_offsets");
    int64_t begin = whole(cJSON_GetArrayItem(offsets, 0));
    int64_t end = whole(cJSON_GetArrayItem(offsets, 1));
    int64_t elements, bits;
    if (!cJSON_IsString(type) || type_bits(type->valuestring) == 0)
        return "has an unknown dtype";
    snprintf(tensor->type, sizeof tensor->type, "%s", type->valuestring);
    if (read_shape(tensor, esp_json_item(entry, "shape"), &elements) < 0)
        return "has a bad shape";
    if (cJSON_GetArraySize(offsets) != 2 || begin < 0 || end < begin)
        return "has bad data_offsets";
    if ((uint64_t)end > data_size)
        return "lies outside the file; the file may be truncated, so download it again";
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
                            "%s: tensor %s starts at byte %zu of the data, not at %zu", path,
                            tensors[i].name, tensors[i].begin, end);
    if (end != data_size)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s has %zu bytes of data, but its tensors have %zu", path, data_size,
                        end);
    return 0;
}

static int read_header(struct esp_stored_set *set, struct esp_shard *shard, const cJSON *header,
                       size_t data_at, char *err, size_t errlen)
{
    const cJSON *entry;
    size_t data_size = shard->size - data_at, first = set->count;
    cJSON_ArrayForEach(entry, header)
    {
        if (strcmp(entry->string, "__metadata__") == 0)
            continue;
        struct esp_stored *tensor = esp_stored_add(set, shard, entry->string);
        if (!tensor)
            return esp_no_memory(shard->path, err, errlen);
        const char *wrong = read_entry(tensor, entry, data_size);
        if (wrong)
            return esp_fail(err, errlen, ESP_E_FORMAT, "%s: tensor %s %s", shard->path,
                            entry->string, wrong);
        tensor->offset = data_at + tensor->begin;
    }
    return check_tiling(set->tensors + first, set->count - first, data_size, shard->path, err,
                        errlen);
}

static int read_shard(struct esp_stored_set *set, struct esp_shard *shard, char *err,
                      size_t errlen)
{
    unsigned char bytes[LENGTH_BYTES];
    if (shard->size < LENGTH_BYTES)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s is not a safetensors file: it has only %zu bytes", shard->path,
                        shard->size);
    esp_tensor_file_read(&shard->source, 0, bytes, sizeof bytes);
    const uint64_t length = esp_little_endian(bytes, sizeof bytes);
    if (length > ESP_JSON_LIMIT || length > shard->size - LENGTH_BYTES)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s is not a safetensors file, or is truncated: its header has %llu "
                        "bytes, but the file has %zu",
                        shard->path, (unsigned long long)length, shard->size);
    char *text = malloc(length + 1);
    if (!text)
        return esp_no_memory(shard->path, err, errlen);
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

/* ------------------------------------------------------------------ PyTorch files */

struct torch_shard {
    struct esp_stored_set *set;
    struct esp_shard *shard;
};

static int add_found(void *user, const char *name, const struct esp_stored *found, char *err,
                     size_t errlen)
{
    const struct torch_shard *to = user;
    struct esp_stored *added = esp_stored_add(to->set, to->shard, name);
    if (!added)
        return esp_no_memory(to->shard->path, err, errlen);
    const struct esp_stored own = *added;
    *added = *found;
    added->name = own.name;
    added->source = own.source;
    added->file = own.file;
    return ESP_OK;
}

static int add_shard(struct esp_stored_set *set, const char *folder, const char *name,
                     char *err, size_t errlen)
{
    char path[PATH_MAX];
    struct torch_shard to = {.set = set};
    int status = esp_file_path(path, folder, name, err, errlen);
    if (status == 0)
        status = esp_stored_open_file(set, path, &to.shard, err, errlen);
    if (status < 0)
        return status;
    return strcmp(name, TORCH) == 0
               ? esp_torch_read(&to.shard->source, to.shard->size, to.shard->path, add_found,
                                &to, err, errlen)
               : read_shard(set, to.shard, err, errlen);
}

/* ------------------------------------------------------------------ the folder */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sets *names to a sorted list of the different file names in weight_map. `index` owns the
 * strings. A name that leads out of the folder is refused. Returns the number of names, or a
 * negative status. */
static int shard_names(const struct esp_json *index, const char ***names, char *err,
                       size_t errlen)
{
    const cJSON *map = esp_json_item(index->root, "weight_map"), *item;
    int count = 0, distinct = 0;
    if (!cJSON_IsObject(map) || !map->child)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s has no weight_map", index->path);
    *names = malloc((size_t)cJSON_GetArraySize(map) * sizeof **names);
    if (!*names)
        return esp_no_memory(index->path, err, errlen);
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
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s names %d files; at most %d are supported", index->path, distinct,
                        MAX_FILES);
    return distinct;
}

static int add_shards(struct esp_stored_set *set, const char *folder, char *err, size_t errlen)
{
    struct esp_json index;
    const char **names = NULL;
    int status = esp_json_read(&index, folder, INDEX, err, errlen);
    if (status < 0)
        return status;
    int count = shard_names(&index, &names, err, errlen);
    status = count;
    for (int i = 0; i < count && status >= 0; i++)
        status = add_shard(set, folder, names[i], err, errlen);
    free(names);
    esp_json_close(&index);
    return status;
}

static int open_all(struct esp_stored_set *set, const char *folder, char *err, size_t errlen)
{
    static const char WHOLE[] = "model.safetensors";
    const bool whole = esp_file_exists(folder, WHOLE);
    int status;
    if (!whole && esp_file_exists(folder, INDEX))
        status = add_shards(set, folder, err, errlen);
    else if (whole || esp_file_exists(folder, TORCH))
        status = add_shard(set, folder, whole ? WHOLE : TORCH, err, errlen);
    else
        status = esp_fail(err, errlen, ESP_E_FILE,
                          "%s has neither model.safetensors nor model.safetensors.index.json: "
                          "save the model in the safetensors format, or name a GGUF file",
                          folder);
    if (status == 0)
        status = esp_stored_finish(set, err, errlen);
    return status < 0 ? status : esp_stored_join_scales(set, err, errlen);
}

int esp_safetensors_open(struct esp_stored_set **set, const char *folder, const char *name,
                         char *err, size_t errlen)
{
    *set = calloc(1, sizeof **set);
    if (!*set)
        return esp_no_memory(folder, err, errlen);
    int status =
        name ? add_shard(*set, folder, name, err, errlen) : open_all(*set, folder, err, errlen);
    if (status == 0 && name)
        status = esp_stored_finish(*set, err, errlen);
    if (status < 0) {
        esp_stored_close(*set);
        *set = NULL;
    }
    return status;
}
