/* draft_folder.c - reads and writes folders of drafts; see draft_folder.h.
 *
 * A head's folder has the form that the authors of EAGLE publish, see engine/model/README.md.
 */
#include "engine/train/draft_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "engine/model/safetensors.h"
#include "engine/support/write_file.h"
#include "engine/train/teacher.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

/* ------------------------------------------------------------------ shapes */

int esp_draft_shape(struct esp_network_shape *shape, const struct esp_model *draft, char *err,
                    size_t errlen)
{
    const struct esp_model_desc *d = &draft->desc;
    for (int i = 0; i < d->layers; i++) {
        const struct esp_layer *l = &d->layer[i];
        if (l->query_norm.data || l->output_bias.data || l->gate_bias.data || !l->gate.data)
            return esp_fail(
                err, errlen, ESP_E_UNSUPPORTED,
                "%s has parts that cannot be trained here; take a draft of the form "
                "of Llama",
                draft->path);
    }
    if (d->norm != ESP_NORM_RMS || d->activation != ESP_SWIGLU || d->parallel_residual ||
        d->rotary != d->head_dim || esp_model_desc_special(d))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s is of architecture %s; only drafts of the form of Llama can be "
                        "trained",
                        draft->path, draft->architecture);
    *shape = (struct esp_network_shape){
        .layers = d->layers,
        .hidden = d->hidden,
        .heads = d->heads,
        .kv_heads = d->kv_heads,
        .head_dim = d->head_dim,
        .ffn = d->ffn,
        .vocabulary = d->vocabulary,
        .qkv_bias = d->layer[0].query_bias.data != NULL,
        .tied = d->head.offset == d->embedding.offset && d->head.source == d->embedding.source,
        .epsilon = d->norm_epsilon,
        .inverse_frequency = d->inverse_frequency,
    };
    return ESP_OK;
}

static double theta_of(const struct esp_model *target)
{
    struct esp_json json;
    char err[64];
    const char *name;
    int length;
    double theta = 1e4;
    if (esp_json_read(&json, target->path, "config.json", err, sizeof err) < 0)
        return theta;
    const cJSON *item =
        esp_json_find(json.root, "rope_parameters.rope_theta|rope_theta", &name, &length);
    if (cJSON_IsNumber(item) && item->valuedouble >= 1)
        theta = item->valuedouble;
    esp_json_close(&json);
    return theta;
}

int esp_head_shape(struct esp_network_shape *shape, const struct esp_model *target,
                   float **inverse_frequency, char *err, size_t errlen)
{
    const struct esp_model_desc *d = &target->desc;
    const int half = d->head_dim / 2;
    *inverse_frequency = NULL;
    if (d->head_dim % 2 != 0 || d->heads % d->kv_heads != 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "a head for %s cannot be trained: its attention heads have %d numbers",
                        target->path, d->head_dim);
    if (!(*inverse_frequency = calloc((size_t)half, sizeof **inverse_frequency)))
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to train");
    const double theta = theta_of(target);
    for (int i = 0; i < half; i++)
        (*inverse_frequency)[i] = (float)pow(theta, -(double)i / half);
    *shape = (struct esp_network_shape){
        .layers = 1,
        .hidden = d->hidden,
        .heads = d->heads,
        .kv_heads = d->kv_heads,
        .head_dim = d->head_dim,
        .ffn = d->ffn,
        .vocabulary = d->vocabulary,
        .features = true,
        .epsilon = d->norm == ESP_NORM_RMS ? d->norm_epsilon : 1e-6f,
        .inverse_frequency = *inverse_frequency,
    };
    return ESP_OK;
}

/* ------------------------------------------------------------------ reading */

/* The tensor of that name, or without the prefix "model.", as in folders of bare models. */
static const struct esp_stored *find(const struct esp_stored_set *set, const char *name)
{
    const struct esp_stored *found = esp_stored_find(set, name);
    if (!found && strncmp(name, "model.", 6) == 0)
        found = esp_stored_find(set, name + 6);
    return found;
}

