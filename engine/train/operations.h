/* operations.h - the operations of training on all cores: linear layers, norms, rows.
 *
 * Matrices are stored by rows without padding. A linear layer is y = W x + b with W (out, in).
 * The backward passes follow from L(y): dx = W^T dy, dW = sum dy x^T, db = sum dy. Every
 * function divides its work so that the bits do not depend on the number of threads.
 */
#ifndef ESP_TRAIN_OPERATIONS_H
#define ESP_TRAIN_OPERATIONS_H

#include "kernels/cpu/gradients.h"

struct esp_workers; /* the threads, and memory for each of them */

/* threads = 0: one per core. */
int esp_workers_open(struct esp_workers **workers, int threads, char *err, size_t errlen);
void esp_workers_close(struct esp_workers *workers);
const struct esp_cpu_gradients *esp_workers_gradients(const struct esp_workers *workers);

/* Calls run(arg, begin, end, scratch) for parts that together cover 0..count-1. scratch:
 * ESP_WORKER_SCRATCH floats of the thread. */
enum { ESP_WORKER_SCRATCH = ESP_GEMM_SCRATCH };
void esp_workers_share(struct esp_workers *workers, int count,
                       void (*run)(void *arg, int begin, int end, float *scratch), void *arg);
/* The same with parts of one, for `count` tasks of unequal length. The caller reserves memory
 * for the largest attention with esp_workers_reserve(). */
void esp_workers_each(struct esp_workers *workers, int count,
                      void (*run)(void *arg, int task, float *scratch), void *arg);
/* Makes the scratch of every thread at least this large. */
int esp_workers_reserve(struct esp_workers *workers, size_t floats);

/* A product on all threads. */
void esp_gemm(struct esp_workers *workers, const struct esp_gemm *g);

/* y (rows, out) = x (rows, in) W^T + b, or += x W^T; bias may be NULL. */
void esp_linear(struct esp_workers *workers, float *y, const float *x, const float *w,
                const float *bias, int rows, int in, int out, bool add);
/* dx (rows, in) = dy W, or += */
void esp_linear_dx(struct esp_workers *workers, float *dx, const float *dy, const float *w,
                   int rows, int in, int out, bool add);
/* dw (out, in) += dy^T x; db (out) += the sum of dy, unless NULL. */
void esp_linear_dw(struct esp_workers *workers, float *dw, float *db, const float *dy,
                   const float *x, int rows, int in, int out);

/* out = norm(x); factor (rows) is kept for the backward pass. */
void esp_rmsnorm(struct esp_workers *workers, float *out, float *factor, const float *x,
                 const float *weight, int rows, int n, float epsilon);
/* dx +=, dw += */
void esp_rmsnorm_backward(struct esp_workers *workers, float *dx, float *dw, const float *x,
                          const float *weight, const float *dy, const float *factor, int rows,
                          int n);
void esp_swiglu(struct esp_workers *workers, float *out, const float *gate, const float *up,
                size_t n);
/* gate and up become their gradients. */
void esp_swiglu_backward(struct esp_workers *workers, float *gate, float *up,
                         const float *d_out, size_t n);
/* x += y */
void esp_add(struct esp_workers *workers, float *x, const float *y, size_t n);

#endif
