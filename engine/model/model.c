/* model.c - opens a model folder or a GGUF file: configuration, tensors, end tokens, preset;
 * see model.h.
 *
 * esp_model_open() has these steps: (1) it finds the architecture that config.json names; (2)
 * it reads the dimensions; (3) it opens the weight files; (4) for every slot of the
 * architecture's table, it finds a tensor of exactly the shape that follows from the
 * dimensions; (5) it reads the end tokens and the preset. Afterwards every slot of the
 * description is filled or known to be absent, and every tensor is inside its file.
 */
#include "engine/model/model.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/find_models.h"
#include "engine/model/architecture.h"
#include "engine/model/draft_head.h"
#include "engine/model/gguf_model.h"
#include "engine/model/multimodal.h"
#include "engine/model/preset.h"
#include "engine/model/safetensors.h"
#include "engine/support/paths.h"
#include "engine/support/suggestion.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

/* ------------------------------------------------------------------ tensors */

struct binding {
    struct esp_model *model;
    const struct esp_family *family;
    const struct esp_config *config;
    size_t prefix; /* number of characters that this file omits at the start of tensor names,
                      or 0 */
    bool mixed;    /* true: the layer is a mixture of experts */
    enum esp_mixer mixer;
    char *err;
    size_t errlen;
};

static int size_of(enum esp_size size, const struct esp_config *config)
{
    const int sizes[] = {[ESP_ONE] = 1,
                         [ESP_HIDDEN] = config->hidden,
                         [ESP_HEAD] = config->head_dim,
                         [ESP_HEADS] = config->heads,
                         [ESP_QUERIES] = config->heads * config->head_dim,
                         [ESP_KEYS] = config->kv_heads * config->head_dim,
                         [ESP_FFN] = config->ffn,
                         [ESP_VOCABULARY] = config->vocabulary,
                         [ESP_POSITIONS] = config->context,
                         [ESP_CONV] = config->conv_width,
                         [ESP_MIXED] = config->mixed_width,
                         [ESP_TAPS] = config->conv_kernel,
                         [ESP_STATES] = config->state_heads,
                         [ESP_STATE_VALUE] = config->value_dim,
                         [ESP_EXPERTS] = config->experts,
                         [ESP_EXPERT_FFN] = config->expert_ffn,
                         [ESP_ATTENDED] = config->attended,
                         [ESP_FC] = config->fc,
                         [ESP_FC_PART] = config->fc_part,
                         [ESP_OUTPUTS] = config->outputs};
    return sizes[size];
}

static bool expected(enum esp_presence when, const struct binding *binding, int layer,
                     bool stored)
{
    const struct esp_config *config = binding->config;
    if (when == ESP_IF_STORED)
        return stored;
    if (when == ESP_IF_MIXED || when == ESP_UNLESS_MIXED)
        return binding->mixed == (when == ESP_IF_MIXED);
    if (when == ESP_IF_ATTENTION)
        return binding->mixer == ESP_MIXER_ATTENTION;
    if (when == ESP_IF_RECURRENT || when == ESP_IF_CONV_BIAS)
        return esp_recurs(binding->mixer) && (when == ESP_IF_RECURRENT || config->conv_bias);
    if (when == ESP_IF_ONLY_MLP)
        return binding->mixer == ESP_MIXER_NONE && !binding->mixed;
    if (when == ESP_IF_CHOICE_BIAS)
        return binding->mixed && config->choice_bias;
    if (when == ESP_IF_FC_NORM || when == ESP_IF_FC_NORMS)
        return config->fc_norms > 0 && (config->fc_norms == 1) == (when == ESP_IF_FC_NORM);
    if (when == ESP_IF_INPUT_NORM)
        return stored || layer > 0 || config->reads != ESP_READS_EAGLE;
    return when == ESP_IF_ATTENTION_BIAS ? config->attention_bias
           : when == ESP_IF_OUTPUT_BIAS  ? config->output_bias
           : when == ESP_IF_MLP_BIAS     ? config->mlp_bias
           : when == ESP_IF_HEAD_NORM    ? config->head_norm
                                         : true;
}

static const char *shape_text(char *text, size_t size, const int64_t *shape, int rank)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "",
                                 (long long)shape[i]);
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

/* Lists the types that backends support: "F32, F16, ...". */
static const char *type_names(char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < ESP_DTYPE_COUNT && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 esp_dtype_name((enum esp_dtype)i));
    return text;
}

/* Returns the number of rows of the stored tensor that contains the slot of `rule`. Sets
 * *before to the number of rows in that tensor before the slot's rows. */
