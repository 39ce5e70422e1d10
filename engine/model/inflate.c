/* inflate.c - enlarges a model so that it computes the same function with more arithmetic; see
 * inflate.h.
 *
 * This is useful for measurements: the result is a large model with the acceptance rate of a
 * trained model, so no large trained model needs to be downloaded. Every hidden dimension, head
 * and MLP unit is repeated `width` times, one copy after the other. Normalising a repeated
 * vector gives the repeated result. A product that adds up `width` equal copies gives the old
 * result if its weights are divided by `width`. `width` is a power of two, so nothing is
 * rounded. The embedding is only repeated. Added layers are copies whose last matrices are
 * zero: they compute everything and add nothing. In a mixture, the experts become larger, but
 * their number and the router's logits stay the same.
 *
 * The rows of a convolution are queries, keys and values. Each of the three is repeated
 * separately, so that the copies of a key head follow the copies of the previous key head. The
 * values are repeated in the same way. The order is stored as a list of rows
 * (esp_tensor.listed).
 *
 * This file finds the tensors, and the meaning of their dimensions, in the architecture's
 * tables.
 */
#include "engine/model/inflate.h"

#include <errno.h>
#include <math.h>
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

/* The rows of a convolution have three parts: queries, keys and values, in the mixer's
 * order. */
enum { CONV_PARTS = 3, MOST_PARTS = 2 + CONV_PARTS /* maximum number of parts */ };

/* Describes one tensor of the new file. It is one slot of the enlarged model, or a fused matrix
 * that consists of several slots (`part`). The rows of each part are divided into `rounds`
 * equal shares. The tensor has the first share of every part, then the second share, and so
 * on. */
struct made {
    char name[ESP_TENSOR_NAME];
    struct esp_tensor part[MOST_PARTS];
    int parts, rounds;
    int dimensions; /* 1: a vector. 3: a dimension of 1 is between rows and columns */
    int experts;    /* if not 0, the tensor has the matrices of this many experts */
    bool continues; /* true: the previous entry is the same tensor, for the previous expert */
};

struct inflation {
    struct esp_model *model;
    const struct esp_architecture *architecture;
    int width, layers;
    struct made *made; /* (room) */
    int count, room;
    char folder[PATH_MAX]; /* the folder being written; it is renamed at the end */
    char *err;
    size_t errlen;
};

/* ------------------------------------------------------------------ in memory */

static int refuse_type(const struct inflation *n, enum esp_dtype dtype)
{
    return esp_fail(n->err, n->errlen, ESP_E_UNSUPPORTED,
                    "%s has weights of type %s; only F32 and BF16 can be enlarged without "
                    "rounding",
                    n->model->path, esp_dtype_name(dtype));
}

/* Returns whether this size is `width` times as large in the enlarged model. */
static bool grows(enum esp_size size)
{
    static const enum esp_size sizes[] = {ESP_HIDDEN,     ESP_HEADS,   ESP_QUERIES, ESP_KEYS,
                                          ESP_CONV,       ESP_MIXED,   ESP_STATES,  ESP_FFN,
                                          ESP_EXPERT_FFN, ESP_ATTENDED};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] == size)
            return true;
    return false;
}

/* Writes to `rows` (CONV_PARTS) how many rows of a convolution are in each part. Returns the
 * number of parts. */
static int conv_parts(const struct esp_model_desc *d, enum esp_mixer mixer,
                      int rows[CONV_PARTS])
{
    const int keys = d->key_heads * d->key_dim, values = d->state_heads * d->value_dim;
    const bool values_first = mixer == ESP_MIXER_SSM;
    if (mixer == ESP_MIXER_CONV) {
        rows[0] = d->hidden;
        return 1;
    }
    rows[0] = values_first ? values : keys;
    rows[1] = keys;
    rows[2] = values_first ? keys : values;
    return CONV_PARTS;
}

/* Writes to `list` which row of the original convolution is repeated by each row of the
 * enlarged convolution. If `old` is not NULL, it lists where the original rows are stored. */
