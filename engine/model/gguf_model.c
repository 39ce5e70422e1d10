/* gguf_model.c - reads a GGUF file like a model folder; see gguf_model.h.
 *
 * Keys and tensors have the same names as in the gguf Python package. llama.cpp's converter
 * changes some tensors of a folder, and reading reverses these changes. In GGUF files, the rows
 * of the query and key matrices are in pairs (struct esp_tensor). The parts of GPT-NeoX's fused
 * matrix are consecutive (struct esp_stored). The factors by which Llama 3 scales its
 * frequencies are a tensor, rope_freqs.weight.
 */
#include "engine/model/gguf_model.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/model_desc.h"
#include "kernels/status.h"

/* ------------------------------------------------------------------ names */

/* Each line has four members: general.architecture, the model_type of the same architecture,
 * whether the rows of query and key are in pairs, and whether state heads are tiled. The
 * converter of llama.cpp pairs rows for architectures in which llama.cpp rotates neighbouring
 * dimensions. */
static const struct esp_gguf_architecture architectures[] = {
    {"llama", "llama", true, false},
    {"qwen2", "qwen2", false, false},
    {"qwen3", "qwen3", false, false},
    {"gptneox", "gpt_neox", false, false},
    {"gemma2", "gemma2", false, false},
    {"gemma3", "gemma3_text", false, false},
    {"phi3", "phi3", false, false},
    {"olmo2", "olmo2", false, false},
    {"smollm3", "smollm3", true, false},
    {"gpt2", "gpt2", false, false},
    {"granite", "granite", true, false},
    {"qwen3moe", "qwen3_moe", false, false},
    {"gpt-oss", "gpt_oss", false, false},
    {"lfm2", "lfm2", false, false},
    {"lfm2moe", "lfm2_moe", false, false},
    {"qwen35", "qwen3_5_text", false, true},
    {"qwen3next", "qwen3_next", false, false},
    {"qwen35moe", "qwen3_5_moe_text", false, true},
    {"granitehybrid", "granitemoehybrid", true, false},
    {"nemotron_h", "nemotron_h", true, false},
    {"nemotron_h_moe", "nemotron_h", true, false},
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
    /* Mistral's models are written under the name llama, with attention.sliding_window. */
    if (strcmp(model_type, "mistral") == 0)
        model_type = "llama";
    for (int i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].model_type, model_type) == 0)
            return &architectures[i];
    return NULL;
}

const struct esp_gguf_architecture *esp_gguf_architecture_for(const struct esp_model *model)
{
    const struct esp_gguf_architecture *own = esp_gguf_architecture_of(model->architecture);
    for (int i = 0; own && model->desc.experts > 0 && i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].model_type, own->model_type) == 0)
            own = &architectures[i]; /* if two entries have this model_type, the second
                                        one is for models with experts */
    return own;
}

struct slot_name {
    size_t slot;
    const char *name;
    const char *fused; /* name of the fused matrix that may contain this matrix, or NULL */
};