static int64_t stored_rows(const struct esp_tensor_rule *table,
                           const struct esp_tensor_rule *rule, const struct esp_config *config,
                           int64_t *before)
{
    int64_t all = 0;
    *before = 0;
    for (; rule->stacked && table->name; table++)
        if (strcmp(table->name, rule->name) == 0) {
            *before = table == rule ? all : *before;
            all += size_of(table->rows, config);
        }
    return rule->stacked
               ? all
               : (int64_t)size_of(rule->rows, config) * (rule->parts > 0 ? rule->parts : 1);
}

/* Checks that a stored tensor exists (is not NULL), has the shape `want` of `rank` sizes, and
 * has a supported type. Sets *dtype to that type. */
static int check_stored(enum esp_dtype *dtype, const struct esp_stored *stored,
                        const char *name, const int64_t *want, int rank, bool is_vector,
                        const struct binding *binding)
{
    char want_text[256], found_text[256], names[128];
    shape_text(want_text, sizeof want_text, want, rank);
    if (!stored)
        return esp_fail(binding->err, binding->errlen, ESP_E_FORMAT,
                        "%s: tensor %s of shape %s is missing", binding->model->path, name,
                        want_text);
    if (stored->rank != rank || memcmp(stored->shape, want, (size_t)rank * sizeof *want) != 0)
        return esp_fail(
            binding->err, binding->errlen, ESP_E_FORMAT,
            "%s: tensor %s has shape %s, but config.json requires %s", stored->file, name,
            shape_text(found_text, sizeof found_text, stored->shape, stored->rank), want_text);
    *dtype = esp_dtype_find(stored->type);
    if (*dtype == ESP_DTYPE_COUNT)
        return esp_fail(binding->err, binding->errlen, ESP_E_UNSUPPORTED,
                        "%s: tensor %s is stored as %s; the supported types are %s",
                        stored->file, name, stored->type, type_names(names, sizeof names));
    if (esp_dtype_quantised(*dtype) && is_vector)
        return esp_fail(binding->err, binding->errlen, ESP_E_UNSUPPORTED,
                        "%s: tensor %s is stored as %s; tensors that are not matrices must be "
                        "F32, F16 or BF16",
                        stored->file, name, stored->type);
    return 0;
}

/* Removes dimensions of size 1 that are between the rows and columns of a matrix or around a
 * vector. Adds such a dimension to a matrix of one row that is stored as a vector. Joins the
 * groups into which a GGUF file may divide a vector. */
static void flatten(struct esp_stored *stored, const struct esp_tensor_rule *rule, int rows)
{
    int64_t *shape = stored->shape;
    if (rule->middle && stored->rank == 3 && shape[1] == 1) {
        shape[1] = shape[2];
        stored->rank = 2;
    } else if (rule->columns != ESP_ONE && rows == 1 && stored->rank == 1) {
        shape[1] = shape[0];
        shape[0] = 1;
        stored->rank = 2;
    } else if (rule->columns == ESP_ONE && stored->converted && stored->rank == 2 &&
               shape[0] > 0 && shape[1] > 0 && shape[0] <= rows && shape[1] <= rows &&
               shape[0] * shape[1] == rows) {
        shape[0] = rows;
        stored->rank = 1;
    }
}

/* Lists the rows of the convolved values in the mixer's order: all queries, then all keys, then
 * all values. The stored tensor has these rows grouped by key head. */
static int list_conv_rows(struct esp_model *model, const struct esp_config *config)
{
    const int values = config->state_heads / config->key_heads * config->value_dim;
    const int group = 2 * config->key_dim + values, keys = config->key_heads * config->key_dim;
    if (model->conv_rows)
        return ESP_OK;
    if (!(model->conv_rows = calloc((size_t)config->conv_width, sizeof *model->conv_rows)))
        return ESP_E_MEMORY;
    for (int row = 0; row < config->conv_width; row++) {
        const int part = row < keys ? 0 : row < 2 * keys ? 1 : 2;
        const int width = part < 2 ? config->key_dim : values, in_part = row - part * keys;
        model->conv_rows[row] =
            in_part / width * group + part * config->key_dim + in_part % width;
    }
    return ESP_OK;
}

/* Fills the slot of `rule` in `base` from a stored tensor (NULL means it is missing). Checks
 * the type and shape of the tensor. If `experts` is above 0, `base` is an array of `experts`
 * structs, and the tensor has the matrices of all experts. */
