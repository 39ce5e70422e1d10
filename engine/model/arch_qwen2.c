/* arch_qwen2.c - the Qwen2 architecture (Qwen 2 and 2.5): Llama's family, with biases for
 * query, key and value.
 *
 * Key names and defaults are those of Qwen2Config in the transformers library. Layers
 * have an attention window only if use_sliding_window is true.
 * Yang et al., "Qwen2 Technical Report", 2024, section 2.2.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_qwen2 = {
    .name = "qwen2",
    .family = &esp_family_llama,
    .config = {[ESP_CONFIG_context] = {"max_position_embeddings", 32768},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"use_sliding_window", false},
               [ESP_CONFIG_window_from] = {"max_window_layers", 28},
               [ESP_CONFIG_attention_bias] = {"", true}},
};