#define SLOT(type, field, text, ...)                                                           \
    {                                                                                          \
        .slot = offsetof(struct esp_##type, field), .name = text, __VA_ARGS__                  \
    }

static const struct slot_name model_slots[] = {
    SLOT(model_desc, embedding, "token_embd.weight"),
    SLOT(model_desc, position_embedding, "position_embd.weight"),
    SLOT(model_desc, head, "output.weight"),
    SLOT(model_desc, norm_final, "output_norm.weight"),
    SLOT(model_desc, norm_final_bias, "output_norm.bias"),
    {0},
};

static const struct slot_name layer_slots[] = {
    SLOT(layer, norm1, "attn_norm.weight"),
    SLOT(layer, norm1_bias, "attn_norm.bias"),
    SLOT(layer, query, "attn_q.weight", .fused = "attn_qkv.weight"),
    SLOT(layer, query_bias, "attn_q.bias", .fused = "attn_qkv.bias"),
    SLOT(layer, key, "attn_k.weight", .fused = "attn_qkv.weight"),
    SLOT(layer, key_bias, "attn_k.bias", .fused = "attn_qkv.bias"),
    SLOT(layer, value, "attn_v.weight", .fused = "attn_qkv.weight"),
    SLOT(layer, value_bias, "attn_v.bias", .fused = "attn_qkv.bias"),
    SLOT(layer, query_norm, "attn_q_norm.weight"),
    SLOT(layer, key_norm, "attn_k_norm.weight"),
    SLOT(layer, sink_logit, "attn_sinks.weight"),
    SLOT(layer, output, "attn_output.weight"),
    SLOT(layer, output_bias, "attn_output.bias"),
    SLOT(layer, norm_attended, "post_attention_norm.weight"),
    SLOT(layer, norm2, "ffn_norm.weight"),
    SLOT(layer, norm2_bias, "ffn_norm.bias"),
    SLOT(layer, router, "ffn_gate_inp.weight"),
    SLOT(layer, router_bias, "ffn_gate_inp.bias"),
    SLOT(layer, choice_bias, "exp_probs_b.bias"),
    SLOT(layer, gate, "ffn_gate.weight", .fused = "ffn_up.weight"),
    SLOT(layer, gate_bias, "ffn_gate.bias"),
    SLOT(layer, up, "ffn_up.weight", .fused = "ffn_up.weight"),
    SLOT(layer, up_bias, "ffn_up.bias"),
    SLOT(layer, down, "ffn_down.weight"),
    SLOT(layer, down_bias, "ffn_down.bias"),
    SLOT(layer, shared_gate, "ffn_gate_inp_shexp.weight"),
    SLOT(layer, norm_mlp, "post_ffw_norm.weight"),
    {0},
};

/* Lists the GGUF names for the slots of struct esp_expert. Each of these tensors has the
 * matrices of all experts of a layer. */
static const struct slot_name expert_slots[] = {
    SLOT(expert, gate, "ffn_gate_exps.weight"),
    SLOT(expert, gate_bias, "ffn_gate_exps.bias"),
    SLOT(expert, up, "ffn_up_exps.weight"),
    SLOT(expert, up_bias, "ffn_up_exps.bias"),
    SLOT(expert, down, "ffn_down_exps.weight"),
    SLOT(expert, down_bias, "ffn_down_exps.bias"),
    {0},
};

static const char *name_of(const struct slot_name *table, size_t slot, bool fused)
{
    for (; table->name; table++)
        if (table->slot == slot)
            return fused ? table->fused : table->name;
    return NULL;
}

bool esp_gguf_tensor_name(char *name, size_t size, const struct esp_family *family,
                          const struct esp_tensor_rule *rule, int layer, bool experts)
{
    const bool fused =
        layer >= 0 && !experts && (rule->parts > 0 || (rule->stacked && !rule->apart));
    const char *own = name_of(layer < 0 ? model_slots
                              : experts ? expert_slots
                                        : layer_slots,
                              rule->slot, fused && !rule->kept);
    const struct esp_gguf_slot *other = layer < 0 ? family->gguf_model
                                        : experts ? NULL
                                                  : family->gguf_layer;
    for (; other && other->name; other++)
        if (other->slot == rule->slot)
            own = other->name;
    if (own && layer < 0)
        snprintf(name, size, "%s", own);
    else if (own)
        snprintf(name, size, "blk.%d.%s", layer, own);
    return own != NULL;
}

/* ------------------------------------------------------------------ configuration */

// clang-format off
const struct esp_gguf_key esp_gguf_keys[] = {
#define U32(name) ESP_GGUF_U32, ESP_CONFIG_##name
#define F32(name) ESP_GGUF_F32, ESP_CONFIG_##name
    {"block_count", "num_hidden_layers", true, U32(layers), ESP_GGUF_ALWAYS},
    {"context_length", "max_position_embeddings", true, U32(context), ESP_GGUF_ALWAYS},
    {"embedding_length", "hidden_size", true, U32(hidden), ESP_GGUF_ALWAYS},
    {ESP_GGUF_FFN, "intermediate_size", false, U32(ffn), ESP_GGUF_ALWAYS},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size", false, U32(ffn),
     ESP_GGUF_IF_KNOWN},
    {"attention.head_count", "num_attention_heads", true, U32(heads), ESP_GGUF_ALWAYS},
    {ESP_GGUF_KV_HEADS, "num_key_value_heads", false, U32(kv_heads), ESP_GGUF_ALWAYS},
    {"shortconv.l_cache", "conv_L_cache", false, U32(conv_kernel), ESP_GGUF_IF_KNOWN},
    {"ssm.conv_kernel", "ssm_conv_kernel", false, U32(conv_kernel), ESP_GGUF_IF_KNOWN},
    {"ssm.group_count", "ssm_group_count", false, U32(key_heads), ESP_GGUF_IF_KNOWN},
    {"ssm.state_size", "ssm_state_size", false, U32(key_dim), ESP_GGUF_IF_KNOWN},
    {"ssm.time_step_rank", "ssm_time_step_rank", false, U32(state_heads), ESP_GGUF_IF_KNOWN},
    {"ssm.inner_size", NULL, false, U32(value_dim), ESP_GGUF_IF_KNOWN},
    {"full_attention_interval", "full_attention_interval", false, U32(attention_every), 0},
    {"attention.key_length", "head_dim", false, U32(head_dim), ESP_GGUF_ALWAYS},
    {"attention.value_length", NULL, false, U32(head_dim), ESP_GGUF_ALWAYS},
    {"rope.dimension_count", NULL, false, U32(rotary_fraction), ESP_GGUF_ALWAYS},
    {"vocab_size", NULL, false, U32(vocabulary), ESP_GGUF_ALWAYS},
    {"attention.sliding_window", "sliding_window", false, U32(window), 0},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", false, F32(norm_epsilon), ESP_GGUF_ALWAYS},
    {"attention.layer_norm_epsilon", "layer_norm_eps", false, F32(norm_epsilon), ESP_GGUF_ALWAYS},
    {"use_parallel_residual", "use_parallel_residual", false,
     ESP_GGUF_BOOL, ESP_CONFIG_parallel_residual, ESP_GGUF_IF_KNOWN},
    {"attention.scale", "attention_multiplier", false, F32(attention_scale), 0},
    {"embedding_scale", "embedding_multiplier", false, F32(embedding_scale), 1},
    {"residual_scale", "residual_multiplier", false, F32(residual_scale), 1},
    {"logit_scale", "logits_scaling", false, F32(logit_divisor), 1},
    {"attn_logit_softcapping", "attn_logit_softcapping", false, F32(attention_cap), 0},
    {"final_logit_softcapping", "final_logit_softcapping", false, F32(logit_cap), 0},
    {"expert_count", "num_experts", false, U32(experts), 0},
    {"expert_used_count", "num_experts_per_tok", false, U32(experts_used), 0},
    {"leading_dense_block_count", "num_dense_layers", false, U32(mixed_from), ESP_GGUF_IF_KNOWN},
    {"expert_gating_func", NULL, false, U32(sigmoid_router), 0},
    {"expert_weights_scale", "routed_scaling_factor", false, F32(expert_scale), 1},
    {"expert_weights_norm", NULL, false, ESP_GGUF_BOOL, ESP_CONFIG_experts_normed, 0},
    {"expert_feed_forward_length", "moe_intermediate_size", false, U32(expert_ffn), 0},
    {"rope.freq_base", "rope_theta", false, F32(FIELD_COUNT), 0},
    {"rope.freq_base_swa", "rope_local_base_freq", false, F32(FIELD_COUNT), 0},
#undef U32
#undef F32
};
// clang-format on
const int esp_gguf_key_count = sizeof esp_gguf_keys / sizeof *esp_gguf_keys;

