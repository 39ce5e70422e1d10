/* arch_qwen3_moe.c - the Qwen3 architecture with mixtures of experts.
 *
 * Layers are Qwen3's; in some or all of them a router chooses a few of many MLPs. Key names and
 * fallbacks are those of Qwen3MoeConfig in the transformers library.
 * Yang et al., "Qwen3 Technical Report", 2025, section 2.
 */
#include "engine/model/architecture.h"

static const struct esp_config_rule config[] = {
    {ESP_CONFIG_kv_heads, "num_key_value_heads", 4},
    {ESP_CONFIG_experts, "num_experts|num_local_experts", 128},
    {ESP_CONFIG_experts_used, "num_experts_per_tok", 8},
    {ESP_CONFIG_expert_ffn, "moe_intermediate_size", 768},
    {ESP_CONFIG_mixed_every, "decoder_sparse_step", 1},
    {ESP_CONFIG_experts_normed, "norm_topk_prob", false},
    {ESP_CONFIG_context, "max_position_embeddings", 32768},
    {ESP_CONFIG_window, "sliding_window", 0},
    {ESP_CONFIG_windowed, "use_sliding_window", false},
    {ESP_CONFIG_attention_bias, "attention_bias", false},
    {ESP_CONFIG_output_bias, "attention_bias", false},
    {0},
};

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(query, "self_attn.q_proj.weight", QUERIES, HIDDEN, ALWAYS),
    ESP_LAYER(query_bias, "self_attn.q_proj.bias", QUERIES, ONE, IF_ATTENTION_BIAS),
    ESP_LAYER(key, "self_attn.k_proj.weight", KEYS, HIDDEN, ALWAYS),
    ESP_LAYER(key_bias, "self_attn.k_proj.bias", KEYS, ONE, IF_ATTENTION_BIAS),
    ESP_LAYER(value, "self_attn.v_proj.weight", KEYS, HIDDEN, ALWAYS),
    ESP_LAYER(value_bias, "self_attn.v_proj.bias", KEYS, ONE, IF_ATTENTION_BIAS),
    ESP_LAYER(query_norm, "self_attn.q_norm.weight", HEAD, ONE, ALWAYS),
    ESP_LAYER(key_norm, "self_attn.k_norm.weight", HEAD, ONE, ALWAYS),
    ESP_LAYER(output, "self_attn.o_proj.weight", HIDDEN, QUERIES, ALWAYS),
    ESP_LAYER(output_bias, "self_attn.o_proj.bias", HIDDEN, ONE, IF_OUTPUT_BIAS),
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(router, "mlp.gate.weight", EXPERTS, HIDDEN, IF_MIXED),
    ESP_LAYER(gate, "mlp.gate_proj.weight", FFN, HIDDEN, UNLESS_MIXED),
    ESP_LAYER(up, "mlp.up_proj.weight", FFN, HIDDEN, UNLESS_MIXED),
    ESP_LAYER(down, "mlp.down_proj.weight", HIDDEN, FFN, UNLESS_MIXED),
    {0},
};

static const struct esp_tensor_rule expert_tensors[] = {
    ESP_EXPERT(gate, "gate_proj.weight", EXPERT_FFN, HIDDEN),
    ESP_EXPERT(up, "up_proj.weight", EXPERT_FFN, HIDDEN),
    ESP_EXPERT(down, "down_proj.weight", HIDDEN, EXPERT_FFN),
    {0},
};

static const struct esp_family family = {
    .prefix = "model.",
    .layer_name = "model.layers.",
    .hidden_act = "silu",
    .activation = ESP_SWIGLU,
    .norm = ESP_NORM_RMS,
    .config = esp_llama_config,
    .tensors = esp_llama_tensors,
    .layer_tensors = layer_tensors,
    .expert_tensors = expert_tensors,
    .expert_name = "mlp.experts.",
};

const struct esp_architecture esp_architecture_qwen3_moe = {
    .name = "qwen3_moe",
    .family = &family,
    .config = config,
};
