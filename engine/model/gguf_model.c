/* gguf_model.c - reads a GGUF file like a model folder; see gguf_model.h.
 *
 * Names of keys and tensors are those of the gguf Python package. llama.cpp's converter changes
 * some tensors of a folder; reading undoes that: rows of query and key are in pairs (struct
 * esp_tensor), and the parts of GPT-NeoX's fused matrix are consecutive (struct esp_stored).
 * Llama 3's scaling of frequencies is a tensor, rope_freqs.weight.
 */
#include "engine/model/gguf_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/model_desc.h"
#include "kernels/status.h"

enum { MOST_NAME = 256 };

/* ------------------------------------------------------------------ names */

static const struct esp_gguf_architecture architectures[] = {
#define X(name, model_type, paired) {name, model_type, paired},
#include "engine/model/gguf_architectures.def"
#undef X
};

enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

const struct esp_gguf_architecture *esp_gguf_architecture_named(const char *name)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return &architectures[i];
    return NULL;
}

const struct esp_gguf_architecture *esp_gguf_architecture_of(const char *model_type)
{
    /* Mistral's models are written as llama, with attention.sliding_window. */
    if (strcmp(model_type, "mistral") == 0)
        model_type = "llama";
    for (int i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].model_type, model_type) == 0)
            return &architectures[i];
    return NULL;
}

struct slot_name {
    size_t slot;
    const char *name;
};

#define MODEL(field, name)                                                                     \
    {                                                                                          \
        offsetof(struct esp_model_desc, field), name                                           \
    }
#define LAYER(field, name)                                                                     \
    {                                                                                          \
        offsetof(struct esp_layer, field), name                                                \
    }

#define EXPERT(field, name)                                                                    \
    {                                                                                          \
        offsetof(struct esp_expert, field), name                                               \
    }

static const struct slot_name model_slots[] = {
    MODEL(embedding, "token_embd.weight"),
    MODEL(position_embedding, "position_embd.weight"),
    MODEL(head, "output.weight"),
    MODEL(norm_final, "output_norm.weight"),
    MODEL(norm_final_bias, "output_norm.bias"),
    {0, NULL},
};

static const struct slot_name layer_slots[] = {
    LAYER(norm1, "attn_norm.weight"),
    LAYER(norm1_bias, "attn_norm.bias"),
    LAYER(query, "attn_q.weight"),
    LAYER(query_bias, "attn_q.bias"),
    LAYER(key, "attn_k.weight"),
    LAYER(key_bias, "attn_k.bias"),
    LAYER(value, "attn_v.weight"),
    LAYER(value_bias, "attn_v.bias"),
    LAYER(query_norm, "attn_q_norm.weight"),
    LAYER(key_norm, "attn_k_norm.weight"),
    LAYER(sink_logit, "attn_sinks.weight"),
    LAYER(output, "attn_output.weight"),
    LAYER(output_bias, "attn_output.bias"),
    LAYER(norm_attended, "post_attention_norm.weight"),
    LAYER(norm2, "ffn_norm.weight"),
    LAYER(norm2_bias, "ffn_norm.bias"),
    LAYER(router, "ffn_gate_inp.weight"),
    LAYER(router_bias, "ffn_gate_inp.bias"),
    LAYER(gate, "ffn_gate.weight"),
    LAYER(gate_bias, "ffn_gate.bias"),
    LAYER(up, "ffn_up.weight"),
    LAYER(up_bias, "ffn_up.bias"),
    LAYER(down, "ffn_down.weight"),
    LAYER(down_bias, "ffn_down.bias"),
    LAYER(norm_mlp, "post_ffw_norm.weight"),
    {0, NULL},
};

/* A fused matrix has one name for all of its parts. */
static const struct slot_name fused_slots[] = {
    LAYER(query, "attn_qkv.weight"),
    LAYER(query_bias, "attn_qkv.bias"),
    LAYER(key, "attn_qkv.weight"),
    LAYER(key_bias, "attn_qkv.bias"),
    LAYER(value, "attn_qkv.weight"),
    LAYER(value_bias, "attn_qkv.bias"),
    LAYER(gate, "ffn_up.weight"),
    LAYER(up, "ffn_up.weight"),
    {0, NULL},
};