static const struct esp_gguf_value *find(const struct esp_gguf *g, const char *architecture,
                                         const char *key)
{
    char name[ESP_TENSOR_NAME];
    snprintf(name, sizeof name, "%s.%s", architecture, key);
    return esp_gguf_find(g, name);
}

/* Adds one key to config.json. The key may have one value per layer, but these values must be
 * equal. In two keys, some values may be 0: the number of key/value heads in recurrent layers,
 * and the width of the MLP in layers without an MLP. */
static int add_key(cJSON *config, const struct esp_gguf *g, const char *architecture,
                   const struct esp_gguf_key *key, char *err, size_t errlen)
{
    const struct esp_gguf_value *value = find(g, architecture, key->gguf);
    if (!value && key->required)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s does not give %s.%s", g->path,
                        architecture, key->gguf);
    if (!value)
        return 0;
    const bool zeros =
        strcmp(key->gguf, ESP_GGUF_KV_HEADS) == 0 || strcmp(key->gguf, ESP_GGUF_FFN) == 0;
    double number = esp_gguf_number(value, 0);
    for (uint64_t i = 1; i < value->count; i++)
        if (zeros && number == 0)
            number = esp_gguf_number(value, i);
        else if (esp_gguf_number(value, i) != number &&
                 !(zeros && esp_gguf_number(value, i) == 0))
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "%s: %s.%s differs from layer to layer, which is not supported",
                            g->path, architecture, key->gguf);
    if (isnan(number) || isinf(number))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: %s.%s must be a number", g->path,
                        architecture, key->gguf);
    if (value->kind == ESP_GGUF_BOOL)
        cJSON_AddBoolToObject(config, key->config, number != 0);
    else if (number != 0 || strcmp(key->config, "sliding_window") != 0) /* 0 means no window */
        cJSON_AddNumberToObject(config, key->config, number);
    return 0;
}

