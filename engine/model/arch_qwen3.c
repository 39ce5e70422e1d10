/* arch_qwen3.c - the Qwen3 architecture: Llama's family, with an RMSNorm for each head of
 * query and key.
 *
 * Key names and fallbacks are those of Qwen3Config in the transformers library. Layers
 * have a window only if use_sliding_window is true.
 * Yang et al., "Qwen3 Technical Report", 2025, section 2.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_qwen3 = {
    .name = "qwen3",
    .family = &esp_family_llama,
    .config = {[ESP_CONFIG_head_dim] = {"head_dim", 128},
               [ESP_CONFIG_context] = {"max_position_embeddings", 32768},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"use_sliding_window", false},
               [ESP_CONFIG_window_from] = {"max_window_layers", 28},
               [ESP_CONFIG_attention_bias] = {"attention_bias", false},
               [ESP_CONFIG_output_bias] = {"attention_bias", false},
               [ESP_CONFIG_head_norm] = {"", true}},
};