static int bind_tensor(const struct binding *binding, const struct esp_tensor_rule *table,
                       const struct esp_tensor_rule *rule, struct esp_expert *base, int experts,
                       struct esp_stored *stored, const char *name)
{
    const struct esp_config *config = binding->config;
    struct esp_model *model = binding->model;
    const int rows = size_of(rule->rows, config), columns = size_of(rule->columns, config);
    const int rank = rule->columns == ESP_ONE ? 1 : 2, count = experts > 0 ? experts : 1;
    const bool converted = stored && stored->converted, scaled = stored && stored->scale_source;
    const bool interleaved = rule->parts > 0 && (!converted || rule->kept);
    const bool transposed =
        rule->transposed && rank == 2 && !converted && !scaled && (stored || experts == 0);
    const bool apart = rule->apart && converted && strcmp(stored->name, name) != 0;
    const int groups = rule->grouped && !apart ? config->key_heads : 1;
    const int block = (!interleaved ? rows : experts > 0 ? 1 : config->head_dim) / groups;
    const bool listed = groups > 1 && rule->rows == ESP_CONV;
    int64_t before, all = stored_rows(table, rule, config, &before);
    enum esp_dtype dtype;
    const bool alone = experts > 0 && !interleaved && (converted || !rule->stacked);
    if (alone || apart) { /* in a GGUF file, each part is a separate tensor */
        all = rows;
        before = 0;
    } else if (rule->parts > 0) {
        before = (int64_t)rule->part * block;
    }
    if (listed && list_conv_rows(model, config) < 0)
        return esp_no_memory(model->path, binding->err, binding->errlen);
    if (stored)
        flatten(stored, rule, rows);
    const int64_t want[3] = {experts, transposed ? columns : all, transposed ? all : columns};
    int status = check_stored(&dtype, stored, name, want + !experts, rank + (experts > 0),
                              rank == 1, binding);
    if (status < 0)
        return status;
    /* If the scales are in a separate tensor, the rows of `stored` do not include them. */
    const size_t row_bytes = esp_dtype_row_bytes(dtype, columns);
    const size_t scales = scaled ? (size_t)(columns / esp_dtype_block(dtype)) : 0;
    const size_t step = transposed ? esp_dtype_block_bytes(dtype) : row_bytes - scales;
    for (int i = 0; i < count; i++)
        *esp_rule_slot(base + i, rule) = (struct esp_tensor){
            .data = stored,
            .source = stored->source,
            .offset = stored->offset + (size_t)i * (size_t)all * (row_bytes - scales) +
                      (size_t)(before / groups) * step,
            .dtype = dtype,
            .rows = rows,
            .columns = columns,
            .block = block,
            .stride = groups > 1    ? (int)(all / groups)
                      : interleaved ? block * rule->parts
                                    : block,
            .paired = stored->paired ? config->head_dim : 0,
            .transposed = transposed ? (int)all : 0,
            .added = converted ? 0 : rule->added,
            .logarithm = rule->logarithm && !converted,
            .listed = listed ? model->conv_rows : NULL,
            .scales = scaled ? stored : NULL,
            .scale_source = stored->scale_source,
            .scale_offset =
                stored->scale_offset + ((size_t)i * (size_t)all + (size_t)before) * scales,
        };
    stored->used = true;
    model->parameters += (int64_t)count * rows * columns;
    model->bytes += (size_t)count * (size_t)rows * row_bytes;
    return 0;
}

/* Returns whether this condition depends on the kind of the layer. */
static bool is_of_kind(enum esp_presence when)
{
    return when == ESP_IF_ATTENTION || when == ESP_IF_RECURRENT || when == ESP_IF_CONV_BIAS ||
           when == ESP_IF_ONLY_MLP;
}

