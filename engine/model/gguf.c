/* gguf.c - reads the header of a GGUF file; see gguf.h.
 *
 * The file does not say how long its header is. Therefore the first FIRST_READ bytes are read
 * and parsed. If the header is longer, a larger part of the file is read and parsed from the
 * start. Parsing has three possible results: the header is complete, more bytes are needed, or
 * the header is wrong. Values are not copied: a struct esp_gguf_value points into the header.
 */
#include "engine/model/gguf.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/json.h"
#include "engine/support/utf8_stream.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

enum {
    FIRST_READ = 1 << 16,     /* bytes read first: enough for a header without a vocabulary */
    MORE_READ = 4,            /* if the header is longer than the bytes read, the next read is
                                 this many times as large */
    HEADER_LIMIT = 256 << 20, /* bytes */
    VALUE_LIMIT = 1 << 16,
    TENSOR_LIMIT = 1 << 20,
    NAME_LIMIT = 255, /* maximum length of a tensor's name, in bytes */
    SMALLEST_FILE = 4 + 4 + 8 + 8,
    SMALLEST_VALUE = 8 + 4 + 1,
    SMALLEST_TENSOR = 8 + 4 + 4 + 8,
};

/* Lists the types of tensors. The types with which espalier can compute come first, in the
 * order of enum esp_dtype. After them come other types that files can have. */
// clang-format off
static const struct esp_gguf_type types[] = {
#define X(name, gguf, numbers, bytes, ...) {#name, gguf, numbers, bytes},
    ESP_DTYPES(X)
#undef X
    {"Q4_1", 3, 32, 20},      {"Q5_1", 7, 32, 24},     {"Q8_1", 9, 32, 36},
    {"Q2_K", 10, 256, 84},    {"Q3_K", 11, 256, 110},  {"Q8_K", 15, 256, 292},
    {"IQ2_XXS", 16, 256, 66}, {"IQ2_XS", 17, 256, 74}, {"IQ3_XXS", 18, 256, 98},
    {"IQ1_S", 19, 256, 50},   {"IQ3_S", 21, 256, 110}, {"IQ2_S", 22, 256, 82},
    {"IQ4_XS", 23, 256, 136}, {"I8", 24, 1, 1},        {"I16", 25, 1, 2},
    {"I32", 26, 1, 4},        {"I64", 27, 1, 8},       {"F64", 28, 1, 8},
    {"IQ1_M", 29, 256, 56},   {"TQ1_0", 34, 256, 54},  {"TQ2_0", 35, 256, 66},
};
// clang-format on

enum { TYPES = sizeof types / sizeof *types };

const struct esp_gguf_type *esp_gguf_type(uint32_t number)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

const struct esp_gguf_type *esp_gguf_type_of(enum esp_dtype dtype)
{
    return &types[dtype];
}

/* ------------------------------------------------------------------ the parser */

struct parser {
    const unsigned char *bytes;
    size_t at, size; /* at: offset of the next byte to parse; size: bytes read so far */
    size_t whole;    /* size of the file */
    bool more;       /* true: the header is longer than `size` */
    int status;      /* the first failure; nothing is read after it */
    char *err;
    size_t errlen;
    const char *path;
};

static void wrong(struct parser *p, const char *what)
{
    if (p->status == ESP_OK)
        p->status = esp_fail(p->err, p->errlen, ESP_E_FORMAT, "%s: %s", p->path, what);
}

static void cut(struct parser *p)
{
    wrong(p, "the header goes beyond the end of the file; the file may be truncated, so "
             "download it again");
}

/* Returns the next `count` bytes, or NULL if they were not read yet or do not exist. */
static const unsigned char *take(struct parser *p, uint64_t count)
{
    if (count > p->whole - p->at)
        cut(p);
    if (p->status == ESP_OK && count > p->size - p->at) {
        p->more = true;
        p->status = ESP_E_FORMAT;
    }
    if (p->status < 0)
        return NULL;
    p->at += (size_t)count;
    return p->bytes + p->at - count;
}

/* Reads a number of `bytes` bytes. Returns 0 after a failure. */
static uint64_t read_number(struct parser *p, size_t bytes)
{
    const unsigned char *at = take(p, bytes);
    return at ? esp_little_endian(at, bytes) : 0;
}

static struct esp_gguf_text read_text(struct parser *p)
{
    const uint64_t length = read_number(p, 8);
    const unsigned char *at = take(p, length);
    return (struct esp_gguf_text){(const char *)at, at ? (size_t)length : 0};
}

/* Returns the size in bytes of a value of this kind, or 0 for texts and arrays, which have no
 * fixed size. */
