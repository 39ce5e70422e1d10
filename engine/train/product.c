/* product.c - tiles of 4 rows by 4 columns, which stay in registers while k goes by. */
#include "engine/train/product.h"

#include <string.h>

enum { TILE = 4 };

typedef double two __attribute__((vector_size(16)));

static inline two load(const double *x)
{
    two value;
    memcpy(&value, x, sizeof value);
    return value;
}

static inline void add_to(double *x, two value)
{
    value += load(x);
    memcpy(x, &value, sizeof value);
}

static void tile(double *c, const struct esp_view *a, const double *b, int row, int column,
                 int n, int k)
{
    two sum[TILE][2];
    memset(sum, 0, sizeof sum);
    const double *x = a->at + (size_t)row * a->row, *y = b + column;
    for (int i = 0; i < k; i++, x += a->column, y += n) {
        const two low = load(y), high = load(y + 2);
        for (int r = 0; r < TILE; r++) {
            const double factor = x[(size_t)r * a->row];
            const two both = {factor, factor};
            sum[r][0] += both * low;
            sum[r][1] += both * high;
        }
    }
    for (int r = 0; r < TILE; r++) {
        add_to(c + (size_t)(row + r) * (size_t)n + column, sum[r][0]);
        add_to(c + (size_t)(row + r) * (size_t)n + column + 2, sum[r][1]);
    }
}

/* What is left at the edges. */
static void plain(double *c, const struct esp_view *a, const double *b, int row, int rows,
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

void esp_product_add(double *c, struct esp_view a, const double *b, int m, int n, int k)
{
    const int rows = m / TILE * TILE, columns = n / TILE * TILE;
    for (int column = 0; column < columns; column += TILE)
        for (int row = 0; row < rows; row += TILE)
            tile(c, &a, b, row, column, n, k);
    plain(c, &a, b, rows, m - rows, 0, n, n, k);
    plain(c, &a, b, 0, rows, columns, n - columns, n, k);
}

void esp_transpose(double *to, const double *from, int m, int n)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            to[(size_t)j * (size_t)m + (size_t)i] = from[(size_t)i * (size_t)n + (size_t)j];
}