static void list_rows(const struct inflation *n, enum esp_mixer mixer, const int32_t *old,
                      int32_t *list)
{
    int rows[CONV_PARTS], first = 0;
    const int parts = conv_parts(&n->model->desc, mixer, rows);
    for (int part = 0; part < parts; first += rows[part++])
        for (int i = 0; i < rows[part] * n->width; i++) {
            const int row = first + i % rows[part];
            *list++ = old ? old[row] : row;
        }
}

/* model->conv_rows lists where the rows of `conv_in` are stored. Replaces it by two lists for
 * the enlarged model: the rows of `conv`, which are stored in the mixer's order, and then the
 * rows of `conv_in`. The dimensions must still be the original model's dimensions. */
static int list_conv_rows(const struct inflation *n)
{
    struct esp_model *model = n->model;
    const enum esp_mixer mixer = n->architecture->family->mixer;
    if (!esp_recurs(mixer))
        return ESP_OK;
    const size_t width = (size_t)esp_conv_width(&model->desc, mixer) * (size_t)n->width;
    int32_t *lists = malloc(2 * width * sizeof *lists);
    if (!lists)
        return esp_fail(n->err, n->errlen, ESP_E_MEMORY, "not enough memory for %zu rows",
                        width);
    list_rows(n, mixer, NULL, lists);
    list_rows(n, mixer, model->conv_rows, lists + width);
    free(model->conv_rows);
    model->conv_rows = lists;
    return ESP_OK;
}

/* A table may have two rules for one slot: one for layers that are mixtures of experts, and one
 * for other layers. Returns true if this rule is not for layers of the same kind as `layer`. */
static bool is_for_other_layers(const struct esp_tensor_rule *rule,
                                const struct esp_layer *layer)
{
    return layer && rule->when == (layer->expert ? ESP_IF_ONLY_MLP : ESP_IF_MIXED);
}

/* Enlarges the tensors of a table, and adds their sizes to the size of the model. `zero` lists
 * the slots that become zeros. It ends with 0 and may be NULL. */
static int grow(const struct inflation *n, const struct esp_tensor_rule *rule, void *base,
                const struct esp_layer *layer, const size_t *zero)
{
    for (; rule->name; rule++) {
        struct esp_tensor *t = esp_rule_slot(base, rule);
        const bool columns = grows(rule->columns), rows = grows(rule->rows);
        const bool embedding =
            !layer && rule->slot == offsetof(struct esp_model_desc, embedding);
        if (!t->data || is_for_other_layers(rule, layer))
            continue;
        if (esp_dtype_quantised(t->dtype) || (columns && !embedding && t->dtype == ESP_F16))
            return refuse_type(n, t->dtype);
        t->stored_rows = t->rows;
        t->stored_columns = t->columns;
        t->rows *= rows ? n->width : 1;
        t->columns *= columns ? n->width : 1;
        t->divisor = columns && !embedding ? n->width : 1;
        if (layer && rule->rows == ESP_CONV)
            t->listed = n->model->conv_rows + (t->listed ? t->rows : 0);
        for (const size_t *slot = zero; slot && *slot; slot++)
            t->divisor = *slot == rule->slot ? 0 : t->divisor;
        n->model->parameters += (int64_t)t->rows * t->columns;
        n->model->bytes += (size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns);
    }
    return ESP_OK;
}

/* Gives a layer enlarged copies of its experts. In an added layer, the output of these copies
 * is 0. */
static int grow_experts(const struct inflation *n, struct esp_layer *layer, bool added)
{
    static const size_t zero[] = {offsetof(struct esp_expert, down), 0};
    const struct esp_model_desc *d = &n->model->desc;
    const int64_t before = n->model->parameters;
    struct esp_expert *expert = malloc((size_t)d->experts * sizeof *expert);
    int status = ESP_OK;
    if (!expert)
        return esp_fail(n->err, n->errlen, ESP_E_MEMORY, "not enough memory for %d experts",
                        d->experts);
    memcpy(expert, layer->expert, (size_t)d->experts * sizeof *expert);
    layer->expert = expert;
    for (int i = 0; i < d->experts && status == ESP_OK; i++)
        status = grow(n, n->architecture->family->expert_tensors, &expert[i], layer,
                      added ? zero : NULL);
    n->model->idle +=
        (n->model->parameters - before) / d->experts * (d->experts - d->experts_used);
    return status;
}

