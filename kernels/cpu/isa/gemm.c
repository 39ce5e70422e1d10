/* gemm.c - computes the matrix products of training, C = A B. The matrices are float32 and can
 * have any layout. They are divided into blocks that fit in the caches.
 *
 * Parts of A are copied into panels of TILE_ROWS rows, and parts of B into panels of 32
 * columns. In a panel, all numbers with the same index k of the shared dimension are adjacent.
 * One loop over a panel of A and a panel of B computes a tile of C in registers. For decoding
 * (matmul.c), weights are packed when they are loaded. Here, the weights change with every
 * step, and each of the two matrices may be transposed.
 *
 * Element (i, j) of C is a sum of chains of ESP_GEMM_DEPTH fused multiply-adds each, in the
 * order of k. This order does not depend on the part of C that is computed. (Goto and van de
 * Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.)
 */
#include "kernels/cpu/isa/parts.h"

#if ESP_SIMD == 3
enum { TILE_ROWS = 12 };
#else
enum { TILE_ROWS = 3 };
#endif

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Packs m rows of k numbers into a panel (k, width). If m < width, the remaining rows are
 * filled with zeros. Number j of row i is from[i * row + j * column]. */
V16 void pack(float *to, const int width, const float *from, size_t row, size_t column, int m,
              int k)
{
    if (m < width)
        memset(to, 0, (size_t)k * (size_t)width * sizeof *to);
    if (row == 1 && m == width) {
        for (int j = 0; j < k; j++)
            memcpy(to + (size_t)j * (size_t)width, from + (size_t)j * column,
                   (size_t)width * sizeof *to);
        return;
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            to[(size_t)j * (size_t)width + (size_t)i] =
                from[(size_t)i * row + (size_t)j * column];
}

/* Computes m rows and n columns of C from one panel of A and one panel of B. */
V16 void tile(const float *a, const float *b, int k, float *c, size_t c_row, int m, int n,
              bool add)
{
    struct v16 sum[TILE_ROWS][2];
#pragma GCC unroll 12
    for (int i = 0; i < TILE_ROWS; i++)
        sum[i][0] = sum[i][1] = v16_set(0.0f);
    for (int j = 0; j < k; j++) {
        struct v16 low = v16_load(b), high = v16_load(b + ESP_LANES);
        b += ESP_PANEL;
#pragma GCC unroll 12
        for (int i = 0; i < TILE_ROWS; i++) {
            struct v16 x = v16_set(a[i]);
            sum[i][0] = v16_fma(x, low, sum[i][0]);
            sum[i][1] = v16_fma(x, high, sum[i][1]);
        }
        a += TILE_ROWS;
    }
    const int first = least(n, ESP_LANES), second = n - first;
#pragma GCC unroll 12
    for (int i = 0; i < TILE_ROWS; i++) {
        float *y = c + (size_t)i * c_row;
        if (i >= m)
            continue;
        if (n == ESP_PANEL) {
            if (add) {
                sum[i][0] = v16_add(v16_load(y), sum[i][0]);
                sum[i][1] = v16_add(v16_load(y + ESP_LANES), sum[i][1]);
            }
            v16_store(y, sum[i][0]);
            v16_store(y + ESP_LANES, sum[i][1]);
            continue;
        }
        if (add)
            sum[i][0] = v16_add(v16_load_part(y, first, 0.0f), sum[i][0]);
        v16_store_part(y, first, sum[i][0]);
        if (second > 0) {
            if (add)
                sum[i][1] = v16_add(v16_load_part(y + ESP_LANES, second, 0.0f), sum[i][1]);
            v16_store_part(y + ESP_LANES, second, sum[i][1]);
        }
    }
}

/* Computes columns column..column+n-1 of all rows of C from b, the packed part of B. `a` is
 * scratch memory for the packed rows of A. */
static void rows_of_c(const struct esp_gemm *g, int column, int n, int depth, int k, float *a,
                      const float *b)
{
    const bool add = g->add || depth > 0;
    for (int row = 0; row < g->m; row += ESP_GEMM_ROWS) {
        const int m = least(g->m - row, ESP_GEMM_ROWS);
        for (int i = 0; i < m; i += TILE_ROWS)
            pack(a + (size_t)i * (size_t)k, TILE_ROWS,
                 g->a + (size_t)(row + i) * g->a_row + (size_t)depth * g->a_column, g->a_row,
                 g->a_column, least(m - i, TILE_ROWS), k);
        for (int i = 0; i < m; i += TILE_ROWS)
            for (int j = 0; j < n; j += ESP_PANEL)
                tile(a + (size_t)i * (size_t)k, b + (size_t)j * (size_t)k, k,
                     g->c + (size_t)(row + i) * g->c_row + column + j, g->c_row,
                     least(m - i, TILE_ROWS), least(n - j, ESP_PANEL), add);
    }
}

void ISA(gemm_whole)(const struct esp_gemm *g, float *scratch)
{
    float *a = scratch, *b = scratch + (size_t)ESP_GEMM_ROWS * ESP_GEMM_DEPTH;
    for (int column = 0; column < g->n; column += ESP_GEMM_COLUMNS) {
        const int n = least(g->n - column, ESP_GEMM_COLUMNS);
        for (int depth = 0; depth < g->k; depth += ESP_GEMM_DEPTH) {
            const int k = least(g->k - depth, ESP_GEMM_DEPTH);
            for (int j = 0; j < n; j += ESP_PANEL)
                pack(b + (size_t)j * (size_t)k, ESP_PANEL,
                     g->b + (size_t)depth * g->b_row + (size_t)(column + j) * g->b_column,
                     g->b_column, g->b_row, least(n - j, ESP_PANEL), k);
            rows_of_c(g, column, n, depth, k, a, b);
        }
    }
}