static size_t kind_size(uint64_t kind)
{
    static const unsigned char sizes[ESP_GGUF_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kind < ESP_GGUF_KINDS ? sizes[kind] : 0;
}

/* Skips `count` elements. They can be arrays, but not arrays of arrays: no files use these. */
static void skip_elements(struct parser *p, uint64_t kind, uint64_t count, bool nested)
{
    const bool fixed = kind_size(kind) > 0;
    uint64_t bytes = 0;
    if (kind >= ESP_GGUF_KINDS || (kind == ESP_GGUF_ARRAY && nested))
        wrong(p, "a value has an unknown type");
    /* Each text or array takes at least the eight bytes of its length. */
    if (fixed ? __builtin_mul_overflow(count, (uint64_t)kind_size(kind), &bytes)
              : count > (p->whole - p->at) / 8)
        cut(p);
    if (fixed) {
        take(p, bytes);
        return;
    }
    for (uint64_t i = 0; i < count && p->status == ESP_OK; i++)
        if (kind == ESP_GGUF_TEXT) {
            read_text(p);
        } else {
            const uint64_t inner_kind = read_number(p, 4);
            skip_elements(p, inner_kind, read_number(p, 8), true);
        }
}

static void read_value(struct parser *p, struct esp_gguf_value *value)
{
    value->key = read_text(p);
    value->count = 1;
    uint64_t kind = read_number(p, 4);
    if (kind == ESP_GGUF_ARRAY) {
        value->array = true;
        kind = read_number(p, 4);
        value->count = read_number(p, 8);
    }
    size_t start = p->at;
    skip_elements(p, kind, value->count, false);
    value->kind = (enum esp_gguf_kind)kind;
    value->bytes = p->bytes + start;
    value->size = p->at - start;
}

static void tensor_wrong(struct parser *p, const struct esp_gguf_tensor *tensor,
                         const char *what)
{
    if (p->status == ESP_OK)
        p->status = esp_fail(p->err, p->errlen, ESP_E_FORMAT, "%s: tensor %.*s %s", p->path,
                             (int)tensor->name.length, tensor->name.bytes, what);
}

static const char OUTSIDE[] = "lies outside the file; the file may be truncated, so download "
                              "it again";

/* Reads one entry of the list of tensors. tensor->offset is relative to the data, which begin
 * after the header; place_tensors() makes it absolute. */
static void read_tensor(struct parser *p, struct esp_gguf_tensor *tensor)
{
    tensor->name = read_text(p);
    if (tensor->name.length == 0 || tensor->name.length > NAME_LIMIT ||
        !esp_gguf_is_plain(tensor->name))
        wrong(p, "the name of a tensor is empty, too long or not UTF-8 text");
    const uint64_t rank = read_number(p, 4);
    if (rank > ESP_GGUF_RANK)
        tensor_wrong(p, tensor, "has more than 4 dimensions");
    for (uint64_t i = 0; i < rank && p->status == ESP_OK; i++)
        tensor->shape[i] = (int64_t)read_number(p, 8);
    tensor->type = (uint32_t)read_number(p, 4);
    const uint64_t offset = read_number(p, 8);
    if (p->status < 0)
        return;

    const struct esp_gguf_type *known = esp_gguf_type(tensor->type);
    int64_t elements = 1;
    if (!known) {
        p->status =
            esp_fail(p->err, p->errlen, ESP_E_UNSUPPORTED,
                     "%s: tensor %.*s is stored as type %u, which is unknown", p->path,
                     (int)tensor->name.length, tensor->name.bytes, (unsigned)tensor->type);
        return;
    }
    for (uint64_t i = 0; i < rank && p->status == ESP_OK; i++)
        if (tensor->shape[i] < 0 ||
            __builtin_mul_overflow(elements, tensor->shape[i], &elements))
            tensor_wrong(p, tensor, "has a bad shape");
    /* No type takes more than 8 bytes per number, so the size below does not overflow. */
    if (elements > INT64_MAX / 16 || (rank > 0 ? tensor->shape[0] : 1) % known->block != 0)
        tensor_wrong(p, tensor, "has a row length that is not a multiple of its block size");
    if (p->status < 0)
        return;
    tensor->rank = (int)rank;
    tensor->bytes = (size_t)(elements / known->block) * (size_t)known->bytes;
    if (offset > p->whole || tensor->bytes > p->whole - offset)
        tensor_wrong(p, tensor, OUTSIDE);
    tensor->offset = (size_t)offset;
}

static void read_start(struct parser *p, uint64_t *tensors, uint64_t *values)
{
    if (p->whole < SMALLEST_FILE)
        p->status = esp_fail(p->err, p->errlen, ESP_E_FORMAT,
                             "%s is not a GGUF file, or is truncated: it has %zu bytes",
                             p->path, p->whole);
    const uint64_t magic = read_number(p, 4), version = read_number(p, 4);
    if (p->status == ESP_OK && magic != 0x46554747)
        p->status = esp_fail(p->err, p->errlen, ESP_E_FORMAT,
                             "%s is not a GGUF file: it does not begin with GGUF", p->path);
    if (p->status == ESP_OK && version != 2 && version != 3)
        p->status =
            esp_fail(p->err, p->errlen, ESP_E_UNSUPPORTED,
                     "%s has version %u of GGUF; only the little-endian versions 2 and 3 are "
                     "supported",
                     p->path, (unsigned)version);
    *tensors = read_number(p, 8);
    *values = read_number(p, 8);
    if (*tensors > TENSOR_LIMIT || *tensors > p->whole / SMALLEST_TENSOR)
        wrong(p, "the header announces more tensors than the file has room for");
    if (*values > VALUE_LIMIT || *values > p->whole / SMALLEST_VALUE)
        wrong(p, "the header announces more keys than the file has room for");
}

/* Makes the tensors' offsets absolute: the data begin at the first aligned byte after the
 * header. */
static void place_tensors(struct esp_gguf *g, struct parser *p)
{
    const double number = esp_gguf_number_of(g, "general.alignment", ESP_GGUF_ALIGNMENT);
    if (!(number >= 1 && number <= 1 << 20) || ((uint32_t)number & ((uint32_t)number - 1)) != 0)
        wrong(p, "general.alignment is not a power of two from 1 to 1048576");
    if (p->status < 0)
        return;
    const size_t alignment = (size_t)number;
    g->data = (p->at + alignment - 1) / alignment * alignment;
    for (size_t i = 0; i < g->tensor_count; i++) {
        struct esp_gguf_tensor *t = &g->tensors[i];
        if (t->offset % alignment != 0)
            tensor_wrong(p, t, "does not start at an aligned byte");
        if (t->bytes > 0 && (g->data > p->whole || t->offset > p->whole - g->data ||
                             t->bytes > p->whole - g->data - t->offset))
            tensor_wrong(p, t, OUTSIDE);
        t->offset += g->data;
    }
}

static void parse(struct esp_gguf *g, struct parser *p)
{
    uint64_t tensors = 0, values = 0;
    read_start(p, &tensors, &values);
    if (p->status < 0)
        return;
    g->values = calloc((size_t)values + 1, sizeof *g->values);
    g->tensors = calloc((size_t)tensors + 1, sizeof *g->tensors);
    if (!g->values || !g->tensors)
        p->status = esp_no_memory(p->path, p->err, p->errlen);
    for (; g->value_count < values && p->status == ESP_OK; g->value_count++)
        read_value(p, &g->values[g->value_count]);
    for (; g->tensor_count < tensors && p->status == ESP_OK; g->tensor_count++)
        read_tensor(p, &g->tensors[g->tensor_count]);
    if (p->status == ESP_OK)
        place_tensors(g, p);
}

/* ------------------------------------------------------------------ the file */

bool esp_gguf_is(const char *path)
{
    char magic[4];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is = fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic &&
              memcmp(magic, "GGUF", sizeof magic) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

void esp_gguf_close(struct esp_gguf *g)
{
    free(g->values);
    free(g->tensors);
    free(g->header);
    g->values = NULL;
    g->tensors = NULL;
    g->header = NULL;
    g->value_count = g->tensor_count = 0;
}

int esp_gguf_open(struct esp_gguf *g, struct esp_stored_set *set, const char *path, char *err,
                  size_t errlen)
{
    memset(g, 0, sizeof *g);
    int status = esp_stored_open_file(set, path, &g->shard, err, errlen);
    if (status < 0)
        return status;
    g->path = g->shard->path;
    for (size_t room = FIRST_READ;; room *= MORE_READ) {
        size_t size = g->shard->size < room ? g->shard->size : room;
        struct parser p = {.size = size,
                           .whole = g->shard->size,
                           .err = err,
                           .errlen = errlen,
                           .path = g->path};
        esp_gguf_close(g);
        if (room > HEADER_LIMIT)
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "%s has a header of more than %d MiB, which is not supported",
                            g->path, HEADER_LIMIT >> 20);
        g->header = malloc(size + 1);
        if (!g->header)
            return esp_no_memory(g->path, err, errlen);
        esp_tensor_file_read(&g->shard->source, 0, g->header, size);
        p.bytes = g->header;
        parse(g, &p);
        if (!p.more) {
            if (p.status < 0)
                esp_gguf_close(g);
            return p.status;
        }
    }
}

int esp_gguf_open_first(struct esp_gguf *g, struct esp_stored_set *set, const char *path,
                        char *err, size_t errlen)
{
    char first[PATH_MAX];
    int status = esp_gguf_open(g, set, path, err, errlen);
    if (status < 0)
        return status;
    const double parts = esp_gguf_number_of(g, "split.count", 0);
    if (!(esp_gguf_number_of(g, "split.no", 0) > 0) || !(parts > 1 && parts <= 99999) ||
        !esp_gguf_part(first, path, 1, (int)parts))
        return ESP_OK;
    esp_gguf_close(g);
    esp_stored_drop_file(set);
    return esp_gguf_open(g, set, first, err, errlen);
}

bool esp_gguf_part(char part[PATH_MAX], const char *path, int number, int count)
{
    static const char form[] = "-00001-of-00001.gguf";
    const size_t tail = sizeof form - 1, length = strlen(path);
    if (length <= tail || number < 1 || count < 1 || number > 99999 || count > 99999)
        return false;
    for (size_t i = 0; i < tail; i++) {
        char c = path[length - tail + i];
        if (form[i] == '0' || form[i] == '1' ? c < '0' || c > '9' : c != form[i])
            return false;
    }
    return snprintf(part, PATH_MAX, "%.*s-%05d-of-%05d.gguf", (int)(length - tail), path,
                    number, count) < PATH_MAX;
}

/* ------------------------------------------------------------------ values */

const struct esp_gguf_value *esp_gguf_find(const struct esp_gguf *g, const char *key)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (esp_gguf_is_text(g->values[i].key, key))
            return &g->values[i];
    return NULL;
}