static int read_parameter(const struct esp_stored_set *set, const struct esp_parameter *p,
                          float *to, const char *folder, char *err, size_t errlen)
{
    static const char *const types[] = {
#define X(name, ...) #name,
        ESP_DTYPES(X)
#undef X
    };
    const struct esp_stored *stored = find(set, p->name);
    const int columns = p->columns > 0 ? p->columns : 1;
    if (!stored)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s has no tensor %s", folder, p->name);
    struct esp_tensor tensor = {.data = stored,
                                .rows = p->rows,
                                .columns = columns,
                                .block = p->rows,
                                .stride = p->rows,
                                .source = stored->source,
                                .offset = stored->offset};
    int type = -1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(stored->type, types[i]) == 0)
            type = (int)i;
    const bool fits = stored->rank == (p->columns > 0 ? 2 : 1) && stored->shape[0] == p->rows &&
                      (p->columns == 0 || stored->shape[1] == p->columns);
    if (type < 0 || !fits)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: tensor %s is %s and not of the shape %d x %d", folder, p->name,
                        stored->type, p->rows, columns);
    tensor.dtype = (enum esp_dtype)type;
    esp_tensor_read_rows(&tensor, 0, p->rows, to);
    return ESP_OK;
}

int esp_draft_weights_read(struct esp_network *d, const char *folder, char *err, size_t errlen)
{
    struct esp_stored_set *set;
    int status = esp_safetensors_open(&set, folder, NULL, err, errlen);
    if (status < 0)
        return status;
    for (int i = 0; i < d->parameters.count && status == ESP_OK; i++)
        status = read_parameter(set, &d->parameters.list[i],
                                esp_parameter_value(&d->parameters, i), folder, err, errlen);
    if (status == ESP_OK)
        status = esp_stored_release(set, err, errlen);
    esp_stored_close(set);
    return status;
}

/* ------------------------------------------------------------------ writing */

static size_t width_of(enum esp_dtype dtype)
{
    return esp_dtype_block_bytes(dtype);
}

static uint16_t bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static void write_numbers(char *to, const float *from, size_t count, enum esp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half = dtype == ESP_BF16 ? bf16(from[i]) : esp_half(from[i]);
        if (dtype == ESP_F32)
            memcpy(to + 4 * i, &from[i], 4);
        else
            memcpy(to + 2 * i, &half, 2);
    }
}

static char *header_of(const struct esp_parameters *p, enum esp_dtype dtype, size_t *data)
{
    static const char *const types[] = {
#define X(name, ...) #name,
        ESP_DTYPES(X)
#undef X
    };
    cJSON *all = cJSON_CreateObject();
    *data = 0;
    cJSON *about = cJSON_AddObjectToObject(all, "__metadata__");
    cJSON_AddStringToObject(about, "format", "pt");
    for (int i = 0; i < p->count; i++) {
        const struct esp_parameter *one = &p->list[i];
        cJSON *entry = cJSON_AddObjectToObject(all, one->name);
        cJSON_AddStringToObject(entry, "dtype", types[dtype]);
        cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
        cJSON_AddItemToArray(shape, cJSON_CreateNumber(one->rows));
        if (one->columns > 0)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber(one->columns));
        cJSON *place = cJSON_AddArrayToObject(entry, "data_offsets");
        cJSON_AddItemToArray(place, cJSON_CreateNumber((double)*data));
        *data += esp_parameter_size(one) * width_of(dtype);
        cJSON_AddItemToArray(place, cJSON_CreateNumber((double)*data));
    }
    char *text = cJSON_PrintUnformatted(all);
    cJSON_Delete(all);
    return text;
}

static int write_in(const char *folder, const char *name, const char *bytes, size_t size,
                    char *err, size_t errlen)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return esp_fail(err, errlen, ESP_E_FILE, "the name %.60s... is too long", folder);
    return esp_write_file(path, bytes, size, true, err, errlen);
}

