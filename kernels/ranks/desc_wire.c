/* desc_wire.c - see desc_wire.h.
 *
 * The bytes are in this order: the description, its arrays, the files, the layers, the experts.
 * Then there is one struct place for each tensor, in the order of walk().
 */
#include "kernels/ranks/desc_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/model_desc.h"

enum { MOST_FILES = 4096, MOST_PATH = 4096, MOST_LAYERS = 1 << 16, MOST_EXPERTS = 1 << 16 };

/* Says where the values of a tensor are stored. */
enum where { NOWHERE, IN_FILE, IN_MEMORY, QUANTISED };
struct place {
    int32_t where;
    int32_t file, scale_file; /* scale_file = -1 means no scales */
};

/* ------------------------------------------------------------------ the tensors of a model */

static const size_t of_model[] = {
#define T(name) offsetof(struct esp_model_desc, name),
    T(fc) T(fc_bias) T(norm_input) T(position_embedding) T(embedding) T(head) T(norm_final)
        T(norm_final_bias)
#undef T
};
static const size_t of_layer[] = {
#define T(name) offsetof(struct esp_layer, name),
    ESP_LAYER_VECTORS(T) T(query) T(query_bias) T(key) T(key_bias) T(value) T(value_bias)
        T(output) T(output_bias) T(gate) T(gate_bias) T(up) T(up_bias) T(down) T(down_bias)
            T(router) T(router_bias) T(shared_gate) T(attention_gate) T(conv_in) T(conv_in_bias)
                T(in_gate) T(in_gate_bias) T(out_gate) T(out_gate_bias) T(write) T(decay)
                    T(conv) T(mixed) T(mixed_bias)
#undef T
};
static const size_t of_expert[] = {
#define T(name) offsetof(struct esp_expert, name),
    T(gate) T(gate_bias) T(up) T(up_bias) T(down) T(down_bias)
#undef T
};

typedef void visit(void *user, struct esp_tensor *tensor);

static void walk_struct(void *of, const size_t *offset, size_t count, visit *each, void *user)
{
    for (size_t i = 0; i < count; i++)
        each(user, (struct esp_tensor *)(void *)((char *)of + offset[i]));
}

#define WALK(of, list) walk_struct(of, list, sizeof list / sizeof *list, each, user)

static void walk(struct esp_model_desc *d, visit *each, void *user)
{
    WALK(d, of_model);
    for (int i = 0; i < d->layers; i++) {
        WALK(&d->layer[i], of_layer);
        for (int e = 0; d->layer[i].expert && e < d->experts; e++)
            WALK(&d->layer[i].expert[e], of_expert);
    }
}

/* ------------------------------------------------------------------ writing */

void esp_wire_write(struct esp_wire *w, const void *bytes, size_t size)
{
    if (w->failed || size > SIZE_MAX / 4 - w->size) {
        w->failed = true;
        return;
    }
    if (w->size + size > w->room) {
        const size_t room = 2 * (w->size + size);
        char *more = realloc(w->bytes, room);
        w->failed = !more;
        if (!more)
            return;
        w->bytes = more;
        w->room = room;
    }
    memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
}

#define WRITE(w, value) esp_wire_write(w, &(value), sizeof(value))