/* Of struct esp_expert: one tensor for all experts of a layer. */
static const struct slot_name expert_slots[] = {
    EXPERT(gate, "ffn_gate_exps.weight"),
    EXPERT(gate_bias, "ffn_gate_exps.bias"),
    EXPERT(up, "ffn_up_exps.weight"),
    EXPERT(up_bias, "ffn_up_exps.bias"),
    EXPERT(down, "ffn_down_exps.weight"),
    EXPERT(down_bias, "ffn_down_exps.bias"),
    {0, NULL},
};

static const char *name_of(const struct slot_name *table, size_t slot)
{
    for (; table->name; table++)
        if (table->slot == slot)
            return table->name;
    return NULL;
}

bool esp_gguf_tensor_name(char *name, size_t size, const struct esp_family *family,
                          const struct esp_tensor_rule *rule, int layer)
{
    const bool fused = rule->parts > 0 || rule->stacked;
    const char *own = name_of(layer < 0 ? model_slots
                              : fused   ? fused_slots
                                        : layer_slots,
                              rule->slot);
    if (layer >= 0 && family->gguf_norm2 && rule->slot == offsetof(struct esp_layer, norm2))
        own = family->gguf_norm2;
    if (own && layer < 0)
        snprintf(name, size, "%s", own);
    else if (own)
        snprintf(name, size, "blk.%d.%s", layer, own);
    return own != NULL;
}

void esp_gguf_expert_name(char *name, size_t size, const struct esp_tensor_rule *rule,
                          int layer)
{
    snprintf(name, size, "blk.%d.%s", layer, name_of(expert_slots, rule->slot));
}

/* ------------------------------------------------------------------ configuration */

const struct esp_gguf_key esp_gguf_keys[] = {
    {"block_count", "num_hidden_layers", true, ESP_GGUF_U32},
    {"embedding_length", "hidden_size", true, ESP_GGUF_U32},
    {"feed_forward_length", "intermediate_size", true, ESP_GGUF_U32},
    {"context_length", "max_position_embeddings", true, ESP_GGUF_U32},
    {"expert_count", "num_experts", false, ESP_GGUF_U32},
    {"expert_used_count", "num_experts_per_tok", false, ESP_GGUF_U32},
    {"expert_feed_forward_length", "moe_intermediate_size", false, ESP_GGUF_U32},
    {"attention.head_count", "num_attention_heads", true, ESP_GGUF_U32},
    {"attention.head_count_kv", "num_key_value_heads", false, ESP_GGUF_U32},
    {"attention.key_length", "head_dim", false, ESP_GGUF_U32},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", false, ESP_GGUF_F32},
    {"attention.layer_norm_epsilon", "layer_norm_eps", false, ESP_GGUF_F32},
    {"attention.sliding_window", "sliding_window", false, ESP_GGUF_U32},
    {"attention.scale", "attention_multiplier", false, ESP_GGUF_F32},
    {"embedding_scale", "embedding_multiplier", false, ESP_GGUF_F32},
    {"residual_scale", "residual_multiplier", false, ESP_GGUF_F32},
    {"logit_scale", "logits_scaling", false, ESP_GGUF_F32},
    {"attn_logit_softcapping", "attn_logit_softcapping", false, ESP_GGUF_F32},
    {"final_logit_softcapping", "final_logit_softcapping", false, ESP_GGUF_F32},
    {"rope.freq_base", "rope_theta", false, ESP_GGUF_F32},
    {"rope.freq_base_swa", "rope_local_base_freq", false, ESP_GGUF_F32},
    {"use_parallel_residual", "use_parallel_residual", false, ESP_GGUF_BOOL},
};
const int esp_gguf_key_count = sizeof esp_gguf_keys / sizeof *esp_gguf_keys;

