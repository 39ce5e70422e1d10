/* dense.h - products of one vector with a small matrix on the processor, for networks that help
 * to decide how to decode. */
#ifndef ESP_DENSE_H
#define ESP_DENSE_H

struct esp_dense;

/* A layer from weights (inputs, outputs) and a bias (outputs), which are copied; weights are
 * rounded to BF16. NULL if there is no memory. */
struct esp_dense *esp_dense_open(const float *weights, const float *bias, int inputs,
                                 int outputs);
void esp_dense_close(struct esp_dense *dense); /* NULL is allowed */

/* Floats that y must have room for: the outputs, and padding. */
int esp_dense_room(const struct esp_dense *dense);

/* y = x W + bias. The same bits on every instruction set. */
void esp_dense_apply(const struct esp_dense *dense, const float *x, float *y);

#endif
