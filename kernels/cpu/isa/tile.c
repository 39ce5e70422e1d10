/* tile.c - computes a tile of a matrix product in double precision, for kernels/cpu/product.c.
 *
 * The sums of four rows by eight columns stay in registers during the loop over k. Each
 * product and each sum is one IEEE operation, so all builds give bit-identical results.
 */
#include "kernels/cpu/isa/parts.h"

typedef double eight __attribute__((vector_size(64)));

enum { ROWS = 4, COLUMNS = 8 };

void ISA(product)(double *c, size_t stride, const double *a, size_t row, size_t column,
                  const double *panel, int k)
{
    eight sum[ROWS];
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < k; i++, a += column, panel += COLUMNS) {
        eight b;
        memcpy(&b, panel, sizeof b);
        for (int r = 0; r < ROWS; r++)
            sum[r] += a[(size_t)r * row] * b;
    }
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < COLUMNS; j++)
            c[(size_t)r * stride + (size_t)j] += sum[r][j];
}