static const struct esp_gguf_value *find(const struct esp_gguf *g, const char *architecture,
                                         const char *key)
{
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%s.%s", architecture, key);
    return esp_gguf_find(g, name);
}

/* A key may hold one value per layer; models with different layers are not supported. */
static int add_key(cJSON *config, const struct esp_gguf *g, const char *architecture,
                   const struct esp_gguf_key *key, char *err, size_t errlen)
{
    const struct esp_gguf_value *value = find(g, architecture, key->gguf);
    if (!value && key->required)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s does not give %s.%s", g->path,
                        architecture, key->gguf);
    if (!value)
        return 0;
    double number = esp_gguf_number(value, 0);
    for (uint64_t i = 1; i < value->count; i++)
        if (esp_gguf_number(value, i) != number)
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "%s: %s.%s differs from layer to layer, which is not supported",
                            g->path, architecture, key->gguf);
    if (isnan(number) || isinf(number))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: %s.%s must be a number", g->path,
                        architecture, key->gguf);
    if (value->kind == ESP_GGUF_BOOL)
        cJSON_AddBoolToObject(config, key->config, number != 0);
    else if (number != 0 || strcmp(key->config, "sliding_window") != 0) /* 0: no window */
        cJSON_AddNumberToObject(config, key->config, number);
    return 0;
}

static bool has_tensor(const struct esp_gguf *g, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].name.length == length &&
            memcmp(g->tensors[i].name.bytes, name, length) == 0)
            return true;
    return false;
}

/* Adds settings that a folder has in config.json and a GGUF file shows by its tensors. A split
 * file has these in its first part. */
static void add_presence(cJSON *config, const struct esp_gguf *g)
{
    bool bias = has_tensor(g, "blk.0.attn_q.bias") || has_tensor(g, "blk.0.attn_qkv.bias");
    cJSON_AddBoolToObject(config, "attention_bias", bias);
    cJSON_AddBoolToObject(config, "mlp_bias", has_tensor(g, "blk.0.ffn_gate.bias"));
}

static int add_vocabulary(cJSON *config, const struct esp_gguf *g, const char *architecture,
                          char *err, size_t errlen)
{
    for (size_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].name.length == strlen("token_embd.weight") &&
            memcmp(g->tensors[i].name.bytes, "token_embd.weight",
                   strlen("token_embd.weight")) == 0 &&
            g->tensors[i].rank == 2) {
            cJSON_AddNumberToObject(config, "vocab_size", (double)g->tensors[i].shape[1]);
            return 0;
        }
    const struct esp_gguf_value *tokens = esp_gguf_find(g, "tokenizer.ggml.tokens");
    const struct esp_gguf_value *size = find(g, architecture, "vocab_size");
    if (!size && !(tokens && tokens->array))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s does not give %s.vocab_size", g->path,
                        architecture);
    cJSON_AddNumberToObject(config, "vocab_size",
                            size ? esp_gguf_number(size, 0) : (double)tokens->count);
    return 0;
}

/* A tensor of factors as a list, or nothing. */
static bool add_factors(cJSON *scaling, const char *key, const struct esp_gguf *g,
                        const char *name)
{
    enum { MOST_FACTORS = 4096 };
    const size_t length = strlen(name);
    for (size_t i = 0; i < g->tensor_count; i++) {
        const struct esp_gguf_tensor *t = &g->tensors[i];
        if (t->name.length != length || memcmp(t->name.bytes, name, length) != 0 ||
            t->rank != 1 || t->shape[0] > MOST_FACTORS ||
            strcmp(esp_gguf_type(t->type)->name, "F32") != 0)
            continue;
        cJSON *list = cJSON_AddArrayToObject(scaling, key);
        for (int64_t k = 0; k < t->shape[0]; k++) {
            float factor;
            esp_tensor_file_read(&g->shard->source, t->offset + (size_t)k * sizeof factor,
                                 &factor, sizeof factor);
            cJSON_AddItemToArray(list, cJSON_CreateNumber((double)factor));
        }
        return true;
    }
    return false;
}