/* Fills the slots of one table in the struct `base`. */
static int bind_table(const struct binding *binding, const struct esp_tensor_rule *rule,
                      void *base, int layer)
{
    const struct esp_family *family = binding->family;
    const struct esp_tensor_rule *table = rule;
    int status = 0;
    for (; rule->name && status == 0; rule++) {
        char full[ESP_TENSOR_NAME];
        const char *name = full;
        esp_rule_name(full, family, rule, layer, ESP_NO_EXPERT);
        if (strncmp(full, family->prefix, strlen(family->prefix)) == 0)
            name += binding->prefix;
        struct esp_stored *stored = esp_stored_find(binding->model->files, name);
        if (!stored && rule->apart) { /* GGUF files have a separate tensor for each part */
            char own[sizeof full + 16];
            snprintf(own, sizeof own, "%s.%d", name, rule->part);
            stored = esp_stored_find(binding->model->files, own);
        }
        struct esp_tensor *slot = esp_rule_slot(base, rule);
        if (rule->when == ESP_UNLESS_TIED && binding->config->tied && !stored)
            *slot = binding->model->desc.embedding;
        else if (expected(rule->when, binding, layer, stored != NULL))
            status = bind_tensor(binding, table, rule, base, 0, stored, name);
        else if (stored)
            status = esp_fail(binding->err, binding->errlen, ESP_E_FORMAT,
                              "%s has the tensor %s, which a %s model with this config.json "
                              "does not have; correct %smodel_type in config.json",
                              binding->model->path, name, binding->model->architecture,
                              rule->when == ESP_IF_HEAD_NORM  ? ""
                              : is_of_kind(rule->when)        ? "layer_types or "
                              : rule->when == ESP_IF_MLP_BIAS ? "mlp_bias or "
                              : rule->when == ESP_IF_FC_NORM || rule->when == ESP_IF_FC_NORMS
                                  ? "norm_before_fc, fc_norm or "
                              : rule->when == ESP_IF_MIXED || rule->when == ESP_UNLESS_MIXED
                                  ? "mlp_only_layers or "
                                  : "attention_bias or ");
    }
    return status;
}

/* Fills the slot of one rule in all experts of a layer. */
static int bind_experts_matrix(const struct binding *binding, struct esp_layer *layer,
                               int number, const struct esp_tensor_rule *table,
                               const struct esp_tensor_rule *rule)
{
    const struct esp_family *family = binding->family;
    char full[ESP_TENSOR_NAME], *name = full + binding->prefix;
    int status = 0;
    esp_rule_name(full, family, rule, number, ESP_ALL_EXPERTS);
    struct esp_stored *stack = esp_stored_find(binding->model->files, name);
    const bool fused = table == family->fused_experts;
    if (!stack && rule->parts > 0) { /* GGUF files have a separate tensor for each part */
        char own[sizeof full + 16];
        snprintf(own, sizeof own, "%s.%d", name, rule->part);
        stack = esp_stored_find(binding->model->files, own);
    }
    if (stack || family->experts_stacked || fused)
        return bind_tensor(binding, table, rule, layer->expert, binding->config->experts, stack,
                           name);
    for (int i = 0; i < binding->config->experts && status == 0; i++) {
        esp_rule_name(full, family, rule, number, i);
        status = bind_tensor(binding, table, rule, &layer->expert[i], 0,
                             esp_stored_find(binding->model->files, name), name);
    }
    return status;
}

/* Returns the table that names the tensors of this layer's experts. */
static const struct esp_tensor_rule *expert_table(const struct binding *binding, int number)
{
    const struct esp_family *family = binding->family;
    char name[ESP_TENSOR_NAME];
    if (!family->fused_experts)
        return family->expert_tensors;
    esp_rule_name(name, family, family->fused_experts, number, ESP_ALL_EXPERTS);
    return esp_stored_find(binding->model->files, name + binding->prefix)
               ? family->fused_experts
               : family->expert_tensors;
}

static int bind_experts(const struct binding *binding, struct esp_layer *layer, int number)
{
    const struct esp_config *config = binding->config;
    struct esp_model *model = binding->model;
    const int64_t before = model->parameters;
    int status = 0;
    if (!(layer->expert = calloc((size_t)config->experts, sizeof *layer->expert)))
        return esp_no_memory(model->path, binding->err, binding->errlen);
    const struct esp_tensor_rule *table = expert_table(binding, number);
    for (const struct esp_tensor_rule *rule = table; rule->name && status == 0; rule++)
        status = bind_experts_matrix(binding, layer, number, table, rule);
    model->expert_dtype = esp_dtype_name(layer->expert[0].up.dtype);
    model->idle += (model->parameters - before) / config->experts *
                   (config->experts - config->experts_used);
    return status;
}

static int bind_all(struct esp_model *model, const struct esp_family *family,
                    const struct esp_config *config, const struct esp_json *json, char *err,
                    size_t errlen)
{
    struct binding binding = {
        .model = model,
        .family = family,
        .config = config,
        .prefix =
            esp_stored_has_prefix(model->files, family->prefix) ? 0 : strlen(family->prefix),
        .err = err,
        .errlen = errlen,
    };
    model->desc.layer = calloc((size_t)config->layers, sizeof *model->desc.layer);
    if (!model->desc.layer)
        return esp_no_memory(model->path, err, errlen);
    struct esp_config later = *config; /* configuration of the layers after the first one */
    later.attended = later.hidden;
    int status = bind_table(&binding, family->tensors, &model->desc, -1);
    for (int i = 0; i < config->layers && status == 0; i++) {
        status = family->expert_tensors ? esp_config_mixed(&binding.mixed, i, config, json) : 0;
        if (status == 0)
            status = esp_config_mixer(&binding.mixer, i, family, config, json);
        model->desc.layer[i].mixer = binding.mixer;
        binding.config = i > 0 ? &later : config;
        if (status == 0)
            status = bind_table(&binding, family->layer_tensors, &model->desc.layer[i], i);
        if (status == 0 && model->desc.layer[i].router.data)
            status = bind_experts(&binding, &model->desc.layer[i], i);
    }
    if (status == 0)
        model->dtype = esp_dtype_name(esp_layer_matrix(&model->desc.layer[0])->dtype);
    return status;
}