static uint64_t fnv(uint64_t hash, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/* Hashes the size and 64 pieces of an open file. */
static uint64_t hash_file(int fd, uint64_t size)
{
    enum { PIECES = 64, BYTES = 4096 };
    unsigned char piece[BYTES];
    uint64_t hash = fnv(0xcbf29ce484222325u, (unsigned char *)&size, sizeof size);
    for (uint64_t i = 0; i < PIECES; i++) {
        const uint64_t at = size > BYTES ? (size - BYTES) / (PIECES - 1) * i : 0;
        const ssize_t n = pread(fd, piece, sizeof piece, (off_t)at);
        hash = fnv(hash, piece, n > 0 ? (size_t)n : 0);
    }
    return hash;
}

struct writing {
    struct esp_wire *wire;
    struct esp_tensor_file *file[MOST_FILES];
    int files;
};

static int file_number(struct writing *w, struct esp_tensor_file *file)
{
    for (int i = 0; i < w->files; i++)
        if (w->file[i] == file)
            return i;
    if (w->files == MOST_FILES) {
        w->wire->failed = true;
        return 0;
    }
    w->file[w->files] = file;
    return w->files++;
}

static bool is_in_file(const struct esp_tensor *t)
{
    return t->source && !t->listed && t->source->fd >= 0 && t->source->path &&
           (!t->scales || (t->scale_source && t->scale_source->path));
}

static struct place place_of(struct writing *w, const struct esp_tensor *t)
{
    struct place place = {NOWHERE, -1, -1};
    if (!t->data)
        return place;
    if (t->original && (is_in_file(t->original) || t->original->original))
        place.where = QUANTISED;
    else
        place.where = !t->original && is_in_file(t) ? IN_FILE : IN_MEMORY;
    if (place.where == IN_FILE) {
        place.file = file_number(w, t->source);
        place.scale_file = t->scales ? file_number(w, t->scale_source) : -1;
    }
    return place;
}

static void note_files(void *user, struct esp_tensor *t)
{
    const struct place place = place_of(user, t);
    if (place.where == QUANTISED)
        note_files(user, (struct esp_tensor *)t->original);
}

/* Writes the rows of a tensor one after another. */
static void write_rows(struct esp_wire *w, const struct esp_tensor *t)
{
    const size_t bytes = esp_dtype_row_bytes(t->dtype, t->columns);
    char *row = malloc(bytes);
    w->failed = w->failed || !row;
    for (int i = 0; i < t->rows && !w->failed; i++) {
        esp_tensor_copy_rows(t, i, 1, row);
        esp_wire_write(w, row, bytes);
    }
    free(row);
}

static void write_tensor(void *user, struct esp_tensor *t)
{
    struct writing *w = user;
    const struct place place = place_of(w, t);
    WRITE(w->wire, place);
    if (place.where == IN_MEMORY)
        write_rows(w->wire, t);
    if (place.where == QUANTISED) {
        esp_wire_write(w->wire, t->original, sizeof *t->original);
        write_tensor(user, (struct esp_tensor *)t->original);
    }
}

static void write_files(struct writing *w)
{
    WRITE(w->wire, w->files);
    for (int i = 0; i < w->files; i++) {
        struct stat about = {.st_size = 0};
        const uint32_t length = (uint32_t)strlen(w->file[i]->path);
        if (fstat(w->file[i]->fd, &about) != 0)
            about.st_size = 0;
        const uint64_t size = (uint64_t)about.st_size, hash = hash_file(w->file[i]->fd, size);
        WRITE(w->wire, length);
        esp_wire_write(w->wire, w->file[i]->path, length);
        WRITE(w->wire, size);
        WRITE(w->wire, hash);
    }
}

static void write_array(struct esp_wire *w, const void *values, size_t count, size_t size)
{
    const bool there = values != NULL;
    WRITE(w, there);
    if (there)
        esp_wire_write(w, values, count * size);
}

void esp_desc_write(struct esp_wire *wire, const struct esp_model_desc *desc)
{
    struct esp_model_desc d =
        *desc; /* a copy: its members are changed, but never the data to which they point */
    struct writing *w = calloc(1, sizeof *w);
    if (!w) {
        wire->failed = true;
        return;
    }
    const size_t half = (size_t)d.rotary / 2;
    w->wire = wire;
    WRITE(wire, d);
    write_array(wire, d.inverse_frequency, half, sizeof(float));
    write_array(wire, d.local_inverse_frequency, half, sizeof(float));
    write_array(wire, d.output_token, (size_t)d.outputs, sizeof(int32_t));
    walk(&d, note_files, w);
    write_files(w);
    esp_wire_write(wire, d.layer, (size_t)d.layers * sizeof *d.layer);
    for (int i = 0; i < d.layers; i++)
        write_array(wire, d.layer[i].expert, (size_t)d.experts, sizeof *d.layer[i].expert);
    walk(&d, write_tensor, w);
    free(w);
}

/* ------------------------------------------------------------------ reading */

struct reading {
    struct esp_desc_copy *copy;
    const char *at;
    size_t left;
    bool failed;
    char *err;
    size_t errlen;
};

static void take(struct reading *r, void *to, size_t size)
{
    if (r->failed || size > r->left) {
        r->failed = true;
        memset(to, 0, size);
        return;
    }
    memcpy(to, r->at, size);
    r->at += size;
    r->left -= size;
}

#define TAKE(r, value) take(r, &(value), sizeof(value))

/* Allocates memory for the copy and fills it with the next bytes. Returns NULL on failure. */
static void *take_block(struct reading *r, size_t count, size_t size)
{
    struct esp_desc_copy *c = r->copy;
    size_t bytes;
    if (r->failed || __builtin_mul_overflow(count, size, &bytes) || bytes > r->left) {
        r->failed = true;
        return NULL;
    }
    if (c->blocks == c->room) {
        const size_t room = 2 * c->room + 64;
        void **more = realloc(c->block, room * sizeof *more);
        if (more)
            c->block = more;
        r->failed = !more;
        c->room = more ? room : c->room;
    }
    void *block = r->failed ? NULL : malloc(bytes + 1);
    if (!block) {
        r->failed = true;
        return NULL;
    }
    c->block[c->blocks++] = block;
    take(r, block, bytes);
    return block;
}

static void *take_array(struct reading *r, size_t count, size_t size)
{
    bool there = false;
    TAKE(r, there);
    return there ? take_block(r, count, size) : NULL;
}

static int open_file(struct reading *r, struct esp_tensor_file *file)
{
    uint32_t length = 0;
    uint64_t size = 0, hash = 0;
    struct stat about;
    TAKE(r, length);
    if (length == 0 || length >= MOST_PATH)
        r->failed = true;
    char *path = take_block(r, length, 1);
    TAKE(r, size);
    TAKE(r, hash);
    if (!path || r->failed)
        return ESP_E_FORMAT;
    path[length] = '\0';
    file->path = path;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &about) != 0)
        return esp_fail(r->err, r->errlen, ESP_E_FILE, "%s cannot be opened: %s", path,
                        strerror(errno));
    if ((uint64_t)about.st_size != size)
        return esp_fail(r->err, r->errlen, ESP_E_MISMATCH,
                        "%s has %llu bytes, but %llu bytes on the machine of rank 0; every "
                        "rank needs the same file",
                        path, (unsigned long long)about.st_size, (unsigned long long)size);
    return hash_file(file->fd, size) == hash
               ? (int)ESP_OK
               : esp_fail(r->err, r->errlen, ESP_E_MISMATCH,
                          "%s differs from the file on the machine of rank 0; every rank "
                          "needs the same file",
                          path);
}