/* Makes the layers larger and adds layers. The last matrices of an added layer are zero. */
static int grow_layers(const struct inflation *n)
{
    static const size_t zero[] = {offsetof(struct esp_layer, output),
                                  offsetof(struct esp_layer, output_bias),
                                  offsetof(struct esp_layer, mixed),
                                  offsetof(struct esp_layer, mixed_bias),
                                  offsetof(struct esp_layer, down),
                                  offsetof(struct esp_layer, down_bias),
                                  0};
    struct esp_model_desc *d = &n->model->desc;
    struct esp_layer *layer = calloc((size_t)n->layers, sizeof *layer);
    int status = ESP_OK;
    if (!layer)
        return esp_fail(n->err, n->errlen, ESP_E_MEMORY, "not enough memory for %d layers",
                        n->layers);
    for (int i = 0; i < n->layers; i++) {
        const struct esp_expert *old = d->layer[i % d->layers].expert;
        layer[i] = d->layer[i % d->layers];
        if (status == ESP_OK)
            status = grow(n, n->architecture->family->layer_tensors, &layer[i], &layer[i],
                          i >= d->layers ? zero : NULL);
        if (status == ESP_OK && old)
            status = grow_experts(n, &layer[i], i >= d->layers);
        if (layer[i].expert == old)
            layer[i].expert = NULL;
    }
    for (int i = 0; i < d->layers; i++)
        free(d->layer[i].expert);
    free(d->layer);
    d->layer = layer;
    d->layers = n->layers;
    return status;
}

/* Makes all tensors larger. An LM head that was tied to the embedding becomes a separate
 * tensor, because its weights are divided, and the weights of the embedding are not. */
static int grow_all(const struct inflation *n)
{
    struct esp_model *model = n->model;
    struct esp_model_desc *d = &model->desc;
    const bool tied = d->head.data == d->embedding.data;
    model->parameters = model->idle = 0;
    model->bytes = 0;
    int status = list_conv_rows(n);
    if (status == ESP_OK)
        status = grow(n, n->architecture->family->tensors, d, NULL, NULL);
    if (tied)
        d->head.data = &d->head;
    if (status == ESP_OK)
        status = grow_layers(n);
    d->hidden *= n->width;
    d->ffn *= n->width;
    d->expert_ffn *= n->width;
    d->heads *= n->width;
    d->kv_heads *= n->width;
    d->state_heads *= n->width;
    d->key_heads *= n->width;
    return status;
}

/* ------------------------------------------------------------------ the list of tensors */

/* Returns the first rule with this tensor name. Ignores the field `apart`, which is only for
 * GGUF files. */
static const struct esp_tensor_rule *first_named(const struct esp_tensor_rule *rules,
                                                 const char *name)
{
    while (strcmp(rules->name, name) != 0)
        rules++;
    return rules;
}

/* Adds the slot of a rule to a tensor. If the rows of key heads are stored together, queries,
 * keys and values are separate parts. */
static void add_part(const struct inflation *n, struct made *m,
                     const struct esp_tensor_rule *rule, const struct esp_tensor *slot)
{
    int rows[CONV_PARTS] = {slot->rows}, first = 0;
    const bool divided = rule->grouped && rule->rows == ESP_CONV;
    const int parts =
        divided ? conv_parts(&n->model->desc, n->architecture->family->mixer, rows) : 1;
    for (int i = 0; i < parts; first += rows[i++])
        m->part[m->parts++] = esp_tensor_slice(slot, first, rows[i]);
}

/* Adds the tensor of a rule to the list, unless the model lacks it or an earlier rule names the
 * same tensor. */
