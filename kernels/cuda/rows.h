/* rows.h - rows over the vocabulary on the device: the launchers behind rows.cu, and what their
 * kernels share.
 *
 * A launcher starts one operation on arguments and results that lie where kernels can reach
 * them (on the device or in pinned memory) and does not wait. rows.cu checks arguments, moves
 * them and waits; launchers can also be captured in a graph.
 *
 * Results must not depend on how a row was divided among blocks. Comparisons are exact: a value
 * and its index become one integer, a rank (rank.h), and the smallest of a set is the same in
 * any order. Sums are added in one order (total.h), or as integers.
 */
#ifndef ESP_CUDA_ROWS_H
#define ESP_CUDA_ROWS_H

#include "kernels/cuda/cuda.h"

enum {
    ESP_PART = 4096,               /* values of a row that one block looks at */
    ESP_VOCABULARY_MOST = 1 << 20, /* a place in a row has 20 bits of its rank */
    ESP_COUNTERS = 1024,
};

/* Memory on the device through which blocks exchange numbers; work memory follows it. Both
 * arrays are zero between calls. */
struct esp_cuda_scratch {
    unsigned counter[ESP_COUNTERS]; /* of blocks that are done, for each row of a launch */
    unsigned long long mass[2 * ESP_RATIO_CLASSES]; /* see ratio.cu */
    double total[2];                                /* [0] is used; 16 bytes */
};

template <typename T> static inline T *esp_cuda_work(const struct esp_cuda_rows *r)
{
    return reinterpret_cast<T *>(r->scratch + 1);
}

/* The number of rows for which one launch finds the k largest; 0: it takes several launches. */
int esp_cuda_top_k_at_once(int n, int k);
/* Bytes of work memory that top_k needs for a row of n values, the most of all operations. */
size_t esp_cuda_top_k_work(int n);

/* The factor of softmax.h for a temperature. */
float esp_cuda_softmax_factor(double temperature);

int esp_cuda_launch_argmax(struct esp_cuda_rows *r, const int32_t *which, int count,
                           int32_t *ids);
int esp_cuda_launch_top_k(struct esp_cuda_rows *r, const int32_t *which, int count, int k,
                          int32_t *ids, float *values);
int esp_cuda_launch_softmax(struct esp_cuda_rows *r, const int32_t *which, int count,
                            const struct esp_sampling *sampling);
int esp_cuda_launch_gather(struct esp_cuda_rows *r, const int32_t *which, const int32_t *tokens,
                           int count, double *values);
int esp_cuda_launch_sample(struct esp_cuda_rows *r, const int32_t *which, const double *u,
                           int count, int draws, const int32_t *excluded, int per,
                           int32_t *tokens, double *values);

int esp_cuda_launch_temper(struct esp_cuda_rows *r, const int32_t *which, int count,
                           double power, double *mean_log, double *power_sum);

/* One row each; `to` may be NULL. */
int esp_cuda_launch_combine(struct esp_cuda_rows *r, const float *p, const float *q,
                            const struct esp_combination *f, float *to, double *sum);
int esp_cuda_launch_remove(struct esp_cuda_rows *r, float *row, int32_t token, double *left);
int esp_cuda_launch_masses(struct esp_cuda_rows *r, const float *p, const float *q,
                           double *p_mass, double *q_mass);
int esp_cuda_launch_residual(struct esp_cuda_rows *r, const float *p, const float *q,
                             const double *factor, float *to, double *sum);

#endif
