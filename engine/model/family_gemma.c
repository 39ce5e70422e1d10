/* family_gemma.c - the parts that Gemma 2 and 3 share.
 *
 * The embedding is multiplied by the square root of its width. Attention and MLP each have a
 * norm before and a norm after them. Files store each norm weight minus one. The MLP is gated
 * by GELU (tanh). Some layers have an attention window. Each architecture of this family has a
 * file arch_NAME.c, which lists only its differences from this file.
 *
 * Gemma Team, "Gemma 2", 2024, section 2; "Gemma 3 Technical Report", 2025, section 2.
 */
#include "engine/model/architecture.h"

static const struct esp_config_rule config[ESP_CONFIG_FIELD_COUNT] = {
    [ESP_CONFIG_layers] = {"num_hidden_layers", ESP_REQUIRED},
    [ESP_CONFIG_hidden] = {"hidden_size", ESP_REQUIRED},
    [ESP_CONFIG_heads] = {"num_attention_heads", 8},
    [ESP_CONFIG_kv_heads] = {"num_key_value_heads", 4},
    [ESP_CONFIG_head_dim] = {"head_dim", 256},
    [ESP_CONFIG_ffn] = {"intermediate_size", ESP_REQUIRED},
    [ESP_CONFIG_vocabulary] = {"vocab_size", ESP_REQUIRED},
    [ESP_CONFIG_context] = {"max_position_embeddings", 8192},
    [ESP_CONFIG_window] = {"sliding_window", 4096},
    [ESP_CONFIG_windowed] = {"", true},
    [ESP_CONFIG_full_every] = {"", 2},
    [ESP_CONFIG_norm_epsilon] = {"rms_norm_eps", 1e-6},
    [ESP_CONFIG_rope_theta] = {ESP_LLAMA_THETA, 1e4},
    [ESP_CONFIG_rotary_fraction] = {"", 1},
    [ESP_CONFIG_root_embedding] = {"", true},
    [ESP_CONFIG_attention_divisor] = {"query_pre_attn_scalar", 256},
    [ESP_CONFIG_attention_bias] = {"attention_bias", false},
    [ESP_CONFIG_output_bias] = {"attention_bias", false},
    [ESP_CONFIG_tied] = {"tie_word_embeddings", true},
};

static const struct esp_tensor_rule tensors[] = {
    ESP_MODEL(embedding, "model.embed_tokens.weight", VOCABULARY, HIDDEN, ALWAYS),
    ESP_MODEL(head, "lm_head.weight", VOCABULARY, HIDDEN, UNLESS_TIED),
    ESP_MODEL(norm_final, "model.norm.weight", HIDDEN, ONE, ALWAYS, .added = 1),
    {0},
};

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, ALWAYS, .added = 1),
    ESP_LLAMA_QUERY_KEY_VALUE,
    ESP_LAYER(query_norm, "self_attn.q_norm.weight", HEAD, ONE, IF_HEAD_NORM, .added = 1),
    ESP_LAYER(key_norm, "self_attn.k_norm.weight", HEAD, ONE, IF_HEAD_NORM, .added = 1),
    ESP_LLAMA_OUTPUT,
    ESP_LAYER(norm_attended, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS,
              .added = 1),
    ESP_LAYER(norm2, "pre_feedforward_layernorm.weight", HIDDEN, ONE, ALWAYS, .added = 1),
    ESP_LAYER(gate, "mlp.gate_proj.weight", FFN, HIDDEN, ALWAYS),
    ESP_LAYER(up, "mlp.up_proj.weight", FFN, HIDDEN, ALWAYS),
    ESP_LAYER(down, "mlp.down_proj.weight", HIDDEN, FFN, ALWAYS),
    ESP_LAYER(norm_mlp, "post_feedforward_layernorm.weight", HIDDEN, ONE, ALWAYS, .added = 1),
    {0},
};

const struct esp_family esp_family_gemma = {
    .prefix = "model.",
    .layer_name = "model.layers.",
    .activation_key = "hidden_activation",
    .hidden_act = "gelu_pytorch_tanh",
    .activation = ESP_GEGLU,
    .norm = ESP_NORM_RMS,
    .config = config,
    .tensors = tensors,
    .layer_tensors = layer_tensors,
};