static void add_scaling(cJSON *config, const struct esp_gguf *g, const char *architecture)
{
    static const struct esp_gguf_key keys[] = {
        {"rope.scaling.factor", "factor", false, ESP_GGUF_F32},
        {"rope.scaling.yarn_beta_fast", "beta_fast", false, ESP_GGUF_F32},
        {"rope.scaling.yarn_beta_slow", "beta_slow", false, ESP_GGUF_F32},
        {"rope.scaling.original_context_length", "original_max_position_embeddings", false,
         ESP_GGUF_U32},
        {"rope.scaling.attn_factor", "attention_factor", false, ESP_GGUF_F32},
    };
    char *type = esp_gguf_copy_text(find(g, architecture, "rope.scaling.type"));
    cJSON *scaling = cJSON_CreateObject();
    const bool lists = add_factors(scaling, "long_factor", g, "rope_factors_long.weight") &&
                       add_factors(scaling, "short_factor", g, "rope_factors_short.weight");
    if (lists || (type && strcmp(type, "none") != 0)) {
        cJSON_AddItemToObject(config, "rope_scaling", scaling);
        cJSON_AddStringToObject(scaling, "rope_type", lists ? "longrope" : type);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const struct esp_gguf_value *value = find(g, architecture, keys[i].gguf);
            if (value)
                cJSON_AddNumberToObject(scaling, keys[i].config, esp_gguf_number(value, 0));
        }
        if (strcmp(architecture, "gpt-oss") == 0) /* so trained; GGUF has no key for it */
            cJSON_AddBoolToObject(scaling, "truncate", false);
    } else {
        cJSON_Delete(scaling);
    }
    free(type);
}

/* The converter does not write Gemma's factor of the scores. They are divided by the square
 * root of head_dim, but in the 27B models (of 46 and 62 layers) by the root of hidden size /
 * heads. espalier writes the factor. */
static void add_attention_divisor(cJSON *config, const struct esp_gguf *g,
                                  const char *architecture)
{
    const struct esp_gguf_value *scale = find(g, architecture, "attention.scale");
    const double layers =
        cJSON_GetNumberValue(cJSON_GetObjectItem(config, "num_hidden_layers"));
    const double hidden = cJSON_GetNumberValue(cJSON_GetObjectItem(config, "hidden_size"));
    const double heads =
        cJSON_GetNumberValue(cJSON_GetObjectItem(config, "num_attention_heads"));
    const cJSON *own = cJSON_GetObjectItem(config, "head_dim");
    double divisor = own && layers != 46 && layers != 62 ? own->valuedouble : hidden / heads;
    if (scale && esp_gguf_number(scale, 0) > 0)
        divisor = 1 / (esp_gguf_number(scale, 0) * esp_gguf_number(scale, 0));
    if (strncmp(architecture, "gemma", 5) == 0 && divisor > 0)
        cJSON_AddNumberToObject(config, "query_pre_attn_scalar", divisor);
}

/* GPT-NeoX rotates a part of each head. */
static void add_rotation(cJSON *config, const struct esp_gguf *g, const char *architecture)
{
    const struct esp_gguf_value *rotated = find(g, architecture, "rope.dimension_count");
    double heads = cJSON_GetNumberValue(cJSON_GetObjectItem(config, "num_attention_heads"));
    double hidden = cJSON_GetNumberValue(cJSON_GetObjectItem(config, "hidden_size"));
    const cJSON *own = cJSON_GetObjectItem(config, "head_dim");
    double head = own ? cJSON_GetNumberValue(own) : hidden / heads;
    if (rotated && head >= 1)
        cJSON_AddNumberToObject(config, "partial_rotary_factor",
                                esp_gguf_number(rotated, 0) / head);
}

static void add_token(cJSON *list, double number)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (item->valuedouble == number)
            return;
    }
    cJSON_AddItemToArray(list, cJSON_CreateNumber(number));
}

