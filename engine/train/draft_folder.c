/* draft_folder.c - reads and writes folders of drafts; see draft_folder.h.
 *
 * A draft head's folder has the format that the authors of EAGLE publish; see
 * engine/model/README.md.
 */
#include "engine/train/draft_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "engine/model/safetensors.h"
#include "engine/model/safetensors_write.h"
#include "engine/support/write_file.h"
#include "engine/train/teacher.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

/* ------------------------------------------------------------------ shapes */

/* Returns a shape in which only some members are set: those that follow from a model's
 * description. These members are the same for draft models and for heads. */
static struct esp_network_shape shape_of(const struct esp_model_desc *d)
{
    return (struct esp_network_shape){
        .layers = d->layers,
        .hidden = d->hidden,
        .heads = d->heads,
        .kv_heads = d->kv_heads,
        .head_dim = d->head_dim,
        .ffn = d->ffn,
        .vocabulary = d->vocabulary,
        .epsilon = d->norm_epsilon,
        .inverse_frequency = d->inverse_frequency,
    };
}

int esp_draft_shape(struct esp_network_shape *shape, const struct esp_model *draft, char *err,
                    size_t errlen)
{
    const struct esp_model_desc *d = &draft->desc;
    for (int i = 0; i < d->layers; i++) {
        const struct esp_layer *l = &d->layer[i];
        if (l->query_norm.data || l->output_bias.data || l->gate_bias.data || !l->gate.data)
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "%s has parts that cannot be trained; use a draft model with the "
                            "layers of Llama",
                            draft->path);
    }
    if (d->norm != ESP_NORM_RMS || d->activation != ESP_SWIGLU || d->parallel_residual ||
        d->rotary != d->head_dim || esp_model_desc_specials(d) != 0)
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "%s has the architecture %s; only draft models with the layers of Llama "
            "can be trained",
            draft->path, draft->architecture);
    *shape = shape_of(d);
    shape->qkv_bias = d->layer[0].query_bias.data != NULL;
    shape->tied =
        d->head.offset == d->embedding.offset && d->head.source == d->embedding.source;
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
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "a head for %s cannot be trained: an attention head must have an even number of "
            "dimensions (here %d), and every key/value head must have the same number of heads",
            target->path, d->head_dim);
    if (!(*inverse_frequency = calloc((size_t)half, sizeof **inverse_frequency)))
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to train");
    const double theta = theta_of(target);
    for (int i = 0; i < half; i++)
        (*inverse_frequency)[i] = (float)pow(theta, -(double)i / half);
    *shape = shape_of(d);
    shape->layers = 1;
    shape->features = true;
    shape->epsilon = d->norm == ESP_NORM_RMS ? d->norm_epsilon : 1e-6f;
    shape->inverse_frequency = *inverse_frequency;
    return ESP_OK;
}

/* ------------------------------------------------------------------ reading */

/* Returns the tensor with this name. If there is none, looks for the name without "model.",
 * because folders of bare models have such names. */
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
    const struct esp_stored *stored = find(set, p->name);
    const int columns = p->columns > 0 ? p->columns : 1;
    if (!stored)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s has no tensor %s", folder, p->name);
    const struct esp_tensor tensor = {.dtype = esp_dtype_find(stored->type),
                                      .data = stored,
                                      .rows = p->rows,
                                      .columns = columns,
                                      .block = p->rows,
                                      .stride = p->rows,
                                      .source = stored->source,
                                      .offset = stored->offset};
    const bool fits = stored->rank == (p->columns > 0 ? 2 : 1) && stored->shape[0] == p->rows &&
                      (p->columns == 0 || stored->shape[1] == p->columns);
    if (tensor.dtype == ESP_DTYPE_COUNT || !fits)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: tensor %s (%s) has an unsupported type or is not of shape %d x %d",
                        folder, p->name, stored->type, p->rows, columns);
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

static void write_numbers(char *to, const float *from, int count, enum esp_dtype dtype)
{
    if (dtype != ESP_F16)
        esp_quantise(dtype, from, count, to);
    for (int i = 0; i < count && dtype == ESP_F16; i++) {
        const uint16_t half = esp_half(from[i]);
        memcpy(to + 2 * i, &half, sizeof half);
    }
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
    struct esp_safetensors_header header = {.all = cJSON_CreateObject()};
    const size_t width = esp_dtype_block_bytes(dtype);
    size_t begin;
    cJSON_AddStringToObject(cJSON_AddObjectToObject(header.all, "__metadata__"), "format",
                            "pt");
    for (int i = 0; i < p->count; i++)
        esp_safetensors_add(&header, p->list[i].name, esp_dtype_name(dtype), p->list[i].rows,
                            p->list[i].columns, esp_parameter_size(&p->list[i]) * width);
    char *bytes = esp_safetensors_begin(&header, true, header.data, &begin);
    if (!bytes)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to write %s", folder);
    char *at = bytes + begin;
    for (int i = 0; i < p->count; i++) {
        const int row = p->list[i].columns > 0 ? p->list[i].columns : p->list[i].rows;
        for (size_t j = 0; j < esp_parameter_size(&p->list[i]); j += (size_t)row) {
            write_numbers(at, esp_parameter_value(p, i) + j, row, dtype);
            at += (size_t)row * width;
        }
    }
    int status =
        write_in(folder, "model.safetensors", bytes, (size_t)(at - bytes), err, errlen);
    free(bytes);
    return status;
}

int esp_head_folder_write(const char *folder, const struct esp_network *d,
                          const struct esp_model *target, enum esp_dtype dtype, char *err,
                          size_t errlen)
{
    static const char *const types[] = {"float32", "float16", "bfloat16"};
    const struct esp_network_shape *s = &d->shape;
    int status = write_weights(folder, &d->parameters, dtype, err, errlen);
    if (status < 0)
        return status;
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
    char *text = cJSON_Print(config);
    cJSON_Delete(config);
    status = text
                 ? write_in(folder, "config.json", text, strlen(text), err, errlen)
                 : esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to write %s", folder);
    free(text);
    return status;
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
