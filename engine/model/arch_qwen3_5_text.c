/* arch_qwen3_5_text.c - the text models of Qwen3.5, 3.6 and 3.8 without experts; see
 * family_delta.c.
 *
 * Key names and defaults are those of Qwen3_5TextConfig in the transformers library. The
 * rotary embedding has three sections, and each section has a separate position. In text the
 * three positions are equal, so the result is ordinary RoPE.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_qwen3_5_text = {
    .name = "qwen3_5_text",
    .family = &esp_family_delta,
    .mtp = &esp_mtp_delta,
    .flags = {{"attention_bias", false}},
    .config = {[ESP_CONFIG_ffn] = {"intermediate_size", 12288}},
};
