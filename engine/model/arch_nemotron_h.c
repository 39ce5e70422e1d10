/* arch_nemotron_h.c - the Nemotron-H architecture. Each layer is a state space model
 * (Mamba-2), attention without RoPE, or an MLP. The MLP's activation is the square of ReLU. In
 * Nemotron 3 each MLP is a mixture of experts, with one more expert that all tokens use.
 *
 * Key names and defaults are those of NemotronHConfig in the transformers library. That
 * library also raises time steps to at least time_step_min. The authors' kernels, llama.cpp
 * and this program do not.
 * NVIDIA, "Nemotron-H: A Family of Accurate and Efficient Hybrid Mamba-Transformer Models",
 * 2025.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule tensors[] = {
    ESP_MODEL(embedding, "backbone.embeddings.weight", VOCABULARY, HIDDEN, ALWAYS),
    ESP_MODEL(head, "lm_head.weight", VOCABULARY, HIDDEN, UNLESS_TIED),
    ESP_MODEL(norm_final, "backbone.norm_f.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "norm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(query, "mixer.q_proj.weight", QUERIES, HIDDEN, IF_ATTENTION),
    ESP_LAYER(key, "mixer.k_proj.weight", KEYS, HIDDEN, IF_ATTENTION),
    ESP_LAYER(value, "mixer.v_proj.weight", KEYS, HIDDEN, IF_ATTENTION),
    ESP_LAYER(output, "mixer.o_proj.weight", HIDDEN, QUERIES, IF_ATTENTION),
    ESP_SSM_LAYER("mixer."),
    ESP_LAYER(up, "mixer.up_proj.weight", FFN, HIDDEN, IF_ONLY_MLP),
    ESP_LAYER(down, "mixer.down_proj.weight", HIDDEN, FFN, IF_ONLY_MLP),
    ESP_LAYER(router, "mixer.gate.weight", EXPERTS, HIDDEN, IF_MIXED),
    ESP_LAYER(choice_bias, "mixer.gate.e_score_correction_bias", EXPERTS, ONE, IF_CHOICE_BIAS),
    ESP_LAYER(up, "mixer.shared_experts.up_proj.weight", FFN, HIDDEN, IF_MIXED),
    ESP_LAYER(down, "mixer.shared_experts.down_proj.weight", HIDDEN, FFN, IF_MIXED),
    {0},
};

static const struct esp_tensor_rule experts[] = {
    ESP_EXPERT(up, "up_proj.weight", EXPERT_FFN, HIDDEN, ALWAYS),
    ESP_EXPERT(down, "down_proj.weight", HIDDEN, EXPERT_FFN, ALWAYS),
    {0},
};

static const struct esp_family family = {
    .prefix = "backbone.",
    .layer_name = "backbone.layers.",
    .activation_key = "mlp_hidden_act",
    .hidden_act = "relu2",
    .activation = ESP_RELU2,
    .norm = ESP_NORM_RMS,
    .config = esp_llama_config,
    .tensors = tensors,
    .layer_tensors = layer_tensors,
    .mixer = ESP_MIXER_SSM,
    .one_part = true,
    .expert_tensors = experts,
    .expert_name = "mixer.experts.",
    .experts_optional = true,
    .gguf_layer = esp_ssm_gguf,
};

const struct esp_architecture esp_architecture_nemotron_h = {
    .name = "nemotron_h",
    .family = &family,
    .flags = {{"use_bias", false},
              {"mlp_bias", false},
              {"attention_bias", false},
              {"mamba_proj_bias", false},
              {"mamba_hidden_act", .text = "silu"}},
    .config = {[ESP_CONFIG_kv_heads] = {"num_key_value_heads", 8},
               [ESP_CONFIG_head_dim] = {"head_dim|attention_head_dim", 128},
               [ESP_CONFIG_ffn] = {"shared_expert_intermediate_size|intermediate_size", 21504},
               [ESP_CONFIG_experts] = {"n_routed_experts|num_experts", 0},
               [ESP_CONFIG_experts_used] = {"num_experts_per_tok", 2},
               [ESP_CONFIG_expert_ffn] = {"moe_intermediate_size", 7688},
               [ESP_CONFIG_experts_normed] = {"norm_topk_prob", true},
               [ESP_CONFIG_sigmoid_router] = {"", true},
               [ESP_CONFIG_choice_bias] = {"use_expert_bias", true},
               [ESP_CONFIG_expert_scale] = {"routed_scaling_factor", 1},
               [ESP_CONFIG_expert_epsilon] = {"", 1e-20},
               [ESP_CONFIG_context] = {"max_position_embeddings", 4096},
               [ESP_CONFIG_norm_epsilon] = {"layer_norm_epsilon|rms_norm_eps", 1e-5},
               [ESP_CONFIG_conv_kernel] = {"conv_kernel|mamba_d_conv|ssm_conv_kernel", 4},
               [ESP_CONFIG_conv_bias] = {"use_conv_bias|mamba_conv_bias", true},
               [ESP_CONFIG_state_heads] = {"mamba_num_heads|ssm_time_step_rank", 128},
               [ESP_CONFIG_key_heads] = {"n_groups|mamba_n_groups|ssm_group_count", 8},
               [ESP_CONFIG_key_dim] = {"ssm_state_size", 128},
               [ESP_CONFIG_value_dim] = {"mamba_head_dim|ssm_value_size", 64},
               /* This field is read because llama.cpp's converter writes
                * rope.dimension_count, although nothing is rotated. */
               [ESP_CONFIG_rotary_fraction] = {"partial_rotary_factor", 1},
               [ESP_CONFIG_unrotated_every] = {"", 1}},
};
