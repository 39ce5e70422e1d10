/* arch_gpt_neox.c - the GPT-NeoX architecture (Pythia): LayerNorm, partial rotation, GELU.
 *
 * Attention and MLP may read the same residual ("parallel"). Query, key and value are in one
 * matrix. For each head, this matrix has head_dim rows of the query (part 0), then as many rows
 * of the key (part 1) and of the value (part 2). Key names and defaults are those of
 * GPTNeoXConfig in the transformers library. Release 5 of the library moved rotary_emb_base and
 * rotary_pct into rope_parameters.
 *
 * Black et al., "GPT-NeoX-20B", 2022, section 2; Biderman et al., "Pythia", 2023.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule tensors[] = {
    ESP_MODEL(embedding, "gpt_neox.embed_in.weight", VOCABULARY, HIDDEN, ALWAYS),
    ESP_MODEL(head, "embed_out.weight", VOCABULARY, HIDDEN, UNLESS_TIED),
    ESP_MODEL(norm_final, "gpt_neox.final_layer_norm.weight", HIDDEN, ONE, ALWAYS),
    ESP_MODEL(norm_final_bias, "gpt_neox.final_layer_norm.bias", HIDDEN, ONE, ALWAYS),
    {0},
};

#define QKV "attention.query_key_value."

static const struct esp_tensor_rule layer_tensors[] = {
    ESP_LAYER(norm1, "input_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(norm1_bias, "input_layernorm.bias", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(query, QKV "weight", QUERIES, HIDDEN, ALWAYS, .part = 0, .parts = 3),
    ESP_LAYER(key, QKV "weight", KEYS, HIDDEN, ALWAYS, .part = 1, .parts = 3),
    ESP_LAYER(value, QKV "weight", KEYS, HIDDEN, ALWAYS, .part = 2, .parts = 3),
    ESP_LAYER(query_bias, QKV "bias", QUERIES, ONE, IF_ATTENTION_BIAS, .part = 0, .parts = 3),
    ESP_LAYER(key_bias, QKV "bias", KEYS, ONE, IF_ATTENTION_BIAS, .part = 1, .parts = 3),
    ESP_LAYER(value_bias, QKV "bias", KEYS, ONE, IF_ATTENTION_BIAS, .part = 2, .parts = 3),
    ESP_LAYER(output, "attention.dense.weight", HIDDEN, QUERIES, ALWAYS),
    ESP_LAYER(output_bias, "attention.dense.bias", HIDDEN, ONE, IF_OUTPUT_BIAS),
    ESP_LAYER(norm2, "post_attention_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(norm2_bias, "post_attention_layernorm.bias", HIDDEN, ONE, ALWAYS),
    ESP_LAYER(up, "mlp.dense_h_to_4h.weight", FFN, HIDDEN, ALWAYS),
    ESP_LAYER(up_bias, "mlp.dense_h_to_4h.bias", FFN, ONE, ALWAYS),
    ESP_LAYER(down, "mlp.dense_4h_to_h.weight", HIDDEN, FFN, ALWAYS),
    ESP_LAYER(down_bias, "mlp.dense_4h_to_h.bias", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family family = {
    .prefix = "gpt_neox.",
    .layer_name = "gpt_neox.layers.",
    .hidden_act = "gelu",
    .activation = ESP_GELU,
    .norm = ESP_NORM_LAYER,
    .tensors = tensors,
    .layer_tensors = layer_tensors,
};

const struct esp_architecture esp_architecture_gpt_neox = {
    .name = "gpt_neox",
    .family = &family,
    .config =
        {[ESP_CONFIG_layers] = {"num_hidden_layers", ESP_REQUIRED},
         [ESP_CONFIG_hidden] = {"hidden_size", ESP_REQUIRED},
         [ESP_CONFIG_heads] = {"num_attention_heads", ESP_REQUIRED},
         [ESP_CONFIG_ffn] = {"intermediate_size", ESP_REQUIRED},
         [ESP_CONFIG_vocabulary] = {"vocab_size", ESP_REQUIRED},
         [ESP_CONFIG_context] = {"max_position_embeddings", 2048},
         [ESP_CONFIG_norm_epsilon] = {"layer_norm_eps", 1e-5},
         [ESP_CONFIG_rope_theta] =
             {"rope_scaling.rope_theta|rope_parameters.rope_theta|rotary_emb_base|rope_theta",
              1e4},
         [ESP_CONFIG_rotary_fraction] = {"rope_scaling.partial_rotary_factor|rope_parameters."
                                         "partial_rotary_factor|rotary_pct|"
                                         "partial_rotary_factor",
                                         0.25},
         [ESP_CONFIG_parallel_residual] = {"use_parallel_residual", true},
         [ESP_CONFIG_attention_bias] = {"attention_bias", true},
         [ESP_CONFIG_output_bias] = {"attention_bias", true},
         [ESP_CONFIG_tied] = {"tie_word_embeddings", false}},
};
