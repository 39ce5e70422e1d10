/* arch_qwen3_moe.c - the Qwen3 architecture with mixtures of experts.
 *
 * The layers are the same as in Qwen3, but in some or all layers, a router chooses a few of
 * many MLPs.
 * Key names and defaults are those of Qwen3MoeConfig in the transformers library.
 * Yang et al., "Qwen3 Technical Report", 2025, section 2.
 */
#include "engine/model/architecture.h"

const struct esp_tensor_rule esp_qwen_experts[] = {
    ESP_EXPERT(gate, "gate_proj.weight", EXPERT_FFN, HIDDEN, ALWAYS),
    ESP_EXPERT(up, "up_proj.weight", EXPERT_FFN, HIDDEN, ALWAYS),
    ESP_EXPERT(down, "down_proj.weight", HIDDEN, EXPERT_FFN, ALWAYS),
    {0},
};

static const struct esp_family family = {
    ESP_LLAMA_FAMILY,
    .activation = ESP_SWIGLU,
    .layer_tensors = esp_llama_layer_tensors,
    .expert_tensors = esp_qwen_experts,
    .expert_name = "mlp.experts.",
};

const struct esp_architecture esp_architecture_qwen3_moe = {
    .name = "qwen3_moe",
    .family = &family,
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 4},
               [ESP_CONFIG_experts] = {"num_experts|num_local_experts", 128},
               [ESP_CONFIG_experts_used] = {"num_experts_per_tok", 8},
               [ESP_CONFIG_expert_ffn] = {"moe_intermediate_size", 768},
               [ESP_CONFIG_mixed_every] = {"decoder_sparse_step", 1},
               [ESP_CONFIG_experts_normed] = {"norm_topk_prob", false},
               [ESP_CONFIG_context] = {"max_position_embeddings", 32768},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"use_sliding_window", false},
               [ESP_CONFIG_attention_bias] = {"attention_bias", false},
               [ESP_CONFIG_output_bias] = {"attention_bias", false},
               [ESP_CONFIG_head_norm] = {"", true}},
};
