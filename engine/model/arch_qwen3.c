/* arch_qwen3.c - the Qwen3 architecture: Llama's family, with an RMSNorm for each head of
 * query and key.
 *
 * Key names and defaults are those of Qwen3Config in the transformers library. Layers
 * have an attention window only if use_sliding_window is true. MTP layers for these models come
 * from the library speculators. These MTP layers read the target's last hidden state after the
 * final norm.
 * Yang et al., "Qwen3 Technical Report", 2025, section 2.
 */
#include "engine/model/architecture.h"

static const struct esp_tensor_rule mtp_tensors[] = {
    ESP_MODEL(fc, "mtp.fc.weight", HIDDEN, FC, ALWAYS),
    ESP_MODEL(norm_embedding, "mtp.pre_fc_norm_embedding.weight", HIDDEN, ONE, ALWAYS),
    ESP_MODEL(norm_input, "mtp.pre_fc_norm_hidden.weight", HIDDEN, ONE, ALWAYS),
    ESP_MODEL(norm_final, "mtp.norm.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family mtp = {
    .prefix = "mtp.",
    .layer_name = "mtp.layers.",
    .activation = ESP_SWIGLU,
    .norm = ESP_NORM_RMS,
    .tensors = mtp_tensors,
    .layer_tensors = esp_llama_layer_tensors,
};

const struct esp_architecture esp_architecture_qwen3 = {
    .name = "qwen3",
    .family = &esp_family_llama,
    .mtp = &mtp,
    .config = {[ESP_CONFIG_head_dim] = {"head_dim", 128},
               [ESP_CONFIG_context] = {"max_position_embeddings", 32768},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"use_sliding_window", false},
               [ESP_CONFIG_window_from] = {"max_window_layers", 28},
               [ESP_CONFIG_attention_bias] = {"attention_bias", false},
               [ESP_CONFIG_output_bias] = {"attention_bias", false},
               [ESP_CONFIG_head_norm] = {"", true}},
};
