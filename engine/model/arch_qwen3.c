/* arch_qwen3.c - the Qwen3 architecture: Llama's tensors, and a norm of each head of query and
 * key.
 *
 * Key names and fallbacks are those of Qwen3Config in the transformers library. Only with
 * use_sliding_window do layers have a window.
 * Yang et al., "Qwen3 Technical Report", 2025, section 2.
 */
#include "architecture.h"

static const struct esp_config_rule config[] = {
    {ESP_CONFIG_layers, "num_hidden_layers", ESP_REQUIRED},
    {ESP_CONFIG_hidden, "hidden_size", ESP_REQUIRED},
    {ESP_CONFIG_heads, "num_attention_heads", ESP_REQUIRED},
    {ESP_CONFIG_kv_heads, "num_key_value_heads", 0},
    {ESP_CONFIG_head_dim, "head_dim", 128},
    {ESP_CONFIG_ffn, "intermediate_size", ESP_REQUIRED},
    {ESP_CONFIG_vocabulary, "vocab_size", ESP_REQUIRED},
    {ESP_CONFIG_context, "max_position_embeddings", 32768},
    {ESP_CONFIG_window, "sliding_window", 0},
    {ESP_CONFIG_windowed, "use_sliding_window", false},
    {ESP_CONFIG_norm_epsilon, "rms_norm_eps", 1e-6},
    {ESP_CONFIG_rope_theta, "rope_scaling.rope_theta|rope_parameters.rope_theta|rope_theta",
     1e4},
    {ESP_CONFIG_rotary_fraction, "", 1},
    {ESP_CONFIG_attention_bias, "attention_bias", false},
    {ESP_CONFIG_output_bias, "attention_bias", false},
    {ESP_CONFIG_head_norm, "", true},
    {ESP_CONFIG_tied, "tie_word_embeddings", false},
    {0},
};

const struct esp_architecture esp_architecture_qwen3 = {
    .name = "qwen3",
    .prefix = "model.",
    .layer_name = "model.layers.",
    .hidden_act = "silu",
    .activation = ESP_SWIGLU,
    .norm = ESP_NORM_RMS,
    .config = config,
    .tensors = esp_llama_tensors,
    .layer_tensors = esp_llama_layer_tensors,
};
