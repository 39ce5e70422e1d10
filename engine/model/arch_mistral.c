/* arch_mistral.c - the Mistral architecture: Llama's tensors, attention in a sliding window.
 *
 * Key names and fallbacks are those of MistralConfig in the transformers library. A
 * sliding_window of null is none.
 * Jiang et al., "Mistral 7B", 2023, section 2.
 */
#include "architecture.h"

static const struct esp_config_rule config[] = {
    {ESP_CONFIG_layers, "num_hidden_layers", ESP_REQUIRED},
    {ESP_CONFIG_hidden, "hidden_size", ESP_REQUIRED},
    {ESP_CONFIG_heads, "num_attention_heads", ESP_REQUIRED},
    {ESP_CONFIG_kv_heads, "num_key_value_heads", 0},
    {ESP_CONFIG_head_dim, "head_dim", 0},
    {ESP_CONFIG_ffn, "intermediate_size", ESP_REQUIRED},
    {ESP_CONFIG_vocabulary, "vocab_size", ESP_REQUIRED},
    {ESP_CONFIG_context, "max_position_embeddings", 4096 * 32},
    {ESP_CONFIG_window, "sliding_window", 0},
    {ESP_CONFIG_windowed, "", true},
    {ESP_CONFIG_norm_epsilon, "rms_norm_eps", 1e-6},
    {ESP_CONFIG_rope_theta, "rope_scaling.rope_theta|rope_parameters.rope_theta|rope_theta",
     1e4},
    {ESP_CONFIG_rotary_fraction, "", 1},
    {ESP_CONFIG_tied, "tie_word_embeddings", false},
    {0},
};

const struct esp_architecture esp_architecture_mistral = {
    .name = "mistral",
    .prefix = "model.",
    .layer_name = "model.layers.",
    .hidden_act = "silu",
    .activation = ESP_SWIGLU,
    .norm = ESP_NORM_RMS,
    .config = config,
    .tensors = esp_llama_tensors,
    .layer_tensors = esp_llama_layer_tensors,
};
