/* table.c - the functions of this instruction set; see isa.h. */
#include "kernels/cpu/isa/parts.h"

#ifdef ESP_VNNI
#define NAME "AVX-512 VNNI"
#elif ESP_SIMD == 3
#define NAME "AVX-512"
#elif ESP_SIMD == 2
#define NAME "AVX2"
#else
#define NAME "portable C"
#endif

const struct esp_cpu_isa ESP_ISA_NAME(esp_cpu_isa) = {
    .name = NAME,
    .cut = esp_cut_vector,
    .matmul = esp_matmul_panels,
    .matmul_blocks = esp_matmul_blocks,
    .attention = esp_attention_queries,
    .norm = esp_norm_vector,
    .rmsnorm_head = esp_rmsnorm_head,
    .rope = esp_rope_head,
    .scale = esp_scale_vector,
    .cap = esp_cap_vector,
    .activation = esp_activation_vector,
    .argmax = esp_row_argmax,
    .top_k = esp_row_top_k,
    .softmax = esp_row_softmax,
    .sample = esp_row_sample,
    .combine = esp_row_combine,
    .remove = esp_row_remove,
    .temper = esp_row_temper,
    .product = esp_product_tile,
    .gradients = &SHARED(esp_cpu_gradients),
};
