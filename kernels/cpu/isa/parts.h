/* parts.h - the functions of kernels/cpu/isa that table.c collects, under their names in this
 * build. If an instruction set extends another, ESP_BASE names the one it shares functions with
 * (VNNI and AMX: AVX-512). */
#ifndef ESP_CPU_ISA_PARTS_H
#define ESP_CPU_ISA_PARTS_H

#include "kernels/cpu/gradients.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd.h"

#ifndef ESP_BASE
#define ESP_BASE ESP_ISA
#endif
#define SHARED(name) ESP_PASTE(ESP_PASTE(name, _), ESP_BASE)

#define esp_matmul_blocks ESP_ISA_NAME(esp_matmul_blocks)
#define esp_cut_vector ESP_ISA_NAME(esp_cut_vector)
#define esp_matmul_panels SHARED(esp_matmul_panels)
#define esp_attention_queries SHARED(esp_attention_queries)
#define esp_norm_vector SHARED(esp_norm_vector)
#define esp_rmsnorm_head SHARED(esp_rmsnorm_head)
#define esp_rope_head SHARED(esp_rope_head)
#define esp_scale_vector SHARED(esp_scale_vector)
#define esp_cap_vector SHARED(esp_cap_vector)
#define esp_activation_vector SHARED(esp_activation_vector)
#define esp_row_argmax SHARED(esp_row_argmax)
#define esp_row_top_k SHARED(esp_row_top_k)
#define esp_row_softmax SHARED(esp_row_softmax)
#define esp_row_sum SHARED(esp_row_sum)
#define esp_row_sample SHARED(esp_row_sample)
#define esp_row_combine SHARED(esp_row_combine)
#define esp_row_remove SHARED(esp_row_remove)
#define esp_row_temper SHARED(esp_row_temper)
#define esp_product_tile SHARED(esp_product_tile)
#define esp_gemm_whole SHARED(esp_gemm_whole)

void esp_matmul_panels(const struct esp_packed *w, int begin, int end,
                       const struct esp_matmul *p);
void esp_matmul_blocks(const struct esp_packed *w, int begin, int end,
                       const struct esp_matmul *p);
#ifdef ESP_VNNI
void esp_matmul_blocks_vnni(const struct esp_packed *w, int begin, int end,
                            const struct esp_matmul *p);
#endif
void esp_cut_vector(const struct esp_vectors *v, int row, int begin, int end);
void esp_attention_queries(const struct esp_attention *a);
void esp_norm_vector(float *out, const float *x, int n, const float *weight, const float *bias,
                     enum esp_norm kind, float epsilon);
void esp_rmsnorm_head(float *x, int n, const float *weight, float epsilon);
void esp_rope_head(float *x, int half, const float *cosine, const float *sine);
void esp_scale_vector(float *x, int n, float factor);
void esp_cap_vector(float *x, int n, float cap);
void esp_activation_vector(float *out, const float *gate, const float *up, int n,
                           enum esp_activation kind, const struct esp_clamp *clamp);
int esp_row_argmax(const float *x, int n, int32_t *id);
int esp_row_top_k(const float *x, int n, int k, int32_t *ids, float *values);
int esp_row_softmax(float *x, int n, const struct esp_sampling *sampling, void *scratch);
double esp_row_sum(const float *x, int n);
void esp_row_sample(float *x, int n, double u, const int32_t *excluded, int per, int32_t *token,
                    double *value, void *scratch);
double esp_row_combine(float *out, const float *p, const float *q, int n,
                       const struct esp_combination *f);
double esp_row_remove(float *x, int n, int32_t token);
void esp_row_temper(const float *x, int n, double power, double *mean_log, double *power_sum);
void esp_product_tile(double *c, size_t stride, const double *a, size_t row, size_t column,
                      const double *panel, int k);

/* All of the product; scratch: ESP_GEMM_SCRATCH floats. */
void esp_gemm_whole(const struct esp_gemm *g, float *scratch);

extern const struct esp_cpu_gradients SHARED(esp_cpu_gradients);

#endif
