/* inflate.c - enlarges a model so that it computes the same function with more arithmetic; see
 * inflate.h.
 *
 * It is for measurements: the result is a large model with the acceptance rate of a trained
 * one, without the download of a large model. Every hidden dimension, head and MLP unit is
 * repeated `width` times, one copy after the other. The norm of a repeated vector is the
 * repeated norm. A product that adds up `width` equal copies gives the old result if its
 * weights are divided by `width`. `width` is a power of two, so nothing is rounded. The
 * embedding is only repeated. Added layers are copies with zeros as their last matrices: they
 * compute everything and add nothing. Of a mixture, the experts become larger, not more: the
 * router's logits stay the same.
 *
 * The architecture's tables list the tensors and the meaning of their dimensions.
 */
#include "engine/model/inflate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/architecture.h"
#include "engine/model/gguf.h"
#include "engine/model/multimodal.h"
#include "kernels/status.h"
#include "kernels/model_desc.h"
#include "engine/model/stored.h"
#include "engine/support/part_file.h"

enum { MOST_NAME = 256 };

/* One tensor of the new file. */
struct made {
    char name[MOST_NAME];
    const struct esp_stored *from;
    bool repeat_rows, repeat_columns, divide, zero;
};

struct inflation {
    struct esp_model *model;
    const struct esp_architecture *architecture;
    int width, layers;
    struct made *made; /* (room) */
    int count, room;
    char folder[PATH_MAX]; /* being written */
    char *err;
    size_t errlen;
};

static const struct esp_architecture *const architectures[] = {
#define X(name) &esp_architecture_##name,
#include "engine/model/architectures.def"
#undef X
};

static int64_t columns_of(const struct esp_stored *t)
{
    return t->rank > 1 ? t->shape[1] : 1;
}

/* How a tensor is enlarged. */
struct growth {
    bool repeat_rows, repeat_columns, divide;
};

static struct growth growth_of(const struct esp_tensor_rule *rule, bool embedding)
{
    const bool columns = rule->columns != ESP_ONE;
    return (struct growth){.repeat_rows = rule->rows != ESP_VOCABULARY &&
                                          rule->rows != ESP_HEAD && rule->rows != ESP_EXPERTS,
                           .repeat_columns = columns,
                           .divide = columns && !embedding};
}

static bool is_embedding(const struct esp_tensor_rule *rule)
{
    return rule->slot == offsetof(struct esp_model_desc, embedding);
}

static int refuse_type(const char *type, const char *path, char *err, size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "%s holds %s; only F32 and BF16 can be enlarged without rounding", path,
                    type);
}

static const struct esp_architecture *architecture_of(const struct esp_model *model)
{
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (strcmp(architectures[i]->name, model->architecture) == 0)
            return architectures[i];
    return NULL;
}

/* ------------------------------------------------------------------ what is to be written */

static int add(struct inflation *n, const char *name, const char *from, struct growth growth,
               bool zero)
{
    const size_t prefix = strlen(n->architecture->family->prefix);
    const struct esp_stored *stored = esp_stored_find(n->model->files, from);
    if (!stored && strncmp(from, n->architecture->family->prefix, prefix) == 0)
        stored = esp_stored_find(n->model->files, from + prefix); /* the bare model */
    if (!stored)
        return ESP_OK; /* this model does not have it */
    if (strcmp(stored->type, "F32") != 0 && strcmp(stored->type, "BF16") != 0)
        return refuse_type(stored->type, n->model->path, n->err, n->errlen);
    if (n->count == n->room) {
        n->room = 2 * n->room + 64;
        struct made *more = realloc(n->made, (size_t)n->room * sizeof *more);
        if (!more)
            return esp_fail(n->err, n->errlen, ESP_E_MEMORY, "no memory for a list of tensors");
        n->made = more;
    }
    struct made *m = &n->made[n->count++];
    snprintf(m->name, sizeof m->name, "%s", name);
    m->from = stored;
    m->repeat_rows = growth.repeat_rows;
    m->repeat_columns = growth.repeat_columns;
    m->divide = growth.divide;
    m->zero = zero;
    return ESP_OK;
}

