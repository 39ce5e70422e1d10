/* dense.h - computes products of a vector with a small matrix on the CPU, for the small
 * networks that choose decoding parameters (engine/selector). */
#ifndef ESP_DENSE_H
#define ESP_DENSE_H

struct esp_dense;

/* Opens a layer: copies weights (inputs, outputs), rounded to BF16, and bias (outputs).
 * Returns NULL if there is not enough memory. */
struct esp_dense *esp_dense_open(const float *weights, const float *bias, int inputs,
                                 int outputs);
void esp_dense_close(struct esp_dense *dense); /* NULL is allowed */

/* Computes y = x W + bias. y must have room for the number of outputs, rounded up to a multiple
 * of 32. Results are bit-identical on all instruction sets. */
void esp_dense_apply(const struct esp_dense *dense, const float *x, float *y);

#endif
