/* arch_qwen3_next.c - the Qwen3-Next architecture: the layers of family_delta.c, with mixtures
 * of experts and a shared expert.
 *
 * Model folders store the mixer's matrices in two tensors. Their rows are grouped by key head:
 * first all rows of one key head (its queries, keys, values and gates), then all rows of the
 * next one. GGUF files have one tensor for queries, keys and values, and another for gates. Key
 * names and defaults are those of Qwen3NextConfig in the transformers library.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_DELTA_ATTENTION,
    ESP_LAYER(conv_in, "linear_attn.in_proj_qkvz.weight", CONV, HIDDEN, IF_RECURRENT,
              .stacked = true, .grouped = true, .apart = true, .part = 0),
    ESP_LAYER(out_gate, "linear_attn.in_proj_qkvz.weight", MIXED, HIDDEN, IF_RECURRENT,
              .stacked = true, .grouped = true, .apart = true, .part = 1),
    ESP_LAYER(write, "linear_attn.in_proj_ba.weight", STATES, HIDDEN, IF_RECURRENT,
              .stacked = true, .grouped = true, .kept = true),
    ESP_LAYER(decay, "linear_attn.in_proj_ba.weight", STATES, HIDDEN, IF_RECURRENT,
              .stacked = true, .grouped = true, .kept = true),
    ESP_DELTA_STATES,
    ESP_DELTA_MIXTURE,
    {0},
};

static const struct esp_gguf_slot gguf_layer[] = {
    {offsetof(struct esp_layer, write), "ssm_ba.weight"},
    {offsetof(struct esp_layer, decay), "ssm_ba.weight"},
    ESP_DELTA_GGUF,
    {0},
};

static const struct esp_family family = {
    ESP_DELTA_FAMILY,
    .gguf_layer = gguf_layer,
    .layer_tensors = layer_tensors,
    .expert_tensors = esp_qwen_experts,
    .expert_name = "mlp.experts.",
};

const struct esp_architecture esp_architecture_qwen3_next = {
    .name = "qwen3_next",
    .family = &family,
    .mtp = &esp_mtp_delta_mixture,
    .flags = {{"attention_bias", false}},
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 2},
               [ESP_CONFIG_ffn] = {"shared_expert_intermediate_size", 512},
               [ESP_CONFIG_experts] = {"num_experts|num_local_experts", 512},
               [ESP_CONFIG_experts_used] = {"num_experts_per_tok", 10},
               [ESP_CONFIG_expert_ffn] = {"moe_intermediate_size", 512},
               [ESP_CONFIG_mixed_every] = {"decoder_sparse_step", 1},
               [ESP_CONFIG_experts_normed] = {"norm_topk_prob", true}},
};