/* Lists the tensors outside the layers. A head that was tied to the embedding becomes a
 * separate tensor, because the weights of the head are divided and those of the embedding are
 * not. */
static int list_whole(struct inflation *n)
{
    const char *embedding = NULL;
    int status = ESP_OK;
    for (const struct esp_tensor_rule *r = n->architecture->family->tensors;
         r->name && status == ESP_OK; r++) {
        bool head = r->slot == offsetof(struct esp_model_desc, head);
        if (is_embedding(r))
            embedding = r->name;
        bool tied = head && n->model->desc.head.data == n->model->desc.embedding.data;
        status =
            add(n, r->name, tied ? embedding : r->name, growth_of(r, is_embedding(r)), false);
    }
    return status;
}

/* Does the tensor belong to a product that a layer adds to the residual stream? */
static bool adds(const struct esp_tensor_rule *rule)
{
    return rule->slot == offsetof(struct esp_layer, output) ||
           rule->slot == offsetof(struct esp_layer, output_bias) ||
           rule->slot == offsetof(struct esp_layer, down) ||
           rule->slot == offsetof(struct esp_layer, down_bias);
}

static int list_layer(struct inflation *n, int layer)
{
    const int old = n->model->desc.layers;
    for (const struct esp_tensor_rule *r = n->architecture->family->layer_tensors; r->name;
         r++) {
        char name[MOST_NAME], from[MOST_NAME];
        if (r->part > 0)
            continue; /* the same tensor as part 0 */
        snprintf(name, sizeof name, "%s%d.%s", n->architecture->family->layer_name, layer,
                 r->name);
        snprintf(from, sizeof from, "%s%d.%s", n->architecture->family->layer_name, layer % old,
                 r->name);
        int status = add(n, name, from, growth_of(r, false), layer >= old && adds(r));
        if (status < 0)
            return status;
    }
    return ESP_OK;
}

/* The tensors of each expert of a layer. */
static int list_experts(struct inflation *n, int layer)
{
    const struct esp_family *family = n->architecture->family;
    const int old = n->model->desc.layers;
    for (const struct esp_tensor_rule *r = family->expert_tensors; r && r->name; r++)
        for (int i = 0; i < n->model->desc.experts; i++) {
            char name[MOST_NAME], from[MOST_NAME];
            const bool down = r->slot == offsetof(struct esp_expert, down);
            snprintf(name, sizeof name, "%s%d.%s%d.%s", family->layer_name, layer,
                     family->expert_name, i, r->name);
            snprintf(from, sizeof from, "%s%d.%s%d.%s", family->layer_name, layer % old,
                     family->expert_name, i, r->name);
            int status = add(n, name, from, growth_of(r, false), layer >= old && down);
            if (status < 0)
                return status;
        }
    return ESP_OK;
}

static int list_tensors(struct inflation *n)
{
    int status = list_whole(n);
    for (int i = 0; i < n->layers && status == ESP_OK; i++) {
        status = list_layer(n, i);
        if (status == ESP_OK)
            status = list_experts(n, i);
    }
    return status;
}

/* ------------------------------------------------------------------ the weights */

static size_t size_of(const struct inflation *n, const struct made *m)
{
    size_t copies =
        (m->repeat_rows ? (size_t)n->width : 1) * (m->repeat_columns ? (size_t)n->width : 1);
    return (m->from->end - m->from->begin) * copies;
}

static char *header(const struct inflation *n)
{
    cJSON *all = cJSON_CreateObject();
    size_t at = 0;
    for (int i = 0; i < n->count; i++) {
        const struct made *m = &n->made[i];
        cJSON *entry = cJSON_AddObjectToObject(all, m->name);
        cJSON_AddStringToObject(entry, "dtype", m->from->type);
        cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
        for (int j = 0; j < m->from->rank; j++) {
            bool repeat = j == 0 ? m->repeat_rows : m->repeat_columns;
            cJSON_AddItemToArray(
                shape, cJSON_CreateNumber((double)m->from->shape[j] * (repeat ? n->width : 1)));
        }
        cJSON *place = cJSON_AddArrayToObject(entry, "data_offsets");
        cJSON_AddItemToArray(place, cJSON_CreateNumber((double)at));
        at += size_of(n, m);
        cJSON_AddItemToArray(place, cJSON_CreateNumber((double)at));
    }
    char *text = cJSON_PrintUnformatted(all);
    cJSON_Delete(all);
    return text;
}