/* ------------------------------------------------------------------ generation */

/* Reads the end-of-text tokens of one file, unless another file already gave them. eos_token_id
 * is a number or a list of numbers. */
static int read_end(struct esp_model *model, const struct esp_json *json)
{
    const int vocabulary = model->desc.vocabulary;
    const cJSON *eos = esp_json_find(json->root, "eos_token_id", NULL, NULL);
    if (!eos || model->end_count > 0)
        return 0;
    if (cJSON_GetArraySize(eos) > ESP_MAX_END_TOKENS)
        return esp_json_fail(json, ESP_E_UNSUPPORTED, "eos_token_id lists more than %d tokens",
                             ESP_MAX_END_TOKENS);
    const cJSON *item = cJSON_IsArray(eos) ? eos->child : eos;
    for (; item; item = cJSON_IsArray(eos) ? item->next : NULL) {
        const double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(value >= 0 && value < vocabulary) || value != (int32_t)value)
            return esp_json_fail(json, ESP_E_FORMAT,
                                 "eos_token_id must be a token from 0 to %d", vocabulary - 1);
        model->end[model->end_count++] = (int32_t)value;
    }
    return 0;
}

static int read_generation(struct esp_model *model, const struct esp_json *config, char *err,
                           size_t errlen)
{
    int status = 0;
    if (esp_file_exists(model->path, "generation_config.json")) {
        struct esp_json json;
        status = esp_json_read(&json, model->path, "generation_config.json", err, errlen);
        if (status == 0)
            status = read_end(model, &json);
        esp_json_close(&json);
    }
    return status < 0 ? status : read_end(model, config);
}

/* Reads one member of espalier.json. Unknown keys are refused, because only espalier uses this
 * file, and ignoring a misspelled key would hide the mistake. */
static int read_spec(struct esp_model *model, const cJSON *item, const struct esp_json *json)
{
    char **spec = strcmp(item->string, "drafter") == 0            ? &model->preset
                  : strcmp(item->string, "sampling_drafter") == 0 ? &model->sampling_preset
                                                                  : NULL;
    if (!spec || *spec)
        return esp_json_fail(json, ESP_E_FORMAT,
                             "%s key '%.64s'; the keys are drafter and sampling_drafter",
                             spec ? "repeated" : "unknown", item->string);
    if (!cJSON_IsString(item))
        return esp_json_fail(json, ESP_E_FORMAT,
                             "%s must be text such as \"dynatree:rhostop=0.01\"", item->string);
    *spec = strdup(item->valuestring);
    return *spec ? (int)ESP_OK : esp_no_memory(json->path, json->err, json->errlen);
}

static int read_preset(struct esp_model *model, char *err, size_t errlen)
{
    char folder[4096], name[4096];
    struct esp_json json;
    if (!esp_place_beside(model->path, ESP_PRESET_FILE, folder, name) ||
        !esp_file_exists(folder, name))
        return 0;
    int status = esp_json_read(&json, folder, name, err, errlen);
    if (status < 0)
        return status;
    for (const cJSON *item = json.root->child; item && status == 0; item = item->next)
        status = read_spec(model, item, &json);
    esp_json_close(&json);
    return status;
}

/* ------------------------------------------------------------------ the folder */

