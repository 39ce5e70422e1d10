/* arch_gemma3_text.c - the Gemma 3 architecture (text). Five of six layers attend only to
 * a sliding window, and have different rotary frequencies from the other layers. Each head of
 * query and key is normalised.
 *
 * Key names and defaults are those of Gemma3TextConfig in the transformers library. Release 5
 * of that library moved the two rotary bases into rope_parameters. Gemma Team, "Gemma 3
 * Technical Report", 2025, section 2.
 */
#include "engine/model/architecture.h"

const struct esp_architecture esp_architecture_gemma3_text = {
    .name = "gemma3_text",
    .family = &esp_family_gemma,
    .flags = {{"use_bidirectional_attention", false}},
    .config = {[ESP_CONFIG_layers] = {"num_hidden_layers", 26},
               [ESP_CONFIG_hidden] = {"hidden_size", 2304},
               [ESP_CONFIG_heads] = {"num_attention_heads", 8},
               [ESP_CONFIG_ffn] = {"intermediate_size", 9216},
               [ESP_CONFIG_vocabulary] = {"vocab_size", 262208},
               [ESP_CONFIG_context] = {"max_position_embeddings", 131072},
               [ESP_CONFIG_full_every] = {"sliding_window_pattern|_sliding_window_pattern", 6},
               [ESP_CONFIG_rope_theta] =
                   {"rope_parameters.full_attention.rope_theta|rope_theta", 1e6},
               [ESP_CONFIG_rope_theta_local] =
                   {"rope_parameters.sliding_attention.rope_theta|rope_local_base_freq", 1e4},
               [ESP_CONFIG_head_norm] = {"", true},
               [ESP_CONFIG_attention_cap] = {"attn_logit_softcapping", 0},
               [ESP_CONFIG_logit_cap] = {"final_logit_softcapping", 0}},
};
