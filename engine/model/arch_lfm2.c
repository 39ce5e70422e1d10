/* arch_lfm2.c - the LFM2 architecture: most layers are short convolutions between two gates; a
 * few have attention (Liquid AI, "LFM2 Technical Report", 2025). LFM2-MoE (arch_lfm2_moe.c)
 * has the same layers, but with experts instead of most MLPs.
 *
 * Key names and defaults are those of Lfm2Config in the transformers library. Older files
 * list the layers with attention (full_attn_idxs); newer ones give the kind of each layer
 * (layer_types).
 */
#include "engine/model/architecture.h"

const struct esp_tensor_rule esp_lfm2_tensors[] = {
    ESP_MODEL(embedding, "model.embed_tokens.weight", VOCABULARY, HIDDEN, ALWAYS),
    ESP_MODEL(head, "lm_head.weight", VOCABULARY, HIDDEN, UNLESS_TIED),
    ESP_MODEL(norm_final, "model.embedding_norm.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

const struct esp_tensor_rule esp_lfm2_layer_tensors[] = {
    ESP_LAYER(norm1, "operator_norm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(query, "self_attn.q_proj.weight", QUERIES, ATTENDED, IF_ATTENTION),
    ESP_LAYER(key, "self_attn.k_proj.weight", KEYS, ATTENDED, IF_ATTENTION),
    ESP_LAYER(value, "self_attn.v_proj.weight", KEYS, ATTENDED, IF_ATTENTION),
    ESP_LAYER(query_norm, "self_attn.q_layernorm.weight", HEAD, ONE, IF_ATTENTION),
    ESP_LAYER(key_norm, "self_attn.k_layernorm.weight", HEAD, ONE, IF_ATTENTION),
    ESP_LAYER(output, "self_attn.out_proj.weight", HIDDEN, QUERIES, IF_ATTENTION),
    ESP_LAYER(in_gate, "conv.in_proj.weight", CONV, HIDDEN, IF_RECURRENT, .stacked = true),
    ESP_LAYER(out_gate, "conv.in_proj.weight", MIXED, HIDDEN, IF_RECURRENT, .stacked = true),
    ESP_LAYER(conv_in, "conv.in_proj.weight", CONV, HIDDEN, IF_RECURRENT, .stacked = true),
    ESP_LAYER(in_gate_bias, "conv.in_proj.bias", CONV, ONE, IF_CONV_BIAS, .stacked = true),
    ESP_LAYER(out_gate_bias, "conv.in_proj.bias", MIXED, ONE, IF_CONV_BIAS, .stacked = true),
    ESP_LAYER(conv_in_bias, "conv.in_proj.bias", CONV, ONE, IF_CONV_BIAS, .stacked = true),
    ESP_LAYER(conv, "conv.conv.weight", CONV, TAPS, IF_RECURRENT, .middle = true),
    ESP_LAYER(conv_bias, "conv.conv.bias", CONV, ONE, IF_CONV_BIAS),
    ESP_LAYER(mixed, "conv.out_proj.weight", HIDDEN, MIXED, IF_RECURRENT),
    ESP_LAYER(mixed_bias, "conv.out_proj.bias", HIDDEN, ONE, IF_CONV_BIAS),
    ESP_LAYER(norm2, "ffn_norm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(router, "feed_forward.gate.weight", EXPERTS, HIDDEN, IF_MIXED),
    ESP_LAYER(choice_bias, "feed_forward.expert_bias", EXPERTS, ONE, IF_CHOICE_BIAS),
    ESP_LAYER(gate, "feed_forward.w1.weight", FFN, HIDDEN, UNLESS_MIXED),
    ESP_LAYER(up, "feed_forward.w3.weight", FFN, HIDDEN, UNLESS_MIXED),
    ESP_LAYER(down, "feed_forward.w2.weight", HIDDEN, FFN, UNLESS_MIXED),
    {0},
};

const struct esp_gguf_slot esp_lfm2_gguf_layer[] = {
    {offsetof(struct esp_layer, in_gate), "shortconv.in_proj.weight"},
    {offsetof(struct esp_layer, out_gate), "shortconv.in_proj.weight"},
    {offsetof(struct esp_layer, conv_in), "shortconv.in_proj.weight"},
    {offsetof(struct esp_layer, conv), "shortconv.conv.weight"},
    {offsetof(struct esp_layer, mixed), "shortconv.out_proj.weight"},
    {0},
};

const struct esp_gguf_slot esp_lfm2_gguf_model[] = {
    {offsetof(struct esp_model_desc, norm_final), "token_embd_norm.weight"},
    {0},
};

static const struct esp_family family = {ESP_LFM2_FAMILY};

const struct esp_architecture esp_architecture_lfm2 = {
    .name = "lfm2",
    .family = &family,
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 8},
               [ESP_CONFIG_ffn] = {"block_ff_dim|intermediate_size", ESP_REQUIRED},
               [ESP_CONFIG_ffn_adjusted] = {"block_auto_adjust_ff_dim", true},
               [ESP_CONFIG_ffn_multiplier] = {"block_ffn_dim_multiplier", 1},
               [ESP_CONFIG_ffn_multiple] = {"block_multiple_of", 256},
               [ESP_CONFIG_conv_kernel] = {"conv_L_cache", 3},
               [ESP_CONFIG_conv_bias] = {"conv_bias", false},
               [ESP_CONFIG_context] = {"max_position_embeddings", 128000},
               [ESP_CONFIG_norm_epsilon] = {"norm_eps|block_norm_eps|rms_norm_eps", 1e-5},
               [ESP_CONFIG_rope_theta] = {ESP_LLAMA_THETA, 1e6},
               [ESP_CONFIG_tied] = {"tie_embedding|tie_word_embeddings", true}},
};