double esp_gguf_number_of(const struct esp_gguf *g, const char *key, double otherwise)
{
    const struct esp_gguf_value *value = esp_gguf_find(g, key);
    return value ? esp_gguf_number(value, 0) : otherwise;
}

double esp_gguf_number(const struct esp_gguf_value *value, uint64_t index)
{
    const size_t size = kind_size(value->kind);
    if (size == 0 || index >= value->count)
        return NAN;
    uint64_t bits = esp_little_endian(value->bytes + index * size, size);
    uint32_t half = (uint32_t)bits;
    float single;
    double number;
    switch (value->kind) {
    case ESP_GGUF_I8:
        return (int8_t)bits;
    case ESP_GGUF_I16:
        return (int16_t)bits;
    case ESP_GGUF_I32:
        return (int32_t)bits;
    case ESP_GGUF_I64:
        return (double)(int64_t)bits;
    case ESP_GGUF_F32:
        memcpy(&single, &half, sizeof single);
        return single;
    case ESP_GGUF_F64:
        memcpy(&number, &bits, sizeof number);
        return number;
    case ESP_GGUF_BOOL:
        return bits != 0;
    default:
        return (double)bits;
    }
}

bool esp_gguf_next_text(const struct esp_gguf_value *value, const unsigned char **at,
                        struct esp_gguf_text *text)
{
    const unsigned char *from = *at ? *at : value->bytes;
    if (value->kind != ESP_GGUF_TEXT || from >= value->bytes + value->size)
        return false;
    text->length = (size_t)esp_little_endian(from, 8); /* checked when the header was read */
    text->bytes = (const char *)from + 8;
    *at = from + 8 + text->length;
    return true;
}

bool esp_gguf_is_plain(struct esp_gguf_text text)
{
    int n;
    for (size_t i = 0; i < text.length; i += (size_t)n) {
        n = esp_utf8_sequence(text.bytes + i, text.length - i);
        if (n <= 0 || text.bytes[i] == '\0')
            return false;
    }
    return true;
}

bool esp_gguf_is_text(struct esp_gguf_text text, const char *same)
{
    return text.length == strlen(same) && memcmp(text.bytes, same, text.length) == 0;
}

char *esp_gguf_copy_plain(struct esp_gguf_text text)
{
    return esp_gguf_is_plain(text) ? strndup(text.bytes, text.length) : NULL;
}

char *esp_gguf_copy_text(const struct esp_gguf_value *value)
{
    const unsigned char *at = NULL;
    struct esp_gguf_text text;
    return value && !value->array && esp_gguf_next_text(value, &at, &text)
               ? esp_gguf_copy_plain(text)
               : NULL;
}