static int open_files(struct reading *r)
{
    int count = 0, status = ESP_OK;
    TAKE(r, count);
    if (count < 0 || count > MOST_FILES)
        r->failed = true;
    if (r->failed)
        return ESP_E_FORMAT;
    r->copy->file = calloc((size_t)count + 1, sizeof *r->copy->file);
    if (!r->copy->file)
        return ESP_E_MEMORY;
    for (int i = 0; i < count && status == ESP_OK; i++) {
        r->copy->file[i].fd = -1;
        r->copy->files = i + 1;
        status = open_file(r, &r->copy->file[i]);
    }
    return status;
}

static struct esp_tensor_file *file_at(struct reading *r, int number)
{
    if (number >= 0 && number < r->copy->files)
        return &r->copy->file[number];
    r->failed = true;
    return NULL;
}

/* Checks the values that are used as divisors or factors when rows are read.
 * esp_model_desc_check() checks everything else. */
static bool is_sound(const struct esp_tensor *t)
{
    return (unsigned)t->dtype < ESP_DTYPE_COUNT && t->rows > 0 && t->columns > 0 &&
           t->rows <= INT32_MAX / 2 && t->columns <= INT32_MAX / 2 && t->block > 0 &&
           t->stride > 0 && t->paired >= 0 && t->transposed >= 0 && t->stored_rows >= 0 &&
           t->columns % esp_dtype_block(t->dtype) == 0 &&
           (t->stored_rows == 0 || (t->stored_columns > 0 && !esp_dtype_quantised(t->dtype) &&
                                    t->columns % t->stored_columns == 0));
}