static int add(struct inflation *n, const struct esp_tensor_rule *rules,
               const struct esp_tensor_rule *rule, const void *base, int layer, int expert)
{
    const struct esp_tensor *slot = esp_rule_slot(base, rule);
    const struct esp_model_desc *d = &n->model->desc;
    if (!slot->data || first_named(rules, rule->name) != rule)
        return ESP_OK;
    if (slot->dtype != ESP_F32 && slot->dtype != ESP_BF16)
        return refuse_type(n, slot->dtype);
    if (n->count == n->room) {
        n->room = 2 * n->room + 64;
        struct made *more = realloc(n->made, (size_t)n->room * sizeof *more);
        if (!more)
            return esp_fail(n->err, n->errlen, ESP_E_MEMORY,
                            "not enough memory for a list of tensors");
        n->made = more;
    }
    struct made *m = &n->made[n->count++];
    *m = (struct made){.dimensions = rule->middle               ? 3
                                     : rule->columns == ESP_ONE ? 1
                                                                : 2,
                       .rounds = rule->grouped     ? d->key_heads
                                 : rule->parts > 0 ? slot->rows / d->head_dim
                                                   : 1};
    esp_rule_name(m->name, n->architecture->family, rule, layer, expert);
    m->experts = expert == ESP_ALL_EXPERTS ? d->experts : 0;
    m->continues = m->experts > 0 && n->count > 1 && strcmp(m[-1].name, m->name) == 0;
    for (const struct esp_tensor_rule *part = rules; part->name; part++)
        if (strcmp(part->name, rule->name) == 0)
            add_part(n, m, part, esp_rule_slot(base, part));
    return ESP_OK;
}

/* Lists the tensors of a layer. If `layer` is -1, lists the tensors outside the layers. */
static int add_table(struct inflation *n, const struct esp_tensor_rule *rules, const void *base,
                     int layer)
{
    int status = ESP_OK;
    for (const struct esp_tensor_rule *rule = rules; rule->name && status == ESP_OK; rule++)
        if (!is_for_other_layers(rule, layer < 0 ? NULL : base))
            status = add(n, rules, rule, base, layer, ESP_NO_EXPERT);
    return status;
}

static int list_tensors(struct inflation *n)
{
    const struct esp_family *family = n->architecture->family;
    const struct esp_model_desc *d = &n->model->desc;
    int status = add_table(n, family->tensors, d, -1);
    for (int i = 0; i < d->layers && status == ESP_OK; i++) {
        const struct esp_layer *layer = &d->layer[i];
        const bool fused = family->fused_experts != NULL;
        const struct esp_tensor_rule *rule =
            fused ? family->fused_experts : family->expert_tensors;
        const struct esp_tensor_rule *rules = rule;
        status = add_table(n, family->layer_tensors, layer, i);
        for (; layer->expert && rule->name; rule++)
            for (int k = 0; k < d->experts && status == ESP_OK; k++)
                status = add(n, rules, rule, &layer->expert[k], i, fused ? ESP_ALL_EXPERTS : k);
    }
    return status;
}

/* ------------------------------------------------------------------ the weights */

static int rows_of(const struct made *m)
{
    int rows = 0;
    for (int i = 0; i < m->parts; i++)
        rows += m->part[i].rows;
    return rows;
}

static size_t row_bytes(const struct made *m)
{
    return esp_dtype_row_bytes(m->part[0].dtype, m->part[0].columns);
}

static void add_number(cJSON *list, double number)
{
    cJSON_AddItemToArray(list, cJSON_CreateNumber(number));
}

static void add_shape(cJSON *entry, const struct made *m)
{
    cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
    if (m->experts > 0)
        add_number(shape, m->experts);
    add_number(shape, rows_of(m));
    if (m->dimensions > 2)
        add_number(shape, 1);
    if (m->dimensions > 1)
        add_number(shape, m->part[0].columns);
}

static char *header(const struct inflation *n)
{
    cJSON *all = cJSON_CreateObject();
    size_t at = 0;
    for (int i = 0; i < n->count; i++) {
        const struct made *m = &n->made[i];
        if (m->continues)
            continue;
        cJSON *entry = cJSON_AddObjectToObject(all, m->name);
        cJSON_AddStringToObject(entry, "dtype", esp_dtype_name(m->part[0].dtype));
        add_shape(entry, m);
        cJSON *place = cJSON_AddArrayToObject(entry, "data_offsets");
        add_number(place, (double)at);
        at += (size_t)rows_of(m) * row_bytes(m) * (size_t)(m->experts > 0 ? m->experts : 1);
        add_number(place, (double)at);
    }
    char *text = cJSON_PrintUnformatted(all);
    cJSON_Delete(all);
    return text;
}