/* The tokens that end a text: those named by keys, and control tokens known to end a turn. One
 * key alone would let a chat model run on. */
static void add_end_tokens(cJSON *config, const struct esp_gguf *g)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    static const char *const known[] = {"<|eot_id|>",      "<|eom_id|>",    "<|im_end|>",
                                        "<|end|>",         "<end_of_turn>", "<|endoftext|>",
                                        "<|end_of_text|>", "<|return|>",    "<|call|>"};
    const struct esp_gguf_value *own = esp_gguf_find(g, "espalier.end_tokens");
    const struct esp_gguf_value *tokens = esp_gguf_find(g, "tokenizer.ggml.tokens");
    const struct esp_gguf_value *types = esp_gguf_find(g, "tokenizer.ggml.token_type");
    cJSON *list = cJSON_AddArrayToObject(config, "eos_token_id");
    for (uint64_t i = 0; own && i < own->count && i < ESP_MAX_END_TOKENS; i++)
        add_token(list, esp_gguf_number(own, i));
    for (size_t i = 0; !own && i < sizeof keys / sizeof *keys; i++) {
        const struct esp_gguf_value *value = esp_gguf_find(g, keys[i]);
        if (value)
            add_token(list, esp_gguf_number(value, 0));
    }
    const unsigned char *at = NULL;
    struct esp_gguf_text text;
    for (uint64_t id = 0; !own && tokens && types && esp_gguf_next_text(tokens, &at, &text);
         id++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (text.length == strlen(known[i]) && esp_gguf_number(types, id) == 3 &&
                memcmp(text.bytes, known[i], text.length) == 0 &&
                cJSON_GetArraySize(list) < ESP_MAX_END_TOKENS)
                add_token(list, (double)id);
    if (cJSON_GetArraySize(list) == 0)
        cJSON_DeleteItemFromObject(config, "eos_token_id");
}

static int read_config(cJSON *config, const struct esp_gguf *g, const char *architecture,
                       char *err, size_t errlen)
{
    const struct esp_gguf_architecture *known = esp_gguf_architecture_named(architecture);
    if (!known) {
        char list[256] = "";
        for (int i = 0; i < ARCHITECTURES; i++)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                     architectures[i].name);
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s: general.architecture is %s; supported are: %s", g->path,
                        architecture, list);
    }
    const struct esp_gguf_value *experts = find(g, architecture, "expert_count");
    const bool mixture =
        strstr(known->model_type, "moe") != NULL || strcmp(known->model_type, "gpt_oss") == 0;
    if (experts && esp_gguf_number(experts, 0) > 0 && !mixture)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s is a mixture of %g experts, which is not supported for %s", g->path,
                        esp_gguf_number(experts, 0), architecture);
    int status = 0;
    for (int i = 0; i < esp_gguf_key_count && status == 0; i++)
        status = add_key(config, g, architecture, &esp_gguf_keys[i], err, errlen);
    if (status == 0)
        status = add_vocabulary(config, g, architecture, err, errlen);
    if (status < 0)
        return status;
    bool window = strcmp(known->model_type, "llama") == 0 &&
                  cJSON_GetObjectItem(config, "sliding_window");
    cJSON_AddStringToObject(config, "model_type", window ? "mistral" : known->model_type);
    cJSON_AddBoolToObject(config, "norm_topk_prob", true);      /* as llama.cpp computes it */
    cJSON_AddBoolToObject(config, "tie_word_embeddings", true); /* if there is no head */
    add_presence(config, g);
    add_scaling(config, g, architecture);
    add_attention_divisor(config, g, architecture);
    add_rotation(config, g, architecture);
    add_end_tokens(config, g);
    return 0;
}

int esp_gguf_config(cJSON **config, const struct esp_gguf *g, char *err, size_t errlen)
{
    char *architecture = esp_gguf_copy_text(esp_gguf_find(g, "general.architecture"));
    *config = NULL;
    if (!architecture)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s does not give general.architecture",
                        g->path);
    cJSON *made = cJSON_CreateObject();
    int status = made
                     ? read_config(made, g, architecture, err, errlen)
                     : esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", g->path);
    free(architecture);
    if (status < 0)
        cJSON_Delete(made);
    else
        *config = made;
    return status;
}