static void read_memory(struct reading *r, struct esp_tensor *t)
{
    *t = (struct esp_tensor){.dtype = t->dtype,
                             .rows = t->rows,
                             .columns = t->columns,
                             .block = t->rows,
                             .stride = t->rows,
                             .added = t->added,
                             .logarithm = t->logarithm};
    t->data = take_block(r, (size_t)t->rows, esp_dtype_row_bytes(t->dtype, t->columns));
}

static void read_tensor(void *user, struct esp_tensor *t)
{
    struct reading *r = user;
    struct place place = {NOWHERE, -1, -1};
    TAKE(r, place);
    if (place.where == NOWHERE || r->failed || !is_sound(t)) {
        r->failed = r->failed || place.where != NOWHERE;
        *t = (struct esp_tensor){.data = NULL};
        return;
    }
    t->original = NULL;
    t->listed = NULL;
    t->source = t->scale_source = NULL;
    if (place.where == IN_MEMORY) {
        read_memory(r, t);
    } else if (place.where == IN_FILE) {
        t->data = t->source = file_at(r, place.file);
        t->scale_source = place.scale_file >= 0 ? file_at(r, place.scale_file) : NULL;
        t->scales = t->scale_source;
    } else {
        struct esp_tensor *original = take_block(r, 1, sizeof *original);
        if (!original)
            return;
        read_tensor(r, original);
        t->data = original->data;
        t->original = original;
        t->source = &r->copy->none;
        t->scales = NULL;
    }
}

static void read_layers(struct reading *r)
{
    struct esp_model_desc *d = &r->copy->desc;
    if (d->layers < 1 || d->layers > MOST_LAYERS || d->experts < 0 || d->experts > MOST_EXPERTS)
        r->failed = true;
    d->layer = take_block(r, r->failed ? 0 : (size_t)d->layers, sizeof *d->layer);
    for (int i = 0; i < d->layers && !r->failed; i++)
        d->layer[i].expert = take_array(r, (size_t)d->experts, sizeof *d->layer[i].expert);
    if (!r->failed)
        walk(d, read_tensor, r);
}

int esp_desc_read(struct esp_desc_copy *copy, const void *bytes, size_t size, char *err,
                  size_t errlen)
{
    struct reading r = {.copy = copy, .at = bytes, .left = size, .err = err, .errlen = errlen};
    struct esp_model_desc *d = &copy->desc;
    memset(copy, 0, sizeof *copy);
    copy->none.fd = -1;
    esp_fail(err, errlen, 0, "the description of the model ends too early");
    TAKE(&r, *d);
    d->lender = NULL;
    d->layer = NULL;
    if (d->rotary < 0 || d->outputs < 1)
        r.failed = true;
    const size_t half = r.failed ? 0 : (size_t)d->rotary / 2;
    d->inverse_frequency = take_array(&r, half, sizeof(float));
    d->local_inverse_frequency = take_array(&r, half, sizeof(float));
    d->output_token = take_array(&r, r.failed ? 0 : (size_t)d->outputs, sizeof(int32_t));
    const int status = r.failed ? (int)ESP_E_FORMAT : open_files(&r);
    if (status < 0)
        return status;
    read_layers(&r);
    return r.failed ? ESP_E_FORMAT : ESP_OK;
}

int esp_desc_close_files(struct esp_desc_copy *copy, char *err, size_t errlen)
{
    int status = copy->none.failed ? esp_fail(err, errlen, ESP_E_MEMORY,
                                              "not enough memory to quantise the model")
                                   : (int)ESP_OK;
    for (int i = 0; i < copy->files; i++) {
        if (copy->file[i].failed)
            status = esp_fail(err, errlen, ESP_E_FILE,
                              "%s could not be read to its end, or changed while it was read",
                              copy->file[i].path);
        if (copy->file[i].fd >= 0)
            close(copy->file[i].fd);
        copy->file[i].fd = -1;
    }
    return status;
}

void esp_desc_copy_close(struct esp_desc_copy *copy)
{
    char err[1];
    esp_desc_close_files(copy, err, sizeof err);
    for (size_t i = 0; i < copy->blocks; i++)
        free(copy->block[i]);
    free(copy->block);
    free(copy->file);
    memset(copy, 0, sizeof *copy);
}
