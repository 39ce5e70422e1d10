/* family_delta.c - the parts that Qwen3.5 and related architectures share.
 *
 * Three of four layers are gated delta rules (ESP_MIXER_DELTA of kernels.h). The other layers
 * have attention with a gated output. Files store each norm weight minus one, except the
 * weights of the delta rule's norm. Qwen3-Next stores the rows of the delta rule's matrices in
 * a different order, so it has a separate table (arch_qwen3_next.c).
 *
 * Model folders store the logarithm of `rate`; GGUF files store `rate` itself. In GGUF files of
 * Qwen3.5, the state heads are in a different order: head h reads key head h % key_heads
 * (`heads_tiled`).
 *
 * The layers may be followed by an MTP layer: a draft head with one attention layer and tensors
 * called mtp.*. The input of its matrix mtp.fc is the embedding and the target's last hidden
 * state after the final norm.
 *
 * Yang et al., "Gated Delta Networks", 2024; Qiu et al., "Gated Attention for Large Language
 * Models", 2025.
 */
#include "engine/model/architecture.h"

const struct esp_config_rule esp_delta_config[ESP_CONFIG_FIELD_COUNT] = {
    [ESP_CONFIG_layers] = {"num_hidden_layers", ESP_REQUIRED},
    [ESP_CONFIG_hidden] = {"hidden_size", ESP_REQUIRED},
    [ESP_CONFIG_heads] = {"num_attention_heads", 16},
    [ESP_CONFIG_kv_heads] = {"num_key_value_heads", 4},
    [ESP_CONFIG_head_dim] = {"head_dim", 256},
    [ESP_CONFIG_ffn] = {"intermediate_size", 0},
    [ESP_CONFIG_vocabulary] = {"vocab_size", ESP_REQUIRED},
    [ESP_CONFIG_context] = {"max_position_embeddings", 32768},
    [ESP_CONFIG_norm_epsilon] = {"rms_norm_eps", 1e-6},
    [ESP_CONFIG_rope_theta] = {ESP_LLAMA_THETA, 1e4},
    [ESP_CONFIG_rotary_fraction] =
        {"rope_parameters.partial_rotary_factor|partial_rotary_factor", 0.25},
    [ESP_CONFIG_tied] = {"tie_word_embeddings", false},
    [ESP_CONFIG_conv_kernel] = {"linear_conv_kernel_dim|ssm_conv_kernel", 4},
    [ESP_CONFIG_state_heads] = {"linear_num_value_heads|ssm_time_step_rank", 32},
    [ESP_CONFIG_key_heads] = {"linear_num_key_heads|ssm_group_count", 16},
    [ESP_CONFIG_key_dim] = {"linear_key_head_dim|ssm_state_size", 128},
    [ESP_CONFIG_value_dim] = {"linear_value_head_dim|ssm_value_size", 128},
    [ESP_CONFIG_attention_every] = {"full_attention_interval", 4},
    [ESP_CONFIG_heads_tiled] = {"ssm_heads_tiled", false},
};

const struct esp_tensor_rule esp_delta_tensors[] = {
    ESP_MODEL(embedding, "model.embed_tokens.weight", VOCABULARY, HIDDEN, ALWAYS),
    ESP_MODEL(head, "lm_head.weight", VOCABULARY, HIDDEN, UNLESS_TIED),
    ESP_MODEL(norm_final, "model.norm.weight", HIDDEN, ONE, ALWAYS, .added = 1),
    {0},
};

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_DELTA_ATTENTION, ESP_DELTA_INPUTS, ESP_DELTA_STATES, ESP_DELTA_MLP, {0},
};

const struct esp_gguf_slot esp_delta_gguf[] = {
    {offsetof(struct esp_layer, write), "ssm_beta.weight"},
    {offsetof(struct esp_layer, decay), "ssm_alpha.weight"},
    ESP_DELTA_GGUF,
    {0},
};

const struct esp_family esp_family_delta = {
    ESP_DELTA_FAMILY,
    .gguf_layer = esp_delta_gguf,
    .layer_tensors = layer_tensors,
};

/* ------------------------------------------------------------------ the MTP layer */

const struct esp_tensor_rule esp_delta_mtp_tensors[] = {
    ESP_MODEL(fc, "mtp.fc.weight", HIDDEN, FC, ALWAYS),
    ESP_MODEL(norm_embedding, "mtp.pre_fc_norm_embedding.weight", HIDDEN, ONE, ALWAYS,
              .added = 1),
    ESP_MODEL(norm_input, "mtp.pre_fc_norm_hidden.weight", HIDDEN, ONE, ALWAYS, .added = 1),
    ESP_MODEL(norm_final, "mtp.norm.weight", HIDDEN, ONE, ALWAYS, .added = 1),
    ESP_MODEL(embedding, "mtp.embed_tokens.weight", VOCABULARY, HIDDEN, IF_STORED),
    {0},
};

const struct esp_gguf_slot esp_delta_mtp_gguf[] = {
    {offsetof(struct esp_model_desc, fc), "nextn.eh_proj.weight"},
    {offsetof(struct esp_model_desc, norm_embedding), "nextn.enorm.weight"},
    {offsetof(struct esp_model_desc, norm_input), "nextn.hnorm.weight"},
    {offsetof(struct esp_model_desc, norm_final), "nextn.shared_head_norm.weight"},
    {offsetof(struct esp_model_desc, embedding), "nextn.embed_tokens.weight"},
    {0},
};

static const struct esp_tensor_rule mtp_layer_tensors[] = {
    ESP_DELTA_ATTENTION,
    ESP_DELTA_MLP,
    {0},
};

const struct esp_family esp_mtp_delta = {
    ESP_DELTA_MTP,
    .layer_tensors = mtp_layer_tensors,
};
