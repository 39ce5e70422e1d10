/* family_llama.c - the parts that Llama and its descendants share.
 *
 * They share RMSNorm, grouped-query attention, SwiGLU and the tensor names of Llama. Each
 * architecture of this family has a file arch_NAME.c, which lists only its differences from
 * this file. Some of these architectures lack some tensors, such as biases or norms of the
 * heads. The table below has these tensors, too, with the condition under which a model has
 * them. An architecture with experts has a separate family, which names the experts' tensors.
 *
 * Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023. Since release
 * 5 the transformers library writes the rotary settings as rope_parameters. Older releases
 * write rope_theta as a separate key.
 */
#include "engine/model/architecture.h"

const struct esp_config_rule esp_llama_config[ESP_CONFIG_FIELD_COUNT] = {
    [ESP_CONFIG_layers] = {"num_hidden_layers", ESP_REQUIRED},
    [ESP_CONFIG_hidden] = {"hidden_size", ESP_REQUIRED},
    [ESP_CONFIG_heads] = {"num_attention_heads", ESP_REQUIRED},
    [ESP_CONFIG_kv_heads] = {"num_key_value_heads", 0},
    [ESP_CONFIG_head_dim] = {"head_dim", 0},
    [ESP_CONFIG_ffn] = {"intermediate_size", ESP_REQUIRED},
    [ESP_CONFIG_vocabulary] = {"vocab_size", ESP_REQUIRED},
    [ESP_CONFIG_context] = {"max_position_embeddings", 2048},
    [ESP_CONFIG_norm_epsilon] = {"rms_norm_eps", 1e-6},
    [ESP_CONFIG_rope_theta] = {ESP_LLAMA_THETA, 1e4},
    [ESP_CONFIG_rotary_fraction] = {"", 1},
    [ESP_CONFIG_tied] = {"tie_word_embeddings", false},
};

const struct esp_tensor_rule esp_llama_tensors[] = {
    ESP_MODEL(embedding, "model.embed_tokens.weight", VOCABULARY, HIDDEN, ALWAYS),
    ESP_MODEL(head, "lm_head.weight", VOCABULARY, HIDDEN, UNLESS_TIED),
    ESP_MODEL(norm_final, "model.norm.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

const struct esp_tensor_rule esp_llama_layer_tensors[] = {
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, IF_INPUT_NORM),
    ESP_LLAMA_QUERY_KEY_VALUE,
    ESP_LAYER(query_norm, "self_attn.q_norm.weight", HEAD, ONE, IF_HEAD_NORM),
    ESP_LAYER(key_norm, "self_attn.k_norm.weight", HEAD, ONE, IF_HEAD_NORM),
    ESP_LLAMA_OUTPUT,
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(router, "mlp.gate.weight", EXPERTS, HIDDEN, IF_MIXED),
    ESP_LAYER(gate, "mlp.gate_proj.weight", FFN, HIDDEN, UNLESS_MIXED),
    ESP_LAYER(gate_bias, "mlp.gate_proj.bias", FFN, ONE, IF_MLP_BIAS),
    ESP_LAYER(up, "mlp.up_proj.weight", FFN, HIDDEN, UNLESS_MIXED),
    ESP_LAYER(up_bias, "mlp.up_proj.bias", FFN, ONE, IF_MLP_BIAS),
    ESP_LAYER(down, "mlp.down_proj.weight", HIDDEN, FFN, UNLESS_MIXED),
    ESP_LAYER(down_bias, "mlp.down_proj.bias", HIDDEN, ONE, IF_MLP_BIAS),
    {0},
};

const struct esp_family esp_family_llama = {
    ESP_LLAMA_FAMILY,
    .activation = ESP_SWIGLU,
    .layer_tensors = esp_llama_layer_tensors,
};
