/* parts.h - the functions of kernels/cpu/isa that table.c gathers, under their names in this
 * build. */
#ifndef ESP_CPU_ISA_PARTS_H
#define ESP_CPU_ISA_PARTS_H

#include "cpu/isa.h"
#include "cpu/simd.h"

#define esp_product_panels ESP_ISA_NAME(esp_product_panels)
#define esp_attention_queries ESP_ISA_NAME(esp_attention_queries)
#define esp_norm_vector ESP_ISA_NAME(esp_norm_vector)
#define esp_norm_head ESP_ISA_NAME(esp_norm_head)
#define esp_rotate_head ESP_ISA_NAME(esp_rotate_head)
#define esp_scale_vector ESP_ISA_NAME(esp_scale_vector)
#define esp_activate_vector ESP_ISA_NAME(esp_activate_vector)
#define esp_row_argmax ESP_ISA_NAME(esp_row_argmax)
#define esp_row_top_k ESP_ISA_NAME(esp_row_top_k)
#define esp_row_softmax ESP_ISA_NAME(esp_row_softmax)
#define esp_row_sum ESP_ISA_NAME(esp_row_sum)
#define esp_row_sample ESP_ISA_NAME(esp_row_sample)
#define esp_row_combine ESP_ISA_NAME(esp_row_combine)
#define esp_row_remove ESP_ISA_NAME(esp_row_remove)

void esp_product_panels(const struct esp_packed *w, int begin, int end,
                        const struct esp_product *p);
void esp_attention_queries(const struct esp_attention *a);
void esp_norm_vector(float *out, const float *x, int n, const float *weight, const float *bias,
                     enum esp_norm kind, float epsilon);
void esp_norm_head(float *x, int n, const float *weight, float epsilon);
void esp_rotate_head(float *x, int half, const float *cosine, const float *sine);
void esp_scale_vector(float *x, int n, float factor);
void esp_activate_vector(float *out, const float *gate, const float *up, int n);
int esp_row_argmax(const float *x, int n, int32_t *id);
int esp_row_top_k(const float *x, int n, int k, int32_t *ids, float *values);
int esp_row_softmax(float *x, int n, const struct esp_sampling *sampling, void *scratch);
double esp_row_sum(const float *x, int n);
void esp_row_sample(float *x, int n, double u, const int32_t *excluded, int per, int32_t *token,
                    double *value, void *scratch);
double esp_row_combine(float *out, const float *p, const float *q, int n,
                       const struct esp_combination *f);
double esp_row_remove(float *x, int n, int32_t token);

#endif