/* Makes a row of the new tensor: a row of the old one, divided and repeated. */
static void make_row(const struct inflation *n, const struct made *m, int64_t row, char *to)
{
    const bool wide = strcmp(m->from->type, "F32") == 0;
    const size_t columns = (size_t)columns_of(m->from), size = wide ? 4 : 2;
    esp_tensor_file_read(m->from->source, m->from->offset + (size_t)row * columns * size, to,
                         columns * size);
    for (size_t i = 0; i < columns; i++) {
        uint32_t bits = 0;
        float value;
        memcpy((char *)&bits + (wide ? 0 : 2), to + i * size, size);
        memcpy(&value, &bits, sizeof value);
        value = m->zero ? 0 : m->divide ? value / (float)n->width : value;
        memcpy(&bits, &value, sizeof bits);
        memcpy(to + i * size, (char *)&bits + (wide ? 0 : 2), size);
    }
    for (int i = 1; m->repeat_columns && i < n->width; i++)
        memcpy(to + (size_t)i * columns * size, to, columns * size);
}

static bool write_tensor(const struct inflation *n, const struct made *m, FILE *file)
{
    const int64_t rows = m->from->shape[0];
    const int times = m->repeat_rows ? n->width : 1;
    const size_t bytes = size_of(n, m) / ((size_t)rows * (size_t)times);
    char *row = malloc(bytes);
    bool good = row != NULL;
    for (int i = 0; i < times && good; i++)
        for (int64_t j = 0; j < rows && good; j++) {
            make_row(n, m, j, row);
            good = fwrite(row, 1, bytes, file) == bytes;
        }
    free(row);
    return good;
}

static int fail_write(const struct inflation *n, const char *path)
{
    return esp_fail(n->err, n->errlen, ESP_E_FILE, "cannot write %s: %s", path,
                    strerror(errno));
}