static void describe(struct esp_model_desc *desc, const struct esp_family *family,
                     const struct esp_config *config)
{
    desc->reads = config->reads;
    desc->input = config->input;
    desc->input_first = family->input_first;
    desc->residual_normed = config->residual_normed;
    desc->fc_norms = config->fc_norms;
    desc->layers = config->layers;
    desc->hidden = config->hidden;
    desc->heads = config->heads;
    desc->kv_heads = config->kv_heads;
    desc->head_dim = config->head_dim;
    desc->ffn = config->ffn;
    desc->experts = config->experts;
    desc->experts_used = config->experts_used;
    desc->expert_ffn = config->expert_ffn;
    desc->experts_normed = config->experts_normed;
    desc->sigmoid_router = config->sigmoid_router;
    desc->expert_epsilon = (float)config->expert_epsilon;
    desc->expert_scale = config->expert_scale == 1 ? 0 : (float)config->expert_scale;
    desc->conv_kernel = family->mixer == ESP_MIXER_ATTENTION ? 0 : config->conv_kernel;
    desc->state_heads = config->state_heads;
    desc->key_heads = config->key_heads;
    desc->key_dim = config->key_dim;
    desc->value_dim = config->value_dim;
    desc->heads_tiled = config->heads_tiled;
    desc->most_step = FLT_MAX;
    desc->vocabulary = config->vocabulary;
    desc->outputs = config->outputs;
    desc->context = config->context;
    desc->parallel_residual = config->parallel_residual;
    desc->norm = family->norm;
    desc->activation = family->activation;
    desc->clamp.limit = (float)config->swiglu_limit;
    desc->clamp.slope = (float)config->swiglu_slope;
    desc->norm_epsilon = (float)config->norm_epsilon;
    desc->embedding_scale = config->root_embedding         ? sqrtf((float)config->hidden)
                            : config->embedding_scale == 1 ? 0
                                                           : (float)config->embedding_scale;
    desc->residual_scale = config->residual_scale == 1 ? 0 : (float)config->residual_scale;
    desc->logit_scale = config->logit_divisor == 0 || config->logit_divisor == 1
                            ? 0
                            : (float)(1 / config->logit_divisor);
    desc->attention_scale = config->attention_divisor > 0
                                ? (float)(1 / sqrt(config->attention_divisor))
                                : (float)config->attention_scale;
    desc->attention_cap = (float)config->attention_cap;
    desc->logit_cap = (float)config->logit_cap;
}

static void use_rotation(struct esp_model *model)
{
    const struct esp_rotation_tables *r = &model->rotation;
    model->desc.rotary = r->rotary;
    model->desc.inverse_frequency = r->extended ? r->extended : r->global;
    model->desc.local_inverse_frequency = r->local;
    model->desc.rotary_scale = r->scale == 1 ? 0 : r->scale;
}

void esp_model_set_context(struct esp_model *model, int context)
{
    if (model->original)
        model->desc.inverse_frequency = model->original->desc.inverse_frequency;
    else if (model->rotation.extended && context <= model->rotation.original)
        model->desc.inverse_frequency = model->rotation.global;
    else
        use_rotation(model);
}

/* Marks the tensors that this call does not open as used, so that they are not reported as
 * unused. If the model is opened, these are the tensors of its MTP layer. If only the MTP layer
 * is opened, they are all other tensors. */
static void mark_others(struct esp_model *model, const struct esp_family *mtp)
{
    const size_t n = strlen(mtp->prefix);
    for (size_t i = 0; i < model->files->count; i++) {
        struct esp_stored *t = &model->files->tensors[i];
        if ((strncmp(t->name, mtp->prefix, n) == 0) != model->head)
            t->used = true;
    }
}

/* Changes the configuration of the model into the configuration of its MTP layer. */
static int use_mtp(struct esp_model *model, const struct esp_family **family,
                   struct esp_config *config, const struct esp_family *mtp,
                   const struct esp_json *json)
{
    if (!mtp)
        return esp_fail(json->err, json->errlen, ESP_E_FILE,
                        "%s has no MTP layer that can draft for it; choose another draft, or "
                        "leave --draft out",
                        model->path);
    model->architecture = ESP_MTP;
    model->reads_unnormed = mtp->reads_unnormed;
    *family = mtp;
    return esp_mtp_config(config, json, model->files);
}

/* Returns whether the files have layers of the family. Some files have only an MTP layer. */
static bool has_layers(const struct esp_stored_set *files, const struct esp_family *family)
{
    return esp_stored_has_prefix(files, family->layer_name) ||
           esp_stored_has_prefix(files, family->layer_name + strlen(family->prefix));
}

