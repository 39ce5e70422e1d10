/* arch_olmo2.c - the OLMo 2 architecture: Llama's layers with norms after attention and MLP
 * instead of before them. One norm covers all heads of the query, and another norm covers all
 * heads of the key.
 *
 * Key names and defaults are those of Olmo2Config in the transformers library. OLMo Team, "2
 * OLMo 2 Furious", 2025, section 2.1.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LLAMA_QUERY_KEY_VALUE,
    ESP_LAYER(query_norm, "self_attn.q_norm.weight", QUERIES, ONE, ALWAYS),
    ESP_LAYER(key_norm, "self_attn.k_norm.weight", KEYS, ONE, ALWAYS),
    ESP_LLAMA_OUTPUT,
    ESP_LAYER(norm_attended, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(gate, "mlp.gate_proj.weight", FFN, HIDDEN, ALWAYS),
    ESP_LAYER(up, "mlp.up_proj.weight", FFN, HIDDEN, ALWAYS),
    ESP_LAYER(down, "mlp.down_proj.weight", HIDDEN, FFN, ALWAYS),
    ESP_LAYER(norm_mlp, "post_feedforward_layernorm.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family family = {
    ESP_LLAMA_FAMILY,
    .activation = ESP_SWIGLU,
    .layer_tensors = layer_tensors,
};

const struct esp_architecture esp_architecture_olmo2 = {
    .name = "olmo2",
    .family = &family,
    .config = {[ESP_CONFIG_norm_epsilon] = {"rms_norm_eps", 1e-5},
               [ESP_CONFIG_attention_bias] = {"attention_bias", false},
               [ESP_CONFIG_output_bias] = {"attention_bias", false}},
};