static double number_of(const struct esp_gguf *g, const char *architecture, const char *key,
                        double otherwise)
{
    const struct esp_gguf_value *value = find(g, architecture, key);
    return value ? esp_gguf_number(value, 0) : otherwise;
}

/* Adds the kind of each layer. A layer is recurrent if a list names it or, without a list, if
 * it has no key/value heads. If the file gives an MLP width for each layer, a layer with a
 * width above 0 has no mixer, only an MLP or experts. The layers of a draft head, which follow
 * the other layers, are left out. */
static void add_layer_types(cJSON *config, const struct esp_gguf *g, const char *architecture)
{
    const struct esp_gguf_value *listed = find(g, architecture, ESP_GGUF_RECURRENT);
    const struct esp_gguf_value *values =
        listed ? listed : find(g, architecture, ESP_GGUF_KV_HEADS);
    const struct esp_gguf_value *ffn = find(g, architecture, ESP_GGUF_FFN);
    const double draft = number_of(g, architecture, "nextn_predict_layers", 0);
    const char *without_mixer =
        number_of(g, architecture, "expert_count", 0) > 0 ? "moe" : "mlp";
    cJSON *layers = cJSON_GetObjectItemCaseSensitive(config, "num_hidden_layers");
    if (draft > 0 && layers) {
        cJSON_SetNumberHelper(layers, layers->valuedouble - draft);
        cJSON_AddNumberToObject(config, "num_nextn_predict_layers", draft);
    }
    if (!values || !values->array || values->count > ESP_GGUF_LAYERS)
        return;
    cJSON *types = cJSON_AddArrayToObject(config, "layer_types");
    for (uint64_t i = 0; i < values->count && layers && (double)i < layers->valuedouble; i++) {
        const bool zero = esp_gguf_number(values, i) == 0;
        const bool mlp = ffn && ffn->array && i < ffn->count && esp_gguf_number(ffn, i) != 0;
        cJSON_AddItemToArray(types, cJSON_CreateString(zero != !listed ? "full_attention"
                                                       : mlp           ? without_mixer
                                                                       : "linear_attention"));
    }
}

/* Adds two settings of recurrent layers: the width of a state's values, and whether the state
 * heads are tiled (see struct esp_model_desc). */
static void add_state_numbers(cJSON *config, const struct esp_gguf *g, const char *architecture)
{
    const double inner = number_of(g, architecture, "ssm.inner_size", 0);
    const double heads = number_of(g, architecture, "ssm.time_step_rank", 0);
    if (inner > 0 && heads > 0)
        cJSON_AddNumberToObject(config, "ssm_value_size", inner / heads);
    if (!find(g, architecture, "expert_count"))
        cJSON_AddNumberToObject(config, "num_local_experts", 0);
    if (number_of(g, architecture, ESP_GGUF_ROTATED, 0) == 1)
        cJSON_AddStringToObject(config, "position_embedding_type", "rope");
    cJSON_AddBoolToObject(config, "ssm_heads_tiled",
                          esp_gguf_architecture_named(architecture)->tiled);
}

/* Returns the tensor with this name, or NULL. */
static const struct esp_gguf_tensor *find_tensor(const struct esp_gguf *g, const char *name)
{
    for (size_t i = 0; i < g->tensor_count; i++)
        if (esp_gguf_is_text(g->tensors[i].name, name))
            return &g->tensors[i];
    return NULL;
}

static bool ends_with(struct esp_gguf_text text, const char *end)
{
    const size_t n = strlen(end);
    return text.length >= n && memcmp(text.bytes + text.length - n, end, n) == 0;
}

