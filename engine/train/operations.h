/* operations.h - runs the operations of training on all cores: linear layers, norms, and work
 * on single rows.
 *
 * Matrices are stored by rows without padding. A linear layer is y = W x + b with W (out, in).
 * For a loss L(y), dx = W^T dy, dW = sum dy x^T and db = sum dy, where the sums go over rows.
 * Results are bit-identical for any number of threads, because they do not depend on how a
 * function divides its work.
 */
#ifndef ESP_TRAIN_OPERATIONS_H
#define ESP_TRAIN_OPERATIONS_H

#include "kernels/cpu/gradients.h"

struct esp_workers; /* the threads, and scratch memory for each of them */

/* Starts the threads. threads = 0: one per performance core. */
int esp_workers_open(struct esp_workers **workers, int threads, char *err, size_t errlen);
void esp_workers_close(struct esp_workers *workers);
const struct esp_cpu_gradients *esp_workers_gradients(const struct esp_workers *workers);

/* Calls run(arg, begin, end, scratch) for ranges begin..end-1 that together cover 0..count-1.
 * `scratch` belongs to the thread and has ESP_WORKER_SCRATCH floats or more. */
enum { ESP_WORKER_SCRATCH = ESP_GEMM_SCRATCH };
void esp_workers_share(struct esp_workers *workers, int count,
                       void (*run)(void *arg, int begin, int end, float *scratch), void *arg);
/* Calls run(arg, task, scratch) for each of `count` tasks, which can take different times. If a
 * task needs more scratch memory, call esp_workers_reserve() first. */
void esp_workers_each(struct esp_workers *workers, int count,
                      void (*run)(void *arg, int task, float *scratch), void *arg);
/* Gives every thread scratch memory for at least `floats` floats. */
int esp_workers_reserve(struct esp_workers *workers, size_t floats);

/* Computes y (rows, out) = x (rows, in) W^T + b; with `add`, y += x W^T + b. bias may be NULL.
 */
void esp_linear(struct esp_workers *workers, float *y, const float *x, const float *w,
                const float *bias, int rows, int in, int out, bool add);
/* Computes dx (rows, in) = dy W (with `add`, dx += dy W), dw (out, in) += dy^T x, and adds the
 * sum of dy over rows to db (out). dx, dw and db may be NULL. */
void esp_linear_back(struct esp_workers *workers, float *dx, float *dw, float *db,
                     const float *dy, const float *x, const float *w, int rows, int in, int out,
                     bool add);

/* Computes out = norm(x). Writes factor (rows), which the backward function needs. */
void esp_rmsnorm(struct esp_workers *workers, float *out, float *factor, const float *x,
                 const float *weight, int rows, int n, float epsilon);
/* Adds the gradients to dx and dw. */
void esp_rmsnorm_backward(struct esp_workers *workers, float *dx, float *dw, const float *x,
                          const float *weight, const float *dy, float *factor, int rows, int n);

#endif
