/* family_ssm.c - lists the names that GGUF files have for the tensors of state space models
 * (ESP_SSM_LAYER). */
#include "engine/model/architecture.h"

const struct esp_gguf_slot esp_ssm_gguf[] = {
    {offsetof(struct esp_layer, out_gate), "ssm_in.weight"},
    {offsetof(struct esp_layer, conv_in), "ssm_in.weight"},
    {offsetof(struct esp_layer, decay), "ssm_in.weight"},
    {offsetof(struct esp_layer, conv), "ssm_conv1d.weight"},
    {offsetof(struct esp_layer, conv_bias), "ssm_conv1d.bias"},
    {offsetof(struct esp_layer, decay_bias), "ssm_dt.bias"},
    {offsetof(struct esp_layer, rate), "ssm_a"},
    {offsetof(struct esp_layer, skip), "ssm_d"},
    {offsetof(struct esp_layer, mixed_norm), "ssm_norm.weight"},
    {offsetof(struct esp_layer, mixed), "ssm_out.weight"},
    {0},
};