/* Adds settings that have a key in config.json, but none in GGUF. Each setting is true if the
 * file has a certain tensor, such as a bias. In a split file, these tensors are in the first
 * part. */
static void add_presence(cJSON *config, const struct esp_gguf *g)
{
    bool conv = false, choice = false;
    for (size_t i = 0; i < g->tensor_count; i++) {
        conv |= ends_with(g->tensors[i].name, ".ssm_conv1d.bias");
        choice |= ends_with(g->tensors[i].name, ".exp_probs_b.bias");
    }
    cJSON_AddBoolToObject(config, "mamba_conv_bias", conv);
    cJSON_AddBoolToObject(config, "use_expert_bias", choice);
    bool bias = find_tensor(g, "blk.0.attn_q.bias") || find_tensor(g, "blk.0.attn_qkv.bias");
    cJSON_AddBoolToObject(config, "attention_bias", bias);
    cJSON_AddBoolToObject(config, "mlp_bias", find_tensor(g, "blk.0.ffn_gate.bias") != NULL);
}

static int add_vocabulary(cJSON *config, const struct esp_gguf *g, const char *architecture,
                          char *err, size_t errlen)
{
    const struct esp_gguf_tensor *embedding = find_tensor(g, "token_embd.weight");
    const struct esp_gguf_value *tokens = esp_gguf_find(g, "tokenizer.ggml.tokens");
    const double listed = tokens && tokens->array ? (double)tokens->count : -1;
    const double size = embedding && embedding->rank == 2
                            ? (double)embedding->shape[1]
                            : number_of(g, architecture, "vocab_size", listed);
    if (size == -1)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s does not give %s.vocab_size", g->path,
                        architecture);
    cJSON_AddNumberToObject(config, "vocab_size", size);
    return 0;
}

/* Copies the factors in the tensor `name` to a list in `scaling`. Returns false if there is no
 * such tensor. */
static bool add_factors(cJSON *scaling, const char *key, const struct esp_gguf *g,
                        const char *name)
{
    enum { MOST_FACTORS = 4096 };
    const struct esp_gguf_tensor *t = find_tensor(g, name);
    if (!t || t->rank != 1 || t->shape[0] > MOST_FACTORS ||
        strcmp(esp_gguf_type(t->type)->name, "F32") != 0)
        return false;
    cJSON *list = cJSON_AddArrayToObject(scaling, key);
    for (int64_t k = 0; k < t->shape[0]; k++) {
        float factor;
        esp_tensor_file_read(&g->shard->source, t->offset + (size_t)k * sizeof factor, &factor,
                             sizeof factor);
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)factor));
    }
    return true;
}

static void add_scaling(cJSON *config, const struct esp_gguf *g, const char *architecture)
{
    static const char *const keys[][2] = {
        {"rope.scaling.factor", "factor"},
        {"rope.scaling.yarn_beta_fast", "beta_fast"},
        {"rope.scaling.yarn_beta_slow", "beta_slow"},
        {"rope.scaling.original_context_length", "original_max_position_embeddings"},
        {"rope.scaling.attn_factor", "attention_factor"},
    };
    char *type = esp_gguf_copy_text(find(g, architecture, "rope.scaling.type"));
    cJSON *scaling = cJSON_CreateObject();
    const bool lists = add_factors(scaling, "long_factor", g, "rope_factors_long.weight") &&
                       add_factors(scaling, "short_factor", g, "rope_factors_short.weight");
    if (lists || (type && strcmp(type, "none") != 0)) {
        cJSON_AddItemToObject(config, "rope_scaling", scaling);
        cJSON_AddStringToObject(scaling, "rope_type", lists ? "longrope" : type);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const struct esp_gguf_value *value = find(g, architecture, keys[i][0]);
            if (value)
                cJSON_AddNumberToObject(scaling, keys[i][1], esp_gguf_number(value, 0));
        }
        /* gpt-oss was trained without rounding the ends of YaRN's ramp. GGUF has no key for
         * this setting. */
        if (strcmp(architecture, "gpt-oss") == 0)
            cJSON_AddBoolToObject(scaling, "truncate", false);
    } else {
        cJSON_Delete(scaling);
    }
    free(type);
}

static double config_number(const cJSON *config, const char *key)
{
    return cJSON_GetNumberValue(esp_json_item(config, key));
}

