/* arch_granite.c - the Granite architecture: Llama's family, with constant factors. They
 * multiply the embedding, the attention scores, and the outputs of attention and MLP. The
 * logits are divided by a constant.
 *
 * Key names and defaults are those of GraniteConfig in the transformers library.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_granite = {
    .name = "granite",
    .family = &esp_family_llama,
    .config = {[ESP_CONFIG_embedding_scale] = {"embedding_multiplier", 1},
               [ESP_CONFIG_residual_scale] = {"residual_multiplier", 1},
               [ESP_CONFIG_attention_scale] = {"attention_multiplier", 1},
               [ESP_CONFIG_logit_divisor] = {"logits_scaling", 1},
               [ESP_CONFIG_attention_bias] = {"attention_bias", false},
               [ESP_CONFIG_output_bias] = {"attention_bias", false},
               [ESP_CONFIG_mlp_bias] = {"mlp_bias", false}},
};