static bool write_tensor(const struct made *m, FILE *file)
{
    const size_t bytes = row_bytes(m);
    char *row = malloc(bytes);
    bool good = row != NULL;
    for (int round = 0; round < m->rounds; round++)
        for (int i = 0; i < m->parts; i++) {
            const int share = m->part[i].rows / m->rounds;
            for (int k = 0; k < share && good; k++) {
                esp_tensor_copy_rows(&m->part[i], round * share + k, 1, row);
                good = fwrite(row, 1, bytes, file) == bytes;
            }
        }
    free(row);
    return good;
}

static int fail_write(const struct inflation *n, const char *path)
{
    return esp_fail(n->err, n->errlen, ESP_E_FILE, "cannot write %s: %s", path,
                    strerror(errno));
}

/* Creates a file in the new folder and writes its path to `path` (PATH_MAX bytes). */
static FILE *create(const struct inflation *n, const char *name, char *path)
{
    if (snprintf(path, PATH_MAX, "%s/%s", n->folder, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(path, "wb");
}

/* Closes a file. Reports a failure if the file could not be created (`file` is NULL), written
 * (`good` is false) or closed. */
static int finish(const struct inflation *n, FILE *file, bool good, const char *path)
{
    const int error = errno;
    const bool closed = file && fclose(file) == 0;
    if (!file || !good)
        errno = error;
    return closed && good ? (int)ESP_OK : fail_write(n, path);
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
        good = write_tensor(&n->made[i], file);
    int status = finish(n, file, good, path);
    free(text);
    return status < 0 ? status : esp_stored_release(n->model->files, n->err, n->errlen);
}

/* ------------------------------------------------------------------ the rest of the folder */

static void set_key(const struct inflation *n, cJSON *config, enum esp_config_field field,
                    double value)
{
    const struct esp_config_rule *rule = esp_config_rule(n->architecture, field);
    const char *name;
    int length;
    char key[ESP_TENSOR_NAME];
    if (!rule || !*rule->keys)
        return;
    if (!esp_json_find(config, rule->keys, &name, &length) && field == ESP_CONFIG_kv_heads)
        return; /* without this key, kv_heads follows from heads */
    snprintf(key, sizeof key, "%.*s", length, name);
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    if (field == ESP_CONFIG_tied || field == ESP_CONFIG_ffn_adjusted)
        cJSON_AddBoolToObject(config, key, value != 0);
    else
        cJSON_AddNumberToObject(config, key, value);
}

/* `list` has an entry for each layer of the original model. Repeats the entries until there is
 * one for each layer of the enlarged model. */
static void repeat_list(const struct inflation *n, cJSON *list)
{
    const int before = cJSON_GetArraySize(list);
    for (int i = before; before > 0 && i < n->layers; i++)
        cJSON_AddItemToArray(list, cJSON_Duplicate(cJSON_GetArrayItem(list, i - before), true));
}

/* Writes the two limits of time steps as the transformers library does: numbers have a
 * fraction, and infinity, which JSON lacks, is written as a name. */
static void spell_limits(cJSON *limits)
{
    for (int i = 0; i < cJSON_GetArraySize(limits); i++) {
        const cJSON *limit = cJSON_GetArrayItem(limits, i);
        const double value = limit->valuedouble;
        char text[64];
        if (!cJSON_IsNumber(limit))
            continue;
        cJSON *spelled = isinf(value) ? cJSON_CreateObject() : NULL;
        if (isinf(value))
            cJSON_AddStringToObject(spelled, "__float__", "Infinity");
        snprintf(text, sizeof text, value == floor(value) ? "%.1f" : "%.17g", value);
        cJSON_ReplaceItemInArray(limits, i, spelled ? spelled : cJSON_CreateRaw(text));
    }
}

/* Writes layer_types if config.json lists the kinds of layers, or if some layers are recurrent.
 * The original config.json may only say how often a layer has attention. */
static int set_layer_types(const struct inflation *n, struct esp_json *json)
{
    static const char types[] = "layer_types", shared[] = "moe_shared_expert_intermediate_size";
    static const char *const name[] = {[ESP_MIXER_ATTENTION] = "full_attention",
                                       [ESP_MIXER_NONE] = "mlp",
                                       [ESP_MIXER_CONV] = "conv",
                                       [ESP_MIXER_DELTA] = "linear_attention",
                                       [ESP_MIXER_SSM] = "mamba"};
    static const char *const other[] = {"full_attn_idxs", "hybrid_override_pattern"};
    const struct esp_model_desc *d = &n->model->desc;
    int status = esp_config_pattern(json);
    if (status < 0)
        return status;
    cJSON *list = cJSON_GetObjectItemCaseSensitive(json->root, types);
    repeat_list(n, list);
    repeat_list(n, cJSON_GetObjectItemCaseSensitive(json->root, "no_rope_layers"));
    if (!esp_model_desc_recurrent(d))
        return ESP_OK;
    spell_limits(cJSON_GetObjectItemCaseSensitive(json->root, "time_step_limit"));
    for (int i = 0; i < d->layers && !list; i++) {
        cJSON *made = i == 0 ? cJSON_AddArrayToObject(json->root, types)
                             : cJSON_GetObjectItemCaseSensitive(json->root, types);
        cJSON_AddItemToArray(made, cJSON_CreateString(name[d->layer[i].mixer]));
    }
    if (esp_json_item(json->root, shared)) /* esp_config_pattern() has replaced this key */
        cJSON_ReplaceItemInObjectCaseSensitive(json->root, shared, cJSON_CreateNumber(d->ffn));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(json->root, other[i]);
    return ESP_OK;
}

static int write_config(const struct inflation *n)
{
    struct esp_json json;
    char path[PATH_MAX] = "config.json";
    const struct esp_model_desc *d = &n->model->desc;
    int status = esp_json_read(&json, n->model->path, "config.json", n->err, n->errlen);
    if (status == ESP_OK)
        status = esp_multimodal_config(&json);
    if (status == ESP_OK)
        status = set_layer_types(n, &json);
    if (status < 0) {
        esp_json_close(&json);
        return status;
    }
    set_key(n, json.root, ESP_CONFIG_hidden, d->hidden);
    set_key(n, json.root, ESP_CONFIG_ffn, d->ffn);
    if (d->experts > 0)
        set_key(n, json.root, ESP_CONFIG_expert_ffn, d->expert_ffn);
    set_key(n, json.root, ESP_CONFIG_heads, d->heads);
    set_key(n, json.root, ESP_CONFIG_kv_heads, d->kv_heads);
    if (d->key_heads > 0) {
        set_key(n, json.root, ESP_CONFIG_state_heads, d->state_heads);
        set_key(n, json.root, ESP_CONFIG_key_heads, d->key_heads);
    }
    set_key(n, json.root, ESP_CONFIG_layers, d->layers);
    set_key(n, json.root, ESP_CONFIG_tied, false);
    set_key(n, json.root, ESP_CONFIG_ffn_adjusted, false); /* ffn is already the final number */
    char *text = cJSON_Print(json.root);
    esp_json_close(&json);
    FILE *file = text ? create(n, "config.json", path) : NULL;
    int written = finish(n, file, file && fprintf(file, "%s\n", text) > 0, path);
    free(text);
    return written;
}

static int copy(const struct inflation *n, const char *name)
{
    char path[PATH_MAX], *bytes;
    size_t size;
    if (!esp_file_exists(n->model->path, name))
        return ESP_OK;
    int status = esp_file_read(&bytes, &size, path, n->model->path, name, ESP_JSON_LIMIT,
                               n->err, n->errlen);
    if (status < 0)
        return status;
    FILE *file = create(n, name, path);
    status = finish(n, file, file && fwrite(bytes, 1, size, file) == size, path);
    free(bytes);
    return status;
}

/* ------------------------------------------------------------------ the folder */

/* Lists all files of the new folder. The first COPIED files are copied from the original. */
static const char *const files[] = {
    "tokenizer.json", "tokenizer_config.json", "generation_config.json",
    "espalier.json",  "config.json",           "model.safetensors"};
enum { COPIED = 4, FILES = sizeof files / sizeof *files };

static int write_folder(const struct inflation *n)
{
    int status = write_weights(n);
    if (status == ESP_OK)
        status = write_config(n);
    for (int i = 0; i < COPIED && status == ESP_OK; i++)
        status = copy(n, files[i]);
    return status;
}

static void remove_folder(const struct inflation *n)
{
    char path[PATH_MAX + 32];
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", n->folder, files[i]);
        unlink(path);
    }
    rmdir(n->folder);
}

/* Adds the new folder and its files to the list of unfinished files. If a signal ends the
 * program before the folder is renamed, all of them are deleted. */
static void note_folder(const struct inflation *n, const char *to, int noted[FILES + 1])
{
    char path[PATH_MAX + 32];
    noted[0] = esp_part_file_begin(n->folder, to);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", n->folder, files[i]);
        noted[i + 1] = esp_part_file_begin(path, "");
    }
}

