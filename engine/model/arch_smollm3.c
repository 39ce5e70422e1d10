/* arch_smollm3.c - the SmolLM3 architecture: Llama's family, but every fourth layer has no
 * RoPE ("NoPE").
 *
 * Key names and defaults are those of SmolLM3Config in the transformers library. Yang et al.,
 * "Rope to Nope and Back Again", 2025.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_smollm3 = {
    .name = "smollm3",
    .family = &esp_family_llama,
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 4},
               [ESP_CONFIG_context] = {"max_position_embeddings", 32768},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"use_sliding_window", false},
               [ESP_CONFIG_unrotated_every] = {"no_rope_layer_interval", 4},
               [ESP_CONFIG_rope_theta] = {ESP_LLAMA_THETA, 2e6},
               [ESP_CONFIG_attention_bias] = {"attention_bias", false},
               [ESP_CONFIG_output_bias] = {"attention_bias", false},
               [ESP_CONFIG_mlp_bias] = {"mlp_bias", false},
               [ESP_CONFIG_tied] = {"tie_word_embeddings", true}},
};
