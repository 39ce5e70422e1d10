/* arch_lfm2_moe.c - the LFM2 architecture with mixtures of experts. The layers are the same as
 * in arch_lfm2.c, but in all except the first few, a router chooses a few of many MLPs.
 *
 * Key names and defaults are those of Lfm2MoeConfig in the transformers library.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule experts[] = {
    ESP_EXPERT(gate, "w1.weight", EXPERT_FFN, HIDDEN, ALWAYS),
    ESP_EXPERT(up, "w3.weight", EXPERT_FFN, HIDDEN, ALWAYS),
    ESP_EXPERT(down, "w2.weight", HIDDEN, EXPERT_FFN, ALWAYS),
    {0},
};

static const struct esp_family family = {
    ESP_LFM2_FAMILY,
    .expert_tensors = experts,
    .expert_name = "feed_forward.experts.",
};

const struct esp_architecture esp_architecture_lfm2_moe = {
    .name = "lfm2_moe",
    .family = &family,
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 8},
               [ESP_CONFIG_experts] = {"num_experts|num_local_experts", 32},
               [ESP_CONFIG_experts_used] = {"num_experts_per_tok", 4},
               [ESP_CONFIG_expert_ffn] = {"moe_intermediate_size", 1792},
               [ESP_CONFIG_mixed_every] = {"", 1},
               [ESP_CONFIG_mixed_from] = {"num_dense_layers", 2},
               [ESP_CONFIG_experts_normed] = {"norm_topk_prob", true},
               [ESP_CONFIG_sigmoid_router] = {"", true},
               [ESP_CONFIG_choice_bias] = {"use_expert_bias", true},
               [ESP_CONFIG_expert_scale] = {"routed_scaling_factor", 1},
               [ESP_CONFIG_expert_epsilon] = {"", 1e-6},
               [ESP_CONFIG_conv_kernel] = {"conv_L_cache", 3},
               [ESP_CONFIG_conv_bias] = {"conv_bias", false},
               [ESP_CONFIG_context] = {"max_position_embeddings", 128000},
               [ESP_CONFIG_norm_epsilon] = {"norm_eps|block_norm_eps|rms_norm_eps", 1e-5},
               [ESP_CONFIG_rope_theta] = {ESP_LLAMA_THETA, 1e6},
               [ESP_CONFIG_tied] = {"tie_embedding|tie_word_embeddings", true}},
};