/* `path` must hold PATH_MAX bytes. */
static FILE *create(const struct inflation *n, const char *name, char *path)
{
    if (snprintf(path, PATH_MAX, "%s/%s", n->folder, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(path, "wb");
}

static int write_weights(const struct inflation *n)
{
    char path[PATH_MAX];
    FILE *file = create(n, "model.safetensors", path);
    if (!file)
        return fail_write(n, path);
    char *text = header(n);
    uint64_t length = text ? (strlen(text) + 7) / 8 * 8 : 0;
    unsigned char little[8];
    for (int i = 0; i < 8; i++)
        little[i] = (unsigned char)(length >> 8 * i);
    bool good = text && fwrite(little, 1, 8, file) == 8 &&
                fprintf(file, "%-*s", (int)length, text) == (int)length;
    for (int i = 0; i < n->count && good; i++)
        good = write_tensor(n, &n->made[i], file);
    free(text);
    int status = good ? ESP_OK : fail_write(n, path);
    if (fclose(file) != 0 && status == ESP_OK)
        status = fail_write(n, path);
    return status < 0 ? status : esp_stored_release(n->model->files, n->err, n->errlen);
}

/* ------------------------------------------------------------------ the rest of the folder */

static void set_key(const struct inflation *n, cJSON *config, enum esp_config_field field,
                    double value)
{
    const struct esp_config_rule *rule = esp_config_rule(n->architecture, field);
    const char *name;
    int length;
    char key[MOST_NAME];
    if (!rule || !*rule->keys)
        return;
    if (!esp_json_find(config, rule->keys, &name, &length) && field == ESP_CONFIG_kv_heads)
        return; /* without this key, kv_heads follows heads */
    snprintf(key, sizeof key, "%.*s", length, name);
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    if (field == ESP_CONFIG_tied)
        cJSON_AddBoolToObject(config, key, value != 0);
    else
        cJSON_AddNumberToObject(config, key, value);
}

static int write_config(const struct inflation *n)
{
    struct esp_json json;
    char path[PATH_MAX] = "config.json";
    const struct esp_model_desc *d = &n->model->desc;
    int status = esp_json_read(&json, n->model->path, "config.json", n->err, n->errlen);
    if (status == ESP_OK)
        status = esp_multimodal_config(&json, n->err, n->errlen);
    if (status < 0) {
        esp_json_close(&json);
        return status;
    }
    set_key(n, json.root, ESP_CONFIG_hidden, d->hidden * n->width);
    set_key(n, json.root, ESP_CONFIG_ffn, d->ffn * n->width);
    if (d->experts > 0)
        set_key(n, json.root, ESP_CONFIG_expert_ffn, d->expert_ffn * n->width);
    set_key(n, json.root, ESP_CONFIG_heads, d->heads * n->width);
    set_key(n, json.root, ESP_CONFIG_kv_heads, d->kv_heads * n->width);
    set_key(n, json.root, ESP_CONFIG_layers, n->layers);
    set_key(n, json.root, ESP_CONFIG_tied, false);
    char *text = cJSON_Print(json.root);
    esp_json_close(&json);
    FILE *file = text ? create(n, "config.json", path) : NULL;
    bool good = file && fprintf(file, "%s\n", text) > 0;
    if (file)
        good &= fclose(file) == 0;
    free(text);
    return good ? ESP_OK : fail_write(n, path);
}

static int copy(const struct inflation *n, const char *name)
{
    char path[PATH_MAX], buffer[65536];
    int fd;
    size_t size;
    if (!esp_file_exists(n->model->path, name))
        return ESP_OK;
    int status = esp_file_open(&fd, &size, path, n->model->path, name, n->err, n->errlen);
    if (status < 0)
        return status;
    FILE *file = create(n, name, path);
    bool good = file != NULL;
    for (ssize_t got; good && (got = read(fd, buffer, sizeof buffer)) != 0;)
        good = got > 0 && fwrite(buffer, 1, (size_t)got, file) == (size_t)got;
    close(fd);
    if (file)
        good &= fclose(file) == 0;
    return good ? ESP_OK : fail_write(n, path);
}

/* ------------------------------------------------------------------ the folder */

static const char *const copied[] = {"tokenizer.json", "tokenizer_config.json",
                                     "generation_config.json", "espalier.json"};
enum { COPIED = sizeof copied / sizeof *copied, FILES = COPIED + 2 };

static int write_folder(const struct inflation *n)
{
    int status = write_weights(n);
    if (status == ESP_OK)
        status = write_config(n);
    for (int i = 0; i < COPIED && status == ESP_OK; i++)
        status = copy(n, copied[i]);
    return status;
}

static const char *file_of(int i)
{
    return i < COPIED ? copied[i] : i == COPIED ? "config.json" : "model.safetensors";
}

static void remove_folder(const struct inflation *n)
{
    char path[PATH_MAX + 32];
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", n->folder, file_of(i));
        unlink(path);
    }
    rmdir(n->folder);
}

/* Lists the folder and its files for signals, until it is renamed. */
static void note_folder(const struct inflation *n, const char *to, int noted[FILES + 1])
{
    char path[PATH_MAX + 32];
    noted[0] = esp_part_file_begin(n->folder, to);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", n->folder, file_of(i));
        noted[i + 1] = esp_part_file_begin(path, "");
    }
}