/* Returns the features that prevent a model of this architecture from being enlarged. */
static unsigned cannot_grow(const struct inflation *n)
{
    const struct esp_family *family = n->architecture->family;
    const struct esp_config_rule *root =
        esp_config_rule(n->architecture, ESP_CONFIG_root_embedding);
    unsigned cannot = ESP_SPECIAL_MTP | ESP_SPECIAL_POSITIONS | ESP_SPECIAL_TRANSPOSED;
    if (family->experts_stacked)
        cannot |= ESP_SPECIAL_MIXTURE;
    if (root) /* the scale of the embedding depends on the hidden size, which grows */
        cannot |= ESP_SPECIAL_SCALED;
    return cannot;
}

static int check(const struct inflation *n)
{
    const struct esp_model_desc *d = &n->model->desc;
    if (n->width < 1 || n->width > 64 || (n->width & (n->width - 1)) != 0)
        return esp_fail(n->err, n->errlen, ESP_E_ARGUMENT,
                        "a model can be made 1, 2, 4, ... 64 times as wide, not %d", n->width);
    if (n->layers < d->layers || n->layers > 1000)
        return esp_fail(n->err, n->errlen, ESP_E_ARGUMENT,
                        "%s has %d layers; the larger model can have %d to 1000 layers, not %d",
                        n->model->path, d->layers, d->layers, n->layers);
    const unsigned special = esp_model_desc_specials(d) & cannot_grow(n);
    if (special)
        return esp_fail(n->err, n->errlen, ESP_E_UNSUPPORTED,
                        "%s is a model with %s; it cannot be made larger", n->model->path,
                        esp_special_name(special));
    if (d->heads_tiled)
        return esp_fail(n->err, n->errlen, ESP_E_UNSUPPORTED,
                        "%s has its state heads in the order of GGUF files; enlarge the model "
                        "folder from which the file was made",
                        n->model->path);
    for (int i = 1; i < d->layers && n->layers > d->layers; i++)
        if (!d->layer[i].expert != !d->layer[0].expert)
            return esp_fail(n->err, n->errlen, ESP_E_UNSUPPORTED,
                            "%s has experts in some layers only; it can be made wider, but not "
                            "deeper",
                            n->model->path);
    if ((int64_t)d->hidden * n->width > 65536 || (int64_t)d->heads * n->width > 4096 ||
        (int64_t)d->ffn * n->width > 1 << 20 || (int64_t)d->expert_ffn * n->width > 1 << 20 ||
        (int64_t)d->state_heads * n->width > 4096)
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
    n.architecture = esp_architecture_named(n.model->architecture);
    if (n.layers == 0)
        n.layers = n.model->desc.layers;
    status = check(&n);
    if (status == ESP_OK)
        status = grow_all(&n);
    if (status == ESP_OK)
        status = list_tensors(&n);
    if (status == ESP_OK)
        status = make_folder(&n, to);
    free(n.made);
    esp_model_close(n.model);
    return status;
}

int esp_model_enlarge(struct esp_model *model, int width, int layers, char *err, size_t errlen)
{
    const struct inflation n = {.model = model,
                                .architecture = esp_architecture_named(model->architecture),
                                .width = width,
                                .layers = layers > 0 ? layers : model->desc.layers,
                                .err = err,
                                .errlen = errlen};
    char *named = NULL;
    /* Width 1 changes nothing, so it is allowed for every model. */
    if (width == 1 && n.layers == model->desc.layers)
        return ESP_OK;
    int status = check(&n);
    if (status < 0)
        return status;
    status = grow_all(&n);
    if (asprintf(&named, "%.200s x%d, %d layers", model->name, width, n.layers) < 0)
        return ESP_E_MEMORY;
    free(model->name);
    model->name = named;
    return status;
}
