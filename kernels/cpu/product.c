/* product.c - computes a product in tiles of 4 rows by 8 columns, with packed panels of b; see
 * kernels/product.h. */
#include "kernels/product.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

enum { ROWS = 4, COLUMNS = 8 };

/* Computes the parts at the edges of c that are smaller than a tile. */
static void plain(double *c, const struct esp_strided *a, const double *b, int row, int rows,
                  int column, int columns, int n, int k)
{
    for (int i = row; i < row + rows; i++)
        for (int j = column; j < column + columns; j++) {
            double sum = 0;
            for (int x = 0; x < k; x++)
                sum += a->at[(size_t)i * a->row + (size_t)x * a->column] *
                       b[(size_t)x * (size_t)n + (size_t)j];
            c[(size_t)i * (size_t)n + (size_t)j] += sum;
        }
}

void esp_product_add(double *c, struct esp_strided a, const double *b, int m, int n, int k)
{
    const struct esp_cpu_isa *isa = esp_cpu_vectors();
    double *panel = malloc((size_t)k * COLUMNS * sizeof *panel);
    const int rows = panel ? m / ROWS * ROWS : 0, columns = n / COLUMNS * COLUMNS;
    for (int column = 0; column < columns && rows > 0; column += COLUMNS) {
        for (int i = 0; i < k; i++)
            memcpy(panel + (size_t)i * COLUMNS, b + (size_t)i * (size_t)n + column,
                   COLUMNS * sizeof *panel);
        for (int row = 0; row < rows; row += ROWS)
            isa->product(c + (size_t)row * (size_t)n + column, (size_t)n,
                         a.at + (size_t)row * a.row, a.row, a.column, panel, k);
    }
    free(panel);
    plain(c, &a, b, rows, m - rows, 0, n, n, k);
    plain(c, &a, b, 0, rows, columns, n - columns, n, k);
}

void esp_transpose(double *to, const double *from, int m, int n)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            to[(size_t)j * (size_t)m + (size_t)i] = from[(size_t)i * (size_t)n + (size_t)j];
}
