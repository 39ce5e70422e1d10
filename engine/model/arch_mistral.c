/* arch_mistral.c - the Mistral architecture: Llama's family, but a token attends only to a
 * sliding window of the last tokens.
 *
 * Key names and defaults are those of MistralConfig in the transformers library. A
 * sliding_window of null means that there is no window.
 * Jiang et al., "Mistral 7B", 2023, section 2.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_mistral = {
    .name = "mistral",
    .family = &esp_family_llama,
    .config = {[ESP_CONFIG_context] = {"max_position_embeddings", 4096 * 32},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"", true}},
};
