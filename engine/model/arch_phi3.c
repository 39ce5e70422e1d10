/* arch_phi3.c - the Phi-3 architecture (Phi 3, 3.5 and 4): Llama's layers with fused matrices.
 *
 * Query, key and value are stacked in one matrix; gate and up are stacked in another. Contexts
 * above the original length use different rotary frequencies (LongRoPE). Key names and defaults
 * are those of Phi3Config in the transformers library. Abdin et al., "Phi-3 Technical Report",
 * 2024, section 2.
 */
#include "engine/model/architecture.h"

#define QKV "self_attn.qkv_proj.weight"
#define GATE_UP "mlp.gate_up_proj.weight"

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(query, QKV, QUERIES, HIDDEN, ALWAYS, .stacked = true),
    ESP_LAYER(key, QKV, KEYS, HIDDEN, ALWAYS, .stacked = true),
    ESP_LAYER(value, QKV, KEYS, HIDDEN, ALWAYS, .stacked = true),
    ESP_LAYER(output, "self_attn.o_proj.weight", HIDDEN, QUERIES, ALWAYS),
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(gate, GATE_UP, FFN, HIDDEN, ALWAYS, .stacked = true),
    ESP_LAYER(up, GATE_UP, FFN, HIDDEN, ALWAYS, .stacked = true),
    ESP_LAYER(down, "mlp.down_proj.weight", HIDDEN, FFN, ALWAYS),
    {0},
};

static const struct esp_family family = {
    ESP_LLAMA_FAMILY,
    .activation = ESP_SWIGLU,
    .layer_tensors = layer_tensors,
};

const struct esp_architecture esp_architecture_phi3 = {
    .name = "phi3",
    .family = &family,
    .config = {[ESP_CONFIG_context] = {"max_position_embeddings", 4096},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"", true},
               [ESP_CONFIG_norm_epsilon] = {"rms_norm_eps", 1e-5},
               [ESP_CONFIG_rotary_fraction] =
                   {"rope_scaling.partial_rotary_factor|rope_parameters.partial_rotary_factor|"
                    "partial_rotary_factor",
                    1}},
};
