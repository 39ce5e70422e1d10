/* arch_llama.c - the Llama architecture. Matrices have biases if config.json says so.
 *
 * Key names and defaults are those of LlamaConfig in the transformers library.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_llama = {
    .name = "llama",
    .family = &esp_family_llama,
    .config = {[ESP_CONFIG_attention_bias] = {"attention_bias", false},
               [ESP_CONFIG_output_bias] = {"attention_bias", false},
               [ESP_CONFIG_mlp_bias] = {"mlp_bias", false}},
};
