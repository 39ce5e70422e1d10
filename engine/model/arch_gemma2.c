/* arch_gemma2.c - the Gemma 2 architecture. Every other layer attends only to a sliding window.
 * Attention scores and logits are capped.
 *
 * Key names and defaults are those of Gemma2Config in the transformers library.
 * Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024, section 2.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_gemma2 = {
    .name = "gemma2",
    .family = &esp_family_gemma,
    .flags = {{"use_bidirectional_attention", false}},
    .config = {[ESP_CONFIG_attention_cap] = {"attn_logit_softcapping", 50},
               [ESP_CONFIG_logit_cap] = {"final_logit_softcapping", 30}},
};
