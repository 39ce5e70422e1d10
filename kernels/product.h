/* product.h - computes matrix products in double precision on the CPU, to train small
 * networks. */
#ifndef ESP_PRODUCT_H
#define ESP_PRODUCT_H

#include <stddef.h>

/* A matrix with arbitrary strides: element (i, j) is at[i * row + j * column]. */
struct esp_strided {
    const double *at;
    size_t row, column;
};

/* Computes c (m, n) += a (m, k) b (k, n). c and b are row-major without gaps. Each element is
 * summed in the order of k, so results are bit-identical on all instruction sets. */
void esp_product_add(double *c, struct esp_strided a, const double *b, int m, int n, int k);

/* Sets `to` (n, m) to the transpose of `from` (m, n). */
void esp_transpose(double *to, const double *from, int m, int n);

#endif
