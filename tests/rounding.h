/* rounding.h - estimates how much rounding can change a model's outputs. The estimate comes
 * from the precision of the arithmetic, and from runs of the model with random errors.
 *
 * Rounding in a matrix product has the same effect as a small random error in each activation
 * that the product reads. These are the relative errors:
 *
 *   float32               n sums, each rounded to 24 bits: 2^-24 sqrt(n / 2)
 *   BF16 on a tile unit   in addition 2^-18, because an activation is two BF16 numbers
 *   quantised weights     2^-16 of the largest of 32 activations; 2^-8 with 8-bit activations
 *
 * The effect of these errors on the outputs depends on the model. Norms and softmax can enlarge
 * it, and so can a draft head that reads its own output. So the model runs with random errors
 * that are ROUNDING_NOISE times as large. Its outputs then change by ROUNDING_NOISE times the
 * expected error (Monte Carlo arithmetic, Parker 1997).
 */
#ifndef ESP_ROUNDING_H
#define ESP_ROUNDING_H

#include "kernels/kernels.h"

enum { ROUNDING_NOISE = 16, ROUNDING_MOST = 3 };

/* The type of a function that computes `count` outputs of the model on a CPU backend. */
typedef void rounding_outputs(struct esp_backend *cpu, void *user, float *out, int count);

/* Returns the largest error that rounding on the backend `cpu` can explain, as a root mean
 * square over `compared` outputs. It is ROUNDING_MOST times the expected error, with a margin
 * of four standard deviations of chi-square, which matters if few outputs are compared. */
double rounding_bound(const struct esp_backend *cpu, rounding_outputs *run, void *user,
                      int count, long compared);

#endif