static int write_weights(const char *folder, const struct esp_parameters *p,
                         enum esp_dtype dtype, char *err, size_t errlen)
{
    size_t data;
    char *text = header_of(p, dtype, &data);
    const size_t length = text ? (strlen(text) + 7) / 8 * 8 : 0;
    char *bytes = text ? malloc(8 + length + data) : NULL;
    if (!bytes) {
        free(text);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to write %s", folder);
    }
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(unsigned char)(length >> 8 * i);
    memset(bytes + 8, ' ', length);
    memcpy(bytes + 8, text, strlen(text));
    char *at = bytes + 8 + length;
    for (int i = 0; i < p->count; i++) {
        const size_t count = esp_parameter_size(&p->list[i]);
        write_numbers(at, p->value + p->list[i].offset, count, dtype);
        at += count * width_of(dtype);
    }
    int status = write_in(folder, "model.safetensors", bytes, 8 + length + data, err, errlen);
    free(bytes);
    free(text);
    return status;
}

static int write_json(const char *folder, const char *name, cJSON *json, char *err,
                      size_t errlen)
{
    char *text = cJSON_Print(json);
    cJSON_Delete(json);
    if (!text)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to write %s", folder);
    int status = write_in(folder, name, text, strlen(text), err, errlen);
    free(text);
    return status;
}

int esp_head_folder_write(const char *folder, const struct esp_network *d,
                          const struct esp_model *target, enum esp_dtype dtype, char *err,
                          size_t errlen)
{
    static const char *const types[] = {"float32", "float16", "bfloat16"};
    const struct esp_network_shape *s = &d->shape;
    cJSON *config = cJSON_CreateObject(),
          *names = cJSON_AddArrayToObject(config, "architectures");
    cJSON_AddItemToArray(names, cJSON_CreateString("LlamaForCausalLM"));
    cJSON_AddStringToObject(config, "model_type", "llama");
    cJSON_AddNumberToObject(config, "vocab_size", s->vocabulary);
    cJSON_AddNumberToObject(config, "hidden_size", s->hidden);
    cJSON_AddNumberToObject(config, "intermediate_size", s->ffn);
    cJSON_AddNumberToObject(config, "num_hidden_layers", s->layers);
    cJSON_AddNumberToObject(config, "num_attention_heads", s->heads);
    cJSON_AddNumberToObject(config, "num_key_value_heads", s->kv_heads);
    cJSON_AddNumberToObject(config, "head_dim", s->head_dim);
    cJSON_AddStringToObject(config, "hidden_act", "silu");
    cJSON_AddNumberToObject(config, "max_position_embeddings", target->desc.context);
    cJSON_AddNumberToObject(config, "rms_norm_eps", (double)(float)s->epsilon);
    cJSON_AddNumberToObject(config, "rope_theta", theta_of(target));
    cJSON_AddBoolToObject(config, "attention_bias", s->qkv_bias);
    cJSON_AddStringToObject(config, "torch_dtype", types[dtype]);
    int status = write_weights(folder, &d->parameters, dtype, err, errlen);
    if (status < 0) {
        cJSON_Delete(config);
        return status;
    }
    return write_json(folder, "config.json", config, err, errlen);
}

int esp_draft_folder_write(const char *folder, const struct esp_network *d, const char *from,
                           enum esp_dtype dtype, char *err, size_t errlen)
{
    static const char *const copied[] = {"tokenizer.json", "tokenizer_config.json",
                                         "generation_config.json", "config.json"};
    int status = write_weights(folder, &d->parameters, dtype, err, errlen);
    for (size_t i = 0; i < sizeof copied / sizeof *copied && status == ESP_OK; i++) {
        char *text, path[PATH_MAX];
        size_t size;
        if (!esp_file_exists(from, copied[i]))
            continue;
        status =
            esp_file_read(&text, &size, path, from, copied[i], ESP_JSON_LIMIT, err, errlen);
        if (status == ESP_OK)
            status = write_in(folder, copied[i], text, size, err, errlen);
        free(text);
    }
    return status;
}