/* ------------------------------------------------------------------ tensors */

/* The layer number in the name "blk.N....", or -1. */
static int layer_of(const char *stored)
{
    int layer = -1, length = 0;
    return sscanf(stored, "blk.%9d.%n", &layer, &length) == 1 && length > 0 ? layer : -1;
}

/* Writes a tensor's name in a folder. False: the architecture has no such tensor, and the name
 * stays. */
static bool folder_name(char *name, size_t size, const struct esp_architecture *architecture,
                        const char *stored, const struct esp_tensor_rule **found)
{
    const struct esp_family *family = architecture->family;
    const int layer = layer_of(stored);
    for (const struct esp_tensor_rule *rule = layer < 0 ? family->tensors
                                                        : family->layer_tensors;
         rule->name; rule++) {
        char own[MOST_NAME];
        if (!esp_gguf_tensor_name(own, sizeof own, family, rule, layer) ||
            strcmp(own, stored) != 0)
            continue;
        if (layer < 0)
            snprintf(name, size, "%s", rule->name);
        else
            snprintf(name, size, "%s%d.%s", family->layer_name, layer, rule->name);
        *found = rule;
        return true;
    }
    *found = NULL;
    for (const struct esp_tensor_rule *rule = layer < 0 ? NULL : family->expert_tensors;
         rule && rule->name; rule++) {
        char own[MOST_NAME];
        esp_gguf_expert_name(own, sizeof own, rule, layer);
        if (strcmp(own, stored) != 0)
            continue;
        snprintf(name, size, "%s%d.%s%s", family->layer_name, layer, family->expert_name,
                 rule->name);
        if (rule->parts > 0) /* a separate tensor, with the number of the part */
            snprintf(name + strlen(name), size - strlen(name), ".%d", rule->part);
        return true;
    }
    snprintf(name, size, "%s", stored);
    return false;
}

/* Is this tensor of a layer one of query or key? */
static bool is_rotated(const struct esp_tensor_rule *rule)
{
    return (rule->slot == offsetof(struct esp_layer, query) ||
            rule->slot == offsetof(struct esp_layer, query_bias) ||
            rule->slot == offsetof(struct esp_layer, key) ||
            rule->slot == offsetof(struct esp_layer, key_bias));
}

static int add_tensor(struct esp_stored_set *set, const struct esp_gguf *g,
                      const struct esp_gguf_tensor *tensor,
                      const struct esp_architecture *architecture, bool paired, char *err,
                      size_t errlen)
{
    char stored[MOST_NAME], name[2 * MOST_NAME];
    const struct esp_tensor_rule *rule;
    snprintf(stored, sizeof stored, "%.*s", (int)tensor->name.length, tensor->name.bytes);
    bool known = folder_name(name, sizeof name, architecture, stored, &rule);
    struct esp_stored *made = esp_stored_add(set, g->shard, name);
    if (!made)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", g->path);
    snprintf(made->type, sizeof made->type, "%s", esp_gguf_type(tensor->type)->name);
    made->rank = tensor->rank;
    for (int i = 0; i < tensor->rank; i++)
        made->shape[i] = tensor->shape[tensor->rank - 1 - i];
    made->begin = tensor->offset - g->data;
    made->end = made->begin + tensor->bytes;
    made->offset = tensor->offset;
    made->converted = true;
    made->paired = known && rule && paired && is_rotated(rule) && layer_of(stored) >= 0;
    return 0;
}

static int add_tensors(struct esp_stored_set *set, const struct esp_gguf *g,
                       const struct esp_architecture *architecture, bool paired, char *err,
                       size_t errlen)
{
    if (!esp_stored_reserve(set, g->tensor_count))
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", g->path);
    int status = 0;
    for (size_t i = 0; i < g->tensor_count && status == 0; i++)
        status = add_tensor(set, g, &g->tensors[i], architecture, paired, err, errlen);
    return status;
}

