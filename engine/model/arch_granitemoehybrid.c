/* arch_granitemoehybrid.c - the Granite 4.0-H architecture: most layers are state space models
 * (Mamba-2); a few have attention without RoPE. Each layer has an MLP that all tokens use. In
 * some models, each layer also has experts. The constant factors are the same as in Granite
 * (arch_granite.c).
 *
 * Key names and defaults are those of GraniteMoeHybridConfig in the transformers library.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(query, "self_attn.q_proj.weight", QUERIES, HIDDEN, IF_ATTENTION),
    ESP_LAYER(key, "self_attn.k_proj.weight", KEYS, HIDDEN, IF_ATTENTION),
    ESP_LAYER(value, "self_attn.v_proj.weight", KEYS, HIDDEN, IF_ATTENTION),
    ESP_LAYER(output, "self_attn.o_proj.weight", HIDDEN, QUERIES, IF_ATTENTION),
    ESP_SSM_LAYER("mamba."),
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(router, "block_sparse_moe.router.layer.weight", EXPERTS, HIDDEN, IF_MIXED),
    ESP_LAYER(gate, "shared_mlp.input_linear.weight", FFN, HIDDEN, ALWAYS, .stacked = true,
              .apart = true, .part = 0),
    ESP_LAYER(up, "shared_mlp.input_linear.weight", FFN, HIDDEN, ALWAYS, .stacked = true,
              .apart = true, .part = 1),
    ESP_LAYER(down, "shared_mlp.output_linear.weight", HIDDEN, FFN, ALWAYS),
    {0},
};

/* This table is for GGUF files, which store each of these matrices in a separate tensor. */
static const struct esp_tensor_rule expert_tensors[] = {
    ESP_EXPERT(gate, "gate.weight", EXPERT_FFN, HIDDEN, ALWAYS),
    ESP_EXPERT(up, "up.weight", EXPERT_FFN, HIDDEN, ALWAYS),
    ESP_EXPERT(down, "down.weight", HIDDEN, EXPERT_FFN, ALWAYS),
    {0},
};

static const struct esp_tensor_rule fused[] = {
    ESP_EXPERT(gate, "input_linear.weight", EXPERT_FFN, HIDDEN, ALWAYS, .stacked = true),
    ESP_EXPERT(up, "input_linear.weight", EXPERT_FFN, HIDDEN, ALWAYS, .stacked = true),
    ESP_EXPERT(down, "output_linear.weight", HIDDEN, EXPERT_FFN, ALWAYS),
    {0},
};

static const struct esp_family family = {
    ESP_LLAMA_FAMILY,
    .activation = ESP_SWIGLU,
    .layer_tensors = layer_tensors,
    .expert_tensors = expert_tensors,
    .expert_name = "block_sparse_moe.",
    .fused_experts = fused,
    .experts_optional = true,
    .mixer = ESP_MIXER_SSM,
    .gguf_layer = esp_ssm_gguf,
};

const struct esp_architecture esp_architecture_granitemoehybrid = {
    .name = "granitemoehybrid",
    .family = &family,
    .flags = {{"attention_bias", false}, {"mamba_proj_bias", false}},
    .config =
        {[ESP_CONFIG_ffn] =
             {"shared_intermediate_size|shared_expert_intermediate_size|intermediate_size",
              ESP_REQUIRED},
         [ESP_CONFIG_experts] = {"num_local_experts|num_experts", 8},
         [ESP_CONFIG_experts_used] = {"num_experts_per_tok", 2},
         [ESP_CONFIG_expert_ffn] = {"moe_intermediate_size|intermediate_size", ESP_REQUIRED},
         [ESP_CONFIG_mixed_every] = {"", 1},
         [ESP_CONFIG_experts_normed] = {"", true},
         [ESP_CONFIG_conv_kernel] = {"mamba_d_conv|ssm_conv_kernel", 4},
         [ESP_CONFIG_conv_bias] = {"mamba_conv_bias", true},
         [ESP_CONFIG_state_heads] = {"mamba_n_heads|ssm_time_step_rank", 128},
         [ESP_CONFIG_key_heads] = {"mamba_n_groups|ssm_group_count", 1},
         [ESP_CONFIG_key_dim] = {"mamba_d_state|ssm_state_size", 256},
         [ESP_CONFIG_value_dim] = {"mamba_d_head|ssm_value_size", 64},
         [ESP_CONFIG_unrotated_every] = {"", 1},
         [ESP_CONFIG_embedding_scale] = {"embedding_multiplier", 1},
         [ESP_CONFIG_residual_scale] = {"residual_multiplier", 1},
         [ESP_CONFIG_attention_scale] = {"attention_multiplier", 1},
         [ESP_CONFIG_logit_divisor] = {"logits_scaling", 1}},
};