/* Adds the fraction of each head that is rotated (GPT-NeoX), and the divisor of Gemma's
 * attention scores. Gemma divides its scores by the square root of head_dim. Its 27B models (46
 * or 62 layers) divide by the square root of hidden size / heads instead. llama.cpp's converter
 * does not write this divisor; espalier does. */
static void add_head_numbers(cJSON *config, const struct esp_gguf *g, const char *architecture)
{
    const double scale = number_of(g, architecture, "attention.scale", 0);
    const struct esp_gguf_value *rotated = find(g, architecture, "rope.dimension_count");
    const double layers = config_number(config, "num_hidden_layers");
    const double share =
        config_number(config, "hidden_size") / config_number(config, "num_attention_heads");
    const cJSON *own = esp_json_item(config, "head_dim");
    const double head = own ? cJSON_GetNumberValue(own) : share;
    const double divisor = scale > 0                      ? 1 / (scale * scale)
                           : layers != 46 && layers != 62 ? head
                                                          : share;
    if (strncmp(architecture, "gemma", 5) == 0 && divisor > 0)
        cJSON_AddNumberToObject(config, "query_pre_attn_scalar", divisor);
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

/* Adds the tokens that end a text: the tokens that the keys below give, and control tokens that
 * are known to end a turn. With eos_token_id alone, a chat model might not stop. */
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
            if (esp_gguf_is_text(text, known[i]) && esp_gguf_number(types, id) == 3 &&
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
        char list[512] = "";
        for (int i = 0; i < ARCHITECTURES; i++)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                     architectures[i].name);
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s: general.architecture is %s; the supported ones are %s", g->path,
                        architecture, list);
    }
    const double experts = number_of(g, architecture, "expert_count", 0);
    const bool mixture =
        esp_config_rule(esp_architecture_named(known->model_type), ESP_CONFIG_experts) != NULL;
    if (experts > 0 && !mixture)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s is a mixture of %g experts, which is not supported for %s", g->path,
                        experts, architecture);
    int status = 0;
    for (int i = 0; i < esp_gguf_key_count && status == 0; i++)
        if (esp_gguf_keys[i].config)
            status = add_key(config, g, architecture, &esp_gguf_keys[i], err, errlen);
    if (status == 0)
        status = add_vocabulary(config, g, architecture, err, errlen);
    if (status < 0)
        return status;
    bool window =
        strcmp(known->model_type, "llama") == 0 && esp_json_item(config, "sliding_window");
    cJSON_AddStringToObject(config, "model_type", window ? "mistral" : known->model_type);
    cJSON_AddBoolToObject(config, "norm_topk_prob", true);      /* llama.cpp does the same */
    cJSON_AddBoolToObject(config, "tie_word_embeddings", true); /* changed to false if the file
                                                                   has an LM head */
    /* In GGUF files of LFM2, the width of the MLP needs no adjustment. */
    cJSON_AddBoolToObject(config, "block_auto_adjust_ff_dim", false);
    add_layer_types(config, g, architecture);
    add_state_numbers(config, g, architecture);
    add_presence(config, g);
    add_scaling(config, g, architecture);
    add_head_numbers(config, g, architecture);
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
    int status = made ? read_config(made, g, architecture, err, errlen)
                      : esp_no_memory(g->path, err, errlen);
    free(architecture);
    if (status < 0)
        cJSON_Delete(made);
    else
        *config = made;
    return status;
}

/* ------------------------------------------------------------------ tensors */

/* Returns the layer number in the name "blk.N....", or -1. */
static int layer_of(const char *stored)
{
    int layer = -1, length = 0;
    return sscanf(stored, "blk.%9d.%n", &layer, &length) == 1 && length > 0 ? layer : -1;
}

/* Returns the rule of the tensor with this name, or NULL. `experts` says whether to search the
 * table of experts. If a table has two rules for a slot, one of them is for layers with
 * experts; `shared` says whether the tensor belongs to such a layer. */
static const struct esp_tensor_rule *find_rule(const struct esp_family *family,
                                               const char *stored, int layer, bool experts,
                                               bool shared)
{
    const struct esp_tensor_rule *found = NULL;
    const struct esp_tensor_rule *rule = experts     ? family->expert_tensors
                                         : layer < 0 ? family->tensors
                                                     : family->layer_tensors;
    for (; rule && rule->name; rule++) {
        char own[ESP_TENSOR_NAME] = "";
        esp_gguf_tensor_name(own, sizeof own, family, rule, layer, experts);
        if (strcmp(own, stored) == 0 && (!found || shared == (rule->when == ESP_IF_MIXED)))
            found = rule;
    }
    return found;
}

