/* arch_gpt_oss.c - the gpt-oss architecture. Every layer is a mixture of experts, and every
 * other layer has an attention window. The softmax of attention includes an additional logit
 * for each head.
 *
 * Key names and defaults follow GptOssConfig in the transformers library. The gate and
 * up matrices of an expert are the even and odd rows of one tensor. The experts' weights are
 * either MXFP4 or floats. MXFP4 weights are in two tensors, NAME_blocks and NAME_scales, which
 * esp_stored_join_scales() joins. Float matrices are stored transposed.
 * OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025, section 2.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LLAMA_QUERY_KEY_VALUE,
    ESP_LAYER(sink_logit, "self_attn.sinks", HEADS, ONE, ALWAYS),
    ESP_LLAMA_OUTPUT,
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(router, "mlp.router.weight", EXPERTS, HIDDEN, IF_MIXED),
    ESP_LAYER(router_bias, "mlp.router.bias", EXPERTS, ONE, IF_MIXED),
    {0},
};

static const struct esp_tensor_rule expert_tensors[] = {
    ESP_EXPERT(gate, "gate_up_proj", EXPERT_FFN, HIDDEN, ALWAYS, .part = 0, .parts = 2,
               .transposed = true),
    ESP_EXPERT(gate_bias, "gate_up_proj_bias", EXPERT_FFN, ONE, ALWAYS, .part = 0, .parts = 2),
    ESP_EXPERT(up, "gate_up_proj", EXPERT_FFN, HIDDEN, ALWAYS, .part = 1, .parts = 2,
               .transposed = true),
    ESP_EXPERT(up_bias, "gate_up_proj_bias", EXPERT_FFN, ONE, ALWAYS, .part = 1, .parts = 2),
    ESP_EXPERT(down, "down_proj", HIDDEN, EXPERT_FFN, ALWAYS, .transposed = true),
    ESP_EXPERT(down_bias, "down_proj_bias", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family family = {
    ESP_LLAMA_FAMILY,
    .activation = ESP_SWIGLU_CLAMPED,
    .layer_tensors = layer_tensors,
    .expert_tensors = expert_tensors,
    .expert_name = "mlp.experts.",
    .experts_stacked = true,
    .gguf_layer =
        (const struct esp_gguf_slot[]){
            {offsetof(struct esp_layer, norm2), "post_attention_norm.weight"}, {0}},
};

const struct esp_architecture esp_architecture_gpt_oss = {
    .name = "gpt_oss",
    .family = &family,
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 8},
               [ESP_CONFIG_head_dim] = {"head_dim", 64},
               [ESP_CONFIG_experts] = {"num_local_experts|num_experts", 128},
               [ESP_CONFIG_experts_used] = {"num_experts_per_tok|experts_per_token", 4},
               [ESP_CONFIG_expert_ffn] = {"moe_intermediate_size|intermediate_size",
                                          ESP_REQUIRED},
               [ESP_CONFIG_mixed_every] = {"", 1},
               [ESP_CONFIG_experts_normed] = {"", true},
               [ESP_CONFIG_swiglu_limit] = {"swiglu_limit", 7},
               [ESP_CONFIG_swiglu_slope] = {"swiglu_alpha", 1.702},
               [ESP_CONFIG_context] = {"max_position_embeddings", 131072},
               [ESP_CONFIG_norm_epsilon] = {"rms_norm_eps", 1e-5},
               [ESP_CONFIG_rope_theta] = {ESP_LLAMA_THETA, 150000},
               [ESP_CONFIG_window] = {"sliding_window", 128},
               [ESP_CONFIG_windowed] = {"", true},
               [ESP_CONFIG_full_every] = {"", 2},
               [ESP_CONFIG_attention_bias] = {"attention_bias", true},
               [ESP_CONFIG_output_bias] = {"attention_bias", true}},
};