/* Determines from the tensors whether this is a whole model or a draft head. */
static int recognize(struct esp_model *model, const struct esp_family **family,
                     struct esp_config *config, const struct esp_architecture *architecture,
                     const struct esp_json *json)
{
    enum esp_reads reads = esp_draft_head_kind(model->files);
    *family = architecture->family;
    config->attended = config->hidden;
    config->outputs = config->vocabulary;
    struct esp_model_desc sizes = {.hidden = config->hidden,
                                   .state_heads = config->state_heads,
                                   .key_heads = config->key_heads,
                                   .key_dim = config->key_dim,
                                   .value_dim = config->value_dim};
    config->conv_width = esp_conv_width(&sizes, architecture->family->mixer);
    config->mixed_width = esp_mixed_width(&sizes, architecture->family->mixer);
    const struct esp_family *mtp = esp_mtp_family(model->files, architecture);
    model->head = model->head || (mtp && !has_layers(model->files, *family));
    model->mtp = mtp && !model->head;
    if (mtp)
        mark_others(model, mtp);
    if (model->head)
        return use_mtp(model, family, config, mtp, json);
    if (reads == ESP_READS_TOKENS)
        return ESP_OK;
    model->head = true;
    model->architecture = reads == ESP_READS_EAGLE3 ? "eagle3" : "eagle";
    *family = esp_draft_head_family(model->files);
    return esp_draft_head_config(model, config, reads, architecture, json);
}

/* Lists the tensors of a folder or, if `gguf` is not NULL, of a GGUF file. */
static int open_tensors(struct esp_model *model, const struct esp_architecture *architecture,
                        const struct esp_gguf *gguf, char *err, size_t errlen)
{
    if (!gguf) {
        int opened = esp_safetensors_open(&model->files, model->path, NULL, err, errlen);
        if (opened == 0)
            opened = esp_multimodal_tensors(model->files, &model->ignored, err, errlen);
        return opened < 0 ? opened : esp_draft_head_names(model->files, err, errlen);
    }
    int status = esp_gguf_tensors(model->files, gguf, architecture, err, errlen);
    return status < 0 ? status
                      : esp_gguf_rotary(model->rotation.global, model->desc.rotary, gguf,
                                        model->files, err, errlen);
}

static int open_configured(struct esp_model *model, const struct esp_json *json,
                           const struct esp_gguf *gguf, char *err, size_t errlen)
{
    const struct esp_architecture *architecture;
    const struct esp_family *family;
    struct esp_config config;
    int status = esp_architecture_read(&architecture, json);
    if (status == 0)
        status = esp_config_read(&config, architecture, json);
    if (status < 0)
        return status;
    model->architecture = architecture->name;
    status = esp_config_rotation(&model->rotation, &config, json);
    use_rotation(model);
    if (status == 0)
        status = open_tensors(model, architecture, gguf, err, errlen);
    if (status == 0)
        status = recognize(model, &family, &config, architecture, json);
    if (status == 0) {
        describe(&model->desc, family, &config);
        status = bind_all(model, family, &config, json, err, errlen);
    }
    if (status == 0 && (!model->head || config.reads == ESP_READS_EAGLE3))
        status = esp_config_layers(model->desc.layer, &config, json);
    if (status == 0 && family->mixer == ESP_MIXER_SSM)
        status = esp_config_steps(&model->desc, json);
    if (status == 0 && model->head)
        status = esp_draft_head_outputs(model, err, errlen);
    return status;
}

static int open_folder(struct esp_model *model, char *err, size_t errlen)
{
    struct esp_json json;
    int status = esp_json_read(&json, model->path, "config.json", err, errlen);
    if (status == 0)
        status = esp_multimodal_config(&json);
    if (status == 0)
        status = esp_config_pattern(&json);
    if (status == 0)
        status = esp_draft_head_unwrap(model, &json);
    if (status == 0)
        status = open_configured(model, &json, NULL, err, errlen);
    if (status == 0)
        status = read_generation(model, &json, err, errlen);
    if (status == 0)
        status = read_preset(model, err, errlen);
    esp_json_close(&json);
    return status;
}

static int open_gguf(struct esp_model *model, char *err, size_t errlen)
{
    struct esp_gguf gguf = {.header = NULL};
    struct esp_json json = {.err = err, .errlen = errlen};
    model->files = calloc(1, sizeof *model->files);
    int status = model->files
                     ? esp_gguf_open_first(&gguf, model->files, model->path, err, errlen)
                     : esp_no_memory(model->path, err, errlen);
    if (status == 0) {
        snprintf(json.path, sizeof json.path, "%s", gguf.path);
        status = esp_gguf_config(&json.root, &gguf, err, errlen);
    }
    if (status == 0)
        status = open_configured(model, &json, &gguf, err, errlen);
    if (status == 0)
        status = read_end(model, &json);
    if (status == 0)
        status = read_preset(model, err, errlen);
    if (status == 0)
        model->chat_template =
            esp_gguf_copy_text(esp_gguf_find(&gguf, "tokenizer.chat_template"));
    /* A preset in a separate file takes precedence over one in the GGUF file. */
    if (status == 0 && !model->preset && !model->sampling_preset) {
        model->preset = esp_gguf_copy_text(esp_gguf_find(&gguf, "espalier.drafter"));
        model->sampling_preset =
            esp_gguf_copy_text(esp_gguf_find(&gguf, "espalier.sampling_drafter"));
    }
    esp_json_close(&json);
    esp_gguf_close(&gguf);
    return status;
}