bool esp_gguf_is_paired(const struct esp_gguf_architecture *architecture,
                        const struct esp_tensor_rule *rule, int layer)
{
    return layer >= 0 && architecture && architecture->paired &&
           (rule->slot == offsetof(struct esp_layer, query) ||
            rule->slot == offsetof(struct esp_layer, query_bias) ||
            rule->slot == offsetof(struct esp_layer, key) ||
            rule->slot == offsetof(struct esp_layer, key_bias));
}

/* Returns whether a tensor belongs to the shared expert, which all tokens use. If so, changes
 * its name to the name of an MLP's tensor, because both have the same slot. */
static bool name_shared(char *stored)
{
    static const char shared[] = "_shexp", gate[] = "ffn_gate_inp_shexp";
    char *at = strstr(stored, shared);
    if (!at || strstr(stored, gate))
        return false;
    memmove(at, at + strlen(shared), strlen(at + strlen(shared)) + 1);
    return true;
}

/* Returns the number of the first MTP layer. MTP layers follow the other layers. If the file
 * has no MTP layer, the result is larger than any layer's number. */
static int first_mtp(const struct esp_gguf *g, const struct esp_architecture *architecture)
{
    char *name = esp_gguf_copy_text(esp_gguf_find(g, "general.architecture"));
    const double all = name ? number_of(g, name, "block_count", 0) : 0;
    const double mtp = name ? number_of(g, name, "nextn_predict_layers", 0) : 0;
    free(name);
    return architecture->mtp && mtp > 0 && all > mtp && all <= ESP_GGUF_LAYERS
               ? (int)(all - mtp)
               : INT_MAX;
}

/* Changes the name "blk.N...." of an MTP layer's tensor, so that the first MTP layer has
 * the number 0. A tensor that only MTP layers have gets a name without a layer: "nextn....". */
static void name_mtp(char stored[ESP_TENSOR_NAME], int layer)
{
    char part[ESP_TENSOR_NAME];
    snprintf(part, sizeof part, "%s", strchr(stored + strlen("blk."), '.') + 1);
    if (strncmp(part, "nextn.", strlen("nextn.")) == 0 && layer == 0)
        snprintf(stored, ESP_TENSOR_NAME, "%s", part);
    else
        snprintf(stored, ESP_TENSOR_NAME, "blk.%d.%.*s", layer, ESP_TENSOR_NAME - 20, part);
}

/* Older GGUF files of Qwen3-Next have the mixer's matrices in one tensor, as folders do.
 * Returns the rule of this tensor, or NULL if `stored` names a different tensor. */
static const struct esp_tensor_rule *find_joined(const struct esp_family *family,
                                                 const char *stored, int layer)
{
    char name[ESP_TENSOR_NAME];
    snprintf(name, sizeof name, "blk.%d.ssm_in.weight", layer);
    for (const struct esp_tensor_rule *rule = family->layer_tensors; rule->name; rule++)
        if (rule->apart && rule->grouped && strcmp(stored, name) == 0)
            return rule;
    return NULL;
}

/* Adds a tensor of the file to `set`. `mtp` is the result of first_mtp() for the whole
 * model. */