static int add_part(struct esp_stored_set *set, const char *path, int number, int count,
                    const struct esp_architecture *architecture, bool paired, char *err,
                    size_t errlen)
{
    struct esp_gguf part;
    int status = esp_gguf_open(&part, set, path, err, errlen);
    const struct esp_gguf_value *own = status == 0 ? esp_gguf_find(&part, "split.no") : NULL;
    if (status == 0 && own && esp_gguf_number(own, 0) != number - 1)
        status =
            esp_fail(err, errlen, ESP_E_FORMAT, "%s is not part %d of %d: its split.no is %g",
                     path, number, count, esp_gguf_number(own, 0));
    if (status == 0)
        status = add_tensors(set, &part, architecture, paired, err, errlen);
    esp_gguf_close(&part);
    return status;
}

int esp_gguf_tensors(struct esp_stored_set *set, const struct esp_gguf *g,
                     const struct esp_architecture *architecture, char *err, size_t errlen)
{
    const struct esp_gguf_value *split = esp_gguf_find(g, "split.count");
    double parts = split ? esp_gguf_number(split, 0) : 1;
    const struct esp_gguf_architecture *own = esp_gguf_architecture_of(architecture->name);
    bool paired = own && own->paired;
    if (split && !(parts >= 1 && parts <= ESP_GGUF_PARTS))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: split.count must be from 1 to %d",
                        g->path, ESP_GGUF_PARTS);
    int status = add_tensors(set, g, architecture, paired, err, errlen);
    for (int i = 2; i <= (int)parts && status == 0; i++) {
        char path[PATH_MAX];
        if (!esp_gguf_part(path, g->path, i, (int)parts))
            return esp_fail(err, errlen, ESP_E_FILE,
                            "%s is the first of %d parts, but its name is not "
                            "NAME-00001-of-%05d.gguf",
                            g->path, (int)parts, (int)parts);
        status = add_part(set, path, i, (int)parts, architecture, paired, err, errlen);
    }
    return status < 0 ? status : esp_stored_finish(set, err, errlen);
}

/* ------------------------------------------------------------------ rotation */

/* Marks factors that are already part of the configuration (add_factors). */
static void mark_used(struct esp_stored_set *set, const char *name)
{
    struct esp_stored *stored = esp_stored_find(set, name);
    if (stored)
        stored->used = true;
}

int esp_gguf_rotary(float *inverse_frequency, int rotary, const struct esp_gguf *g,
                    struct esp_stored_set *set, char *err, size_t errlen)
{
    char *architecture = esp_gguf_copy_text(esp_gguf_find(g, "general.architecture"));
    const struct esp_gguf_value *rotated =
        architecture ? find(g, architecture, "rope.dimension_count") : NULL;
    struct esp_stored *stored = esp_stored_find(set, "rope_freqs.weight");
    free(architecture);
    mark_used(set, "rope_factors_long.weight");
    mark_used(set, "rope_factors_short.weight");
    if (rotated && esp_gguf_number(rotated, 0) != rotary)
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "%s: rope.dimension_count is %g, but %d dimensions of a head are rotated", g->path,
            esp_gguf_number(rotated, 0), rotary);
    if (!stored)
        return 0;
    if (strcmp(stored->type, "F32") != 0 || stored->rank != 1 || stored->shape[0] != rotary / 2)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s: rope_freqs.weight must be %d numbers of type F32", g->path,
                        rotary / 2);
    for (int i = 0; i < rotary / 2; i++) {
        float factor;
        esp_tensor_file_read(stored->source, stored->offset + (size_t)i * sizeof factor,
                             &factor, sizeof factor);
        if (!(factor >= 1e-6f && factor <= 1e6f))
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "%s: rope_freqs.weight has the invalid factor %g", g->path,
                            (double)factor);
        inverse_frequency[i] /= factor;
    }
    stored->used = true;
    return 0;
}
