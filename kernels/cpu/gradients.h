/* gradients.h - the arithmetic of training on the CPU: matrix products of any layout, and
 * forward and backward passes of the operations between them.
 *
 * There is one table of these functions per instruction set; struct esp_cpu_isa points to it.
 * Every function computes the calling thread's share of the work and allocates nothing.
 * Rows need no padding. The order of every sum depends only on the sizes of the whole
 * operation, not on its division among threads. So the results of training are bit-identical
 * for any number of threads.
 *
 * Names: `dx` is the gradient of the loss with respect to x.
 */
#ifndef ESP_CPU_GRADIENTS_H
#define ESP_CPU_GRADIENTS_H

#include "kernels/kernels.h"

/* C (m, n) = A (m, k) B (k, n), or C += A B. Element (i, j) of A is a[i * a_row + j *
 * a_column]; for a transposed matrix the two strides are exchanged. To compute a part of the
 * product, pass pointers to parts of A, B and C. The sum over k cannot be divided. */
struct esp_gemm {
    int m, n, k;
    const float *a;
    size_t a_row, a_column;
    const float *b;
    size_t b_row, b_column;
    float *c;
    size_t c_row; /* floats from row to row of C; within a row, elements are adjacent */
    bool add;
};

/* A product is computed in blocks of these sizes. */
enum {
    ESP_GEMM_ROWS = 96,     /* rows of A */
    ESP_GEMM_DEPTH = 256,   /* columns of A, rows of B */
    ESP_GEMM_COLUMNS = 512, /* columns of B */
    ESP_GEMM_SCRATCH = (ESP_GEMM_ROWS + ESP_GEMM_COLUMNS) * ESP_GEMM_DEPTH, /* floats */
};

/* Describes attention of some queries of one head. Query i attends to rows 0..seen[i]-1 of its
 * text, to its ancestors in a tree, and to itself. Row i of `extra` (rows, extras) lists these
 * ancestors and the query's own row; -1 ends the list. Row 0 is the first row at k and v. */
struct esp_tree_attention {
    int rows, head_dim;
    int keys; /* the largest value in `seen` */
    const int32_t *seen;
    const int32_t *extra;
    int extras;
    float scale;      /* factor by which the scores are multiplied */
    size_t q_stride;  /* floats from row to row of q, out, d_out and dq */
    size_t kv_stride; /* floats from row to row of k, v, dk and dv */
    const float *q, *k, *v;
    float *out;          /* result of the forward pass */
    const float *d_out;  /* input of the backward pass */
    float *dq, *dk, *dv; /* results of the backward pass, which adds to dk and dv but sets dq */
    float *scratch;      /* esp_tree_attention_scratch() floats */
};

/* Describes a loss that compares the draft's distribution q with the target's distribution p.
 * The loss of a row is -sum t(x) log q(x). Here t(x) = cls p(x), except for the `top` largest
 * p(x), where t(x) = (cls + distil) p(x). */
struct esp_soft_loss {
    float cls, distil;
    int top;      /* at most ESP_SOFT_TOP */
    float weight; /* factor by which the gradient is multiplied */
};

enum { ESP_SOFT_TOP = 64 };

struct esp_soft_result {
    double loss;        /* loss of the row, not weighted */
    double entropy_gap; /* KL divergence of q from p */
    double overlap;     /* sum of min(p, q): P(a token drawn from q is accepted) */
    bool agrees;        /* p and q have the same most probable token */
};

/* Describes a step of AdamW (Loshchilov and Hutter 2019). `rate` is the learning rate of this
 * step, and the corrections are 1 - beta^step. The gradient is clipped by multiplying it by
 * `factor`. */
struct esp_adamw_update {
    float rate, beta1, beta2, correction1, correction2, epsilon, decay, factor;
};

struct esp_cpu_gradients {
    void (*gemm)(const struct esp_gemm *g, float *scratch);

    void (*attention)(const struct esp_tree_attention *a);
    void (*attention_backward)(const struct esp_tree_attention *a);

    /* RMSNorm of one row; returns the factor 1 / rms(x) for the backward pass. */
    float (*rmsnorm)(float *out, const float *x, const float *weight, int n, float epsilon);
    /* Adds the gradient of x to dx. factor: the value that rmsnorm() returned. */
    void (*rmsnorm_backward)(float *dx, const float *x, const float *weight, const float *dy,
                             int n, float factor);
    /* Adds the sum over rows of dy * x * factor to columns begin..end-1 of dw (n). */
    void (*rmsnorm_weight)(float *dw, const float *x, const float *dy, const float *factor,
                           int rows, int n, int begin, int end);
    /* Adds the sum over rows of y (rows, n) to columns begin..end-1 of sums (n). */
    void (*column_sums)(float *sums, const float *y, int rows, int n, int begin, int end);

    /* Computes out = silu(gate) * up. */
    void (*swiglu)(float *out, const float *gate, const float *up, int n);
    /* Replaces gate and up by their gradients. */
    void (*swiglu_backward)(float *gate, float *up, const float *d_out, int n);

    void (*rope)(float *x, int half, const float *cosine, const float *sine);

    /* Computes the loss of one row. draft, target: (n) logits. The target's logits are replaced
     * by probabilities, the draft's logits by the weighted gradient. Returns ESP_E_NUMERIC if a
     * logit is NaN or infinite. */
    int (*soft_loss)(float *draft, float *target, int n, const struct esp_soft_loss *how,
                     struct esp_soft_result *result);
    /* Returns the mean over n of |x - to|. If `smooth` is true, returns the mean of the smooth
     * L1 loss: (x - to)^2 / 2 if |x - to| is below 1, otherwise |x - to| - 1/2. Adds `weight`
     * times the gradient to dx. */
    double (*regression)(float *dx, const float *x, const float *to, int n, bool smooth,
                         float weight);

    double (*square_sum)(const float *x, size_t n);
    void (*adamw)(float *w, const float *dw, float *m, float *v, size_t n,
                  const struct esp_adamw_update *how);
    /* x += y */
    void (*add)(float *x, const float *y, size_t n);
};

/* Returns how many floats of scratch memory attention needs for this many queries, keys and
 * extras. */
static inline size_t esp_tree_attention_scratch(int rows, int keys, int extras)
{
    return ESP_GEMM_SCRATCH + 2 * (size_t)rows * ((size_t)keys + (size_t)extras);
}

#endif