static int check(const struct inflation *n)
{
    const struct esp_model_desc *d = &n->model->desc;
    if (n->width < 1 || n->width > 64 || (n->width & (n->width - 1)) != 0)
        return esp_fail(n->err, n->errlen, ESP_E_ARGUMENT,
                        "a model can be made 1, 2, 4, ... 64 times as wide, not %d", n->width);
    if (n->layers < d->layers || n->layers > 1000)
        return esp_fail(n->err, n->errlen, ESP_E_ARGUMENT,
                        "%s has %d layers; it can have %d to 1000, not %d", n->model->path,
                        d->layers, d->layers, n->layers);
    const char *special = esp_model_desc_special(d);
    const struct esp_family *family = n->architecture->family;
    const bool plain_mixture = family->expert_tensors && !family->experts_stacked;
    if (special && !(plain_mixture && strcmp(special, ESP_SPECIAL_MIXTURE) == 0))
        return esp_fail(n->err, n->errlen, ESP_E_UNSUPPORTED,
                        "%s is a model with %s; it cannot be made larger", n->model->path,
                        special);
    for (int i = 1; i < d->layers && n->layers > d->layers; i++)
        if (!d->layer[i].expert != !d->layer[0].expert)
            return esp_fail(n->err, n->errlen, ESP_E_UNSUPPORTED,
                            "%s has experts in some layers only; it can be made wider, but not "
                            "deeper",
                            n->model->path);
    if ((int64_t)d->hidden * n->width > 65536 || (int64_t)d->heads * n->width > 4096 ||
        (int64_t)d->ffn * n->width > 1 << 20 || (int64_t)d->expert_ffn * n->width > 1 << 20)
        return esp_fail(n->err, n->errlen, ESP_E_ARGUMENT,
                        "%s would become too wide to open; choose a smaller width",
                        n->model->path);
    return ESP_OK;
}

static int make_folder(struct inflation *n, const char *to)
{
    int noted[FILES + 1];
    int length = snprintf(n->folder, sizeof n->folder, "%s.part-%d", to, (int)getpid());
    if (access(to, F_OK) == 0)
        return esp_fail(n->err, n->errlen, ESP_E_FILE, "%s already exists; name a new folder",
                        to);
    if (length >= (int)sizeof n->folder)
        return esp_fail(n->err, n->errlen, ESP_E_FILE, "the name %.60s... is too long", to);
    note_folder(n, to, noted);
    int status = mkdir(n->folder, 0777) == 0 ? write_folder(n) : fail_write(n, n->folder);
    if (status == ESP_OK && rename(n->folder, to) != 0)
        status = fail_write(n, to);
    if (status < 0)
        remove_folder(n);
    for (int i = FILES; i >= 0; i--)
        esp_part_file_end(noted[i]);
    return status;
}

int esp_model_inflate(const char *from, const char *to, int width, int layers, char *err,
                      size_t errlen)
{
    struct inflation n = {.width = width, .layers = layers, .err = err, .errlen = errlen};
    if (esp_gguf_is(from))
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "%s is a GGUF file; only a model folder can be inflated (inflate first, "
            "then quantize)",
            from);
    int status = esp_model_open(&n.model, from, err, errlen);
    if (status < 0)
        return status;
    n.architecture = architecture_of(n.model);
    if (n.layers == 0)
        n.layers = n.model->desc.layers;
    status = check(&n);
    if (status == ESP_OK)
        status = list_tensors(&n);
    if (status == ESP_OK)
        status = make_folder(&n, to);
    free(n.made);
    esp_model_close(n.model);
    return status;
}

/* ------------------------------------------------------------------ in memory */

/* Makes one tensor larger and adds its size to the model's. */
static int grow(struct esp_model *model, struct esp_tensor *t, struct growth growth, int width,
                bool zero, char *err, size_t errlen)
{
    if (!t->data)
        return ESP_OK;
    if (esp_dtype_quantised(t->dtype) || (growth.divide && t->dtype == ESP_F16))
        return refuse_type(esp_dtype_name(t->dtype), model->path, err, errlen);
    t->stored_rows = t->rows;
    t->stored_columns = t->columns;
    t->rows *= growth.repeat_rows ? width : 1;
    t->columns *= growth.repeat_columns ? width : 1;
    t->divisor = zero ? 0 : growth.divide ? width : 1;
    model->parameters += (int64_t)t->rows * t->columns;
    model->bytes += (size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns);
    return ESP_OK;
}

