/* arch_mimo.c - the MiMo-7B architecture: the layers of Qwen2 and an MTP layer.
 *
 * Key names and defaults are those of Qwen2Config in the transformers library. The MTP layer
 * is a layer of Qwen2, too. As in vLLM, the input of its matrix fc is the target's last hidden
 * state (before the final norm), followed by the embedding.
 * Xiaomi, "MiMo: Unlocking the Reasoning Potential of Language Model", 2025, section 2.2.
 */
#include "engine/model/architecture.h"

#define MTP "model.mtp_layers."

static const struct esp_tensor_rule mtp_tensors[] = {
    ESP_MODEL(fc, MTP "0.input_proj.weight", HIDDEN, FC, ALWAYS),
    ESP_MODEL(norm_embedding, MTP "0.token_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_MODEL(norm_input, MTP "0.hidden_layernorm.weight", HIDDEN, ONE, ALWAYS),
    ESP_MODEL(norm_final, MTP "0.final_layernorm.weight", HIDDEN, ONE, ALWAYS),
    {0},
};

static const struct esp_family mtp = {
    .prefix = MTP,
    .layer_name = MTP,
    .activation = ESP_SWIGLU,
    .norm = ESP_NORM_RMS,
    .tensors = mtp_tensors,
    .layer_tensors = esp_llama_layer_tensors,
    .input_first = true,
    .reads_unnormed = true,
};

const struct esp_architecture esp_architecture_mimo = {
    .name = "mimo",
    .family = &esp_family_llama,
    .mtp = &mtp,
    .config = {[ESP_CONFIG_context] = {"max_position_embeddings", 32768},
               [ESP_CONFIG_window] = {"sliding_window", 0},
               [ESP_CONFIG_windowed] = {"use_sliding_window", false},
               [ESP_CONFIG_window_from] = {"max_window_layers", 28},
               [ESP_CONFIG_attention_bias] = {"", true}},
};