static int add_tensor(struct esp_stored_set *set, const struct esp_gguf *g,
                      const struct esp_gguf_tensor *tensor,
                      const struct esp_architecture *architecture, int mtp, char *err,
                      size_t errlen)
{
    const struct esp_gguf_architecture *own = esp_gguf_architecture_of(architecture->name);
    const struct esp_family *family = architecture->family;
    char stored[ESP_TENSOR_NAME], name[ESP_TENSOR_NAME + 16];
    snprintf(stored, sizeof stored, "%.*s", (int)tensor->name.length, tensor->name.bytes);
    snprintf(name, sizeof name, "%s", stored);
    if (layer_of(stored) >= mtp) {
        name_mtp(stored, layer_of(stored) - mtp);
        family = architecture->mtp;
    }
    const int layer = layer_of(stored);
    const bool shared = name_shared(stored);
    const struct esp_tensor_rule *rule = find_rule(family, stored, layer, false, shared);
    const struct esp_tensor_rule *joined =
        rule || layer < 0 ? NULL : find_joined(family, stored, layer);
    const struct esp_tensor_rule *experts =
        rule || layer < 0 ? NULL : find_rule(family, stored, layer, true, false);
    if (joined)
        esp_rule_name(name, family, joined, layer, ESP_NO_EXPERT);
    if (rule)
        esp_rule_name(name, family, rule, layer, ESP_NO_EXPERT);
    if (rule && rule->apart)
        snprintf(name + strlen(name), sizeof name - strlen(name), ".%d", rule->part);
    if (experts)
        esp_rule_name(name, family, experts, layer, ESP_ALL_EXPERTS);
    if (experts && experts->parts > 0) /* each part is a tensor with a number */
        snprintf(name + strlen(name), sizeof name - strlen(name), ".%d", experts->part);
    struct esp_stored *made = esp_stored_add(set, g->shard, name);
    if (!made)
        return esp_no_memory(g->path, err, errlen);
    snprintf(made->type, sizeof made->type, "%s", esp_gguf_type(tensor->type)->name);
    made->rank = tensor->rank;
    for (int i = 0; i < tensor->rank; i++)
        made->shape[i] = tensor->shape[tensor->rank - 1 - i];
    made->begin = tensor->offset - g->data;
    made->end = made->begin + tensor->bytes;
    made->offset = tensor->offset;
    made->converted = true;
    made->paired = rule && esp_gguf_is_paired(own, rule, layer);
    return 0;
}

static int add_tensors(struct esp_stored_set *set, const struct esp_gguf *g,
                       const struct esp_architecture *architecture, int mtp, char *err,
                       size_t errlen)
{
    int status = 0;
    for (size_t i = 0; i < g->tensor_count && status == 0; i++)
        status = add_tensor(set, g, &g->tensors[i], architecture, mtp, err, errlen);
    return status;
}

static int add_part(struct esp_stored_set *set, const char *path, int number, int count,
                    const struct esp_architecture *architecture, int mtp, char *err,
                    size_t errlen)
{
    struct esp_gguf part;
    int status = esp_gguf_open(&part, set, path, err, errlen);
    const double own =
        status == 0 ? esp_gguf_number_of(&part, "split.no", number - 1) : number - 1;
    if (own != number - 1)
        status =
            esp_fail(err, errlen, ESP_E_FORMAT, "%s is not part %d of %d: its split.no is %g",
                     path, number, count, own);
    if (status == 0)
        status = add_tensors(set, &part, architecture, mtp, err, errlen);
    esp_gguf_close(&part);
    return status;
}

int esp_gguf_tensors(struct esp_stored_set *set, const struct esp_gguf *g,
                     const struct esp_architecture *architecture, char *err, size_t errlen)
{
    const double parts = esp_gguf_number_of(g, "split.count", 1);
    if (!(parts >= 1 && parts <= ESP_GGUF_PARTS))
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s: split.count must be from 1 to %d",
                        g->path, ESP_GGUF_PARTS);
    const int mtp = first_mtp(g, architecture);
    int status = add_tensors(set, g, architecture, mtp, err, errlen);
    for (int i = 2; i <= (int)parts && status == 0; i++) {
        char path[PATH_MAX];
        if (!esp_gguf_part(path, g->path, i, (int)parts))
            return esp_fail(err, errlen, ESP_E_FILE,
                            "%s is the first of %d parts, but its name is not "
                            "NAME-00001-of-%05d.gguf",
                            g->path, (int)parts, (int)parts);
        status = add_part(set, path, i, (int)parts, architecture, mtp, err, errlen);
    }
    return status < 0 ? status : esp_stored_finish(set, err, errlen);
}

/* ------------------------------------------------------------------ rotation */

/* Marks a tensor of factors as used. add_factors() has already copied it to the
 * configuration. */
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
    const double rotated =
        architecture ? number_of(g, architecture, "rope.dimension_count", rotary) : rotary;
    struct esp_stored *stored = esp_stored_find(set, "rope_freqs.weight");
    free(architecture);
    mark_used(set, "rope_factors_long.weight");
    mark_used(set, "rope_factors_short.weight");
    if (rotated != rotary)
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "%s: rope.dimension_count is %g, but %d dimensions of a head are rotated", g->path,
            rotated, rotary);
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