static int grow_whole(struct esp_model *model, const struct esp_architecture *architecture,
                      int width, char *err, size_t errlen)
{
    struct esp_model_desc *d = &model->desc;
    const bool tied = d->head.data == d->embedding.data;
    int status = ESP_OK;
    for (const struct esp_tensor_rule *r = architecture->family->tensors;
         r->name && status == ESP_OK; r++)
        status = grow(model, (struct esp_tensor *)((char *)d + r->slot),
                      growth_of(r, is_embedding(r)), width, false, err, errlen);
    if (tied)
        d->head.data = &d->head; /* its weights are divided, those of the embedding are not */
    return status;
}

/* A copy of the experts of a layer, made larger. */
static int grow_experts(struct esp_model *model, struct esp_layer *layer,
                        const struct esp_architecture *architecture, int width, bool zero,
                        char *err, size_t errlen)
{
    const int64_t before = model->parameters;
    const struct esp_model_desc *d = &model->desc;
    struct esp_expert *expert = malloc((size_t)d->experts * sizeof *expert);
    int status = ESP_OK;
    if (!expert)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for %d experts", d->experts);
    memcpy(expert, layer->expert, (size_t)d->experts * sizeof *expert);
    layer->expert = expert;
    for (int i = 0; i < d->experts; i++)
        for (const struct esp_tensor_rule *r = architecture->family->expert_tensors;
             r->name && status == ESP_OK; r++)
            status = grow(model, (struct esp_tensor *)((char *)&expert[i] + r->slot),
                          growth_of(r, false), width,
                          zero && r->slot == offsetof(struct esp_expert, down), err, errlen);
    model->idle += (model->parameters - before) / d->experts * (d->experts - d->experts_used);
    return status;
}

static int grow_layers(struct esp_model *model, const struct esp_architecture *architecture,
                       int width, int layers, char *err, size_t errlen)
{
    struct esp_model_desc *d = &model->desc;
    struct esp_layer *layer = calloc((size_t)layers, sizeof *layer);
    int status = ESP_OK;
    if (!layer)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for %d layers", layers);
    for (int i = 0; i < layers; i++) {
        layer[i] = d->layer[i % d->layers];
        for (const struct esp_tensor_rule *r = architecture->family->layer_tensors;
             r->name && status == ESP_OK; r++)
            status = grow(model, (struct esp_tensor *)((char *)&layer[i] + r->slot),
                          growth_of(r, false), width, i >= d->layers && adds(r), err, errlen);
        struct esp_expert *old = layer[i].expert;
        layer[i].expert = NULL;
        if (old && status == ESP_OK) {
            layer[i].expert = old;
            status = grow_experts(model, &layer[i], architecture, width, i >= d->layers, err,
                                  errlen);
            if (layer[i].expert == old)
                layer[i].expert = NULL;
        }
    }
    for (int i = 0; i < d->layers; i++)
        free(d->layer[i].expert);
    free(d->layer);
    d->layer = layer;
    d->layers = layers;
    d->hidden *= width;
    d->ffn *= width;
    d->expert_ffn *= width;
    d->heads *= width;
    d->kv_heads *= width;
    return status;
}

int esp_model_enlarge(struct esp_model *model, int width, int layers, char *err, size_t errlen)
{
    const struct inflation n = {.model = model,
                                .architecture = architecture_of(model),
                                .width = width,
                                .layers = layers > 0 ? layers : model->desc.layers,
                                .err = err,
                                .errlen = errlen};
    const struct esp_architecture *architecture = n.architecture;
    char name[MOST_NAME];
    /* Width 1 changes nothing, so it is allowed for every model. */
    if (width == 1 && n.layers == model->desc.layers)
        return ESP_OK;
    int status = check(&n);
    if (status < 0)
        return status;
    model->parameters = 0;
    model->bytes = 0;
    model->idle = 0;
    status = grow_whole(model, architecture, width, err, errlen);
    if (status == ESP_OK)
        status = grow_layers(model, architecture, width, n.layers, err, errlen);
    snprintf(name, sizeof name, "%.200s x%d, %d layers", model->name, width, n.layers);
    char *named = strdup(name);
    if (!named)
        return ESP_E_MEMORY;
    free(model->name);
    model->name = named;
    return status;
}