/* Returns the last component of a path. For "", "." and "..", returns the name of the folder
 * that they mean. The caller frees it. */
static char *folder_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (end > start && strspn(path + start, ".") < end - start)
        return strndup(path + start, end - start);
    char *real = realpath(path, NULL);
    char *name = real ? strdup(strrchr(real, '/') + 1) : NULL;
    free(real);
    return name;
}

/* Reports that a path cannot be opened; suggests folders next to it, and models that come with
 * the program. */
static int refuse_path(const char *path, int error, char *err, size_t errlen)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct esp_suggestion suggestion;
    char meant[96], shipped[64];
    esp_suggestion_begin(&suggestion, name, strlen(name));
    esp_suggestion_folders(&suggestion, path);
    for (int i = 0; !slash && esp_list_data("models", i, shipped, sizeof shipped) == 0; i++)
        esp_suggestion_try(&suggestion, shipped);
    return esp_fail(err, errlen, ESP_E_FILE, "cannot open the model %s: %s%s", path,
                    strerror(error), esp_suggestion_text(&suggestion, meant));
}

/* Sets the path and the name of an MTP layer to the word that users give to --draft, because
 * the layer has no path. */
static int name_mtp(struct esp_model *head, char *err, size_t errlen)
{
    char *path = strdup(ESP_MTP), *name = strdup(ESP_MTP);
    if (!path || !name) {
        free(path);
        free(name);
        return esp_no_memory(head->path, err, errlen);
    }
    free(head->path);
    free(head->name);
    head->path = path;
    head->name = name;
    return ESP_OK;
}

/* Opens a model or, if `mtp` is true, its MTP layer. */
static int open_part(struct esp_model **model, const char *path, bool mtp, char *err,
                     size_t errlen)
{
    struct stat status_of;
    *model = NULL;
    if (stat(path, &status_of) < 0)
        return refuse_path(path, errno, err, errlen);
    if (!S_ISDIR(status_of.st_mode) && !esp_gguf_is(path))
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%s is neither a folder nor a GGUF file; name the folder that holds "
                        "config.json, or a file NAME.gguf",
                        path);
    struct esp_model *opened = calloc(1, sizeof *opened);
    if (opened) {
        opened->path = strdup(path);
        opened->name = folder_name(path);
        opened->head = mtp;
    }
    if (!opened || !opened->path || !opened->name) {
        esp_model_close(opened);
        return esp_no_memory(path, err, errlen);
    }
    int status = S_ISDIR(status_of.st_mode) ? open_folder(opened, err, errlen)
                                            : open_gguf(opened, err, errlen);
    if (status == 0 && mtp)
        status = name_mtp(opened, err, errlen);
    if (status < 0)
        esp_model_close(opened);
    else
        *model = opened;
    return status;
}

int esp_model_open(struct esp_model **model, const char *path, char *err, size_t errlen)
{
    return open_part(model, path, false, err, errlen);
}

int esp_model_open_mtp(struct esp_model **head, const char *path, char *err, size_t errlen)
{
    return open_part(head, path, true, err, errlen);
}

void esp_model_set_outputs(struct esp_model *model, const int32_t *token, const int32_t *row,
                           int count, int tokens)
{
    struct esp_model_desc *d = &model->desc;
    if (esp_tensor_same(&d->head, &d->embedding)) /* the LM head becomes a separate tensor */
        model->bytes += (size_t)count * esp_dtype_row_bytes(d->head.dtype, d->head.columns);
    d->head.rows = count;
    d->head.listed = row;
    d->outputs = count;
    d->output_token = token;
    d->output_tokens = tokens;
}

void esp_model_close(struct esp_model *model)
{
    if (!model)
        return;
    esp_stored_close(model->files);
    free(model->rotation.global);
    free(model->rotation.local);
    free(model->rotation.extended);
    free(model->output_token);
    free(model->conv_rows);
    for (int i = 0; model->desc.layer && i < model->desc.layers; i++)
        free(model->desc.layer[i].expert);
    free(model->desc.layer);
    free(model->preset);
    free(model->sampling_preset);
    free(model->chat_template);
    free(model->path);
    free(model->name);
    free(model);
}
