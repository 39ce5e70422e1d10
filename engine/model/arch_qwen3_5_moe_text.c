/* arch_qwen3_5_moe_text.c - the text models of Qwen3.5, 3.6 and 3.8 with mixtures of experts:
 * the layers of family_delta.c, with one more expert that all tokens share.
 *
 * Key names and defaults are those of Qwen3_5MoeTextConfig in the transformers library.
 * A model folder stores the matrices of a layer's experts in two tensors, or in one tensor per
 * matrix.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_DELTA_ATTENTION, ESP_DELTA_INPUTS, ESP_DELTA_STATES, ESP_DELTA_MIXTURE, {0},
};

static const struct esp_tensor_rule fused[] = {
    ESP_EXPERT(gate, "gate_up_proj", EXPERT_FFN, HIDDEN, ALWAYS, .stacked = true),
    ESP_EXPERT(up, "gate_up_proj", EXPERT_FFN, HIDDEN, ALWAYS, .stacked = true),
    ESP_EXPERT(down, "down_proj", HIDDEN, EXPERT_FFN, ALWAYS),
    {0},
};

static const struct esp_family family = {
    ESP_DELTA_FAMILY,
    .gguf_layer = esp_delta_gguf,
    .layer_tensors = layer_tensors,
    .expert_tensors = esp_qwen_experts,
    .expert_name = "mlp.experts.",
    .fused_experts = fused,
};

static const struct esp_tensor_rule mtp_layer_tensors[] = {
    ESP_DELTA_ATTENTION,
    ESP_DELTA_MIXTURE,
    {0},
};

const struct esp_family esp_mtp_delta_mixture = {
    ESP_DELTA_MTP,
    .layer_tensors = mtp_layer_tensors,
    .expert_tensors = esp_qwen_experts,
    .expert_name = "mlp.experts.",
    .fused_experts = fused,
};

const struct esp_architecture esp_architecture_qwen3_5_moe_text = {
    .name = "qwen3_5_moe_text",
    .family = &family,
    .mtp = &esp_mtp_delta_mixture,
    .flags = {{"attention_bias", false}},
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 2},
               [ESP_CONFIG_ffn] = {"shared_expert_intermediate_size", 512},
               [ESP_CONFIG_experts] = {"num_experts|num_local_experts", 256},
               [ESP_CONFIG_experts_used] = {"num_experts_per_tok", 8},
               [ESP_CONFIG_expert_ffn] = {"moe_intermediate_size", 512},
               [ESP_CONFIG_mixed_every] = {"", 1},
               [ESP_CONFIG_experts_normed] = {"", true}},
};
