/* arch_gpt2.c - the GPT-2 architecture: LayerNorm, learned positions, GELU (tanh).
 *
 * Matrices are stored transposed, with shape (inputs, outputs). Query, key and value are side
 * by side in one matrix. Key names and defaults are those of GPT2Config in the transformers
 * library. The key names of other architectures are accepted, too. Radford et al.,
 * "Language Models are Unsupervised Multitask Learners", 2019, section 2.3.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule tensors[] = {
    ESP_MODEL(embedding, "transformer.wte.weight", VOCABULARY, HIDDEN, ALWAYS),
    ESP_MODEL(position_embedding, "transformer.wpe.weight", POSITIONS, HIDDEN, ALWAYS),
    ESP_MODEL(head, "lm_head.weight", VOCABULARY, HIDDEN, UNLESS_TIED),
    ESP_MODEL(norm_final, "transformer.ln_f.weight", HIDDEN, ONE, ALWAYS),
    ESP_MODEL(norm_final_bias, "transformer.ln_f.bias", HIDDEN, ONE, ALWAYS),
    {0},
};

#define QKV "attn.c_attn."

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "ln_1.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(norm1_bias, "ln_1.bias", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(query, QKV "weight", QUERIES, HIDDEN, ALWAYS, .stacked = true,
              .transposed = true),
    ESP_LAYER(key, QKV "weight", KEYS, HIDDEN, ALWAYS, .stacked = true, .transposed = true),
    ESP_LAYER(value, QKV "weight", KEYS, HIDDEN, ALWAYS, .stacked = true, .transposed = true),
    ESP_LAYER(query_bias, QKV "bias", QUERIES, ONE, ALWAYS, .stacked = true),
    ESP_LAYER(key_bias, QKV "bias", KEYS, ONE, ALWAYS, .stacked = true),
    ESP_LAYER(value_bias, QKV "bias", KEYS, ONE, ALWAYS, .stacked = true),
    ESP_LAYER(output, "attn.c_proj.weight", HIDDEN, QUERIES, ALWAYS, .transposed = true),
    ESP_LAYER(output_bias, "attn.c_proj.bias", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(norm2, "ln_2.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(norm2_bias, "ln_2.bias", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(up, "mlp.c_fc.weight", FFN, HIDDEN, ALWAYS, .transposed = true),
    ESP_LAYER(up_bias, "mlp.c_fc.bias", FFN, ONE, ALWAYS),
    ESP_LAYER(down, "mlp.c_proj.weight", HIDDEN, FFN, ALWAYS, .transposed = true),
    ESP_LAYER(down_bias, "mlp.c_proj.bias", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family family = {
    .prefix = "transformer.",
    .layer_name = "transformer.h.",
    .activation_key = "activation_function",
    .hidden_act = "gelu_new",
    .activation = ESP_GELU_TANH,
    .norm = ESP_NORM_LAYER,
    .tensors = tensors,
    .layer_tensors = layer_tensors,
};

const struct esp_architecture esp_architecture_gpt2 = {
    .name = "gpt2",
    .family = &family,
    .config = {[ESP_CONFIG_layers] = {"n_layer|num_hidden_layers", ESP_REQUIRED},
               [ESP_CONFIG_hidden] = {"n_embd|hidden_size", ESP_REQUIRED},
               [ESP_CONFIG_heads] = {"n_head|num_attention_heads", ESP_REQUIRED},
               [ESP_CONFIG_ffn] = {"n_inner|intermediate_size", 0},
               [ESP_CONFIG_vocabulary] = {"vocab_size", ESP_REQUIRED},
               [ESP_CONFIG_context] = {"n_positions|max_position_embeddings", 1024},
               [ESP_CONFIG_norm_epsilon] = {"layer_norm_epsilon|layer_norm_eps", 1e-5},
               [ESP_CONFIG_tied] = {"tie_word_embeddings", true}},
    .flags = {{"scale_attn_weights", true},
              {"scale_attn_by_inverse_layer_idx", false},
              {"add_cross_attention", false}},
};
