/* gemm.c - the matrix product of training: float32, any layout, blocked for the caches.
 *
 * Parts of A and B are copied into panels, A in panels of TILE_ROWS rows and B in panels of 32
 * columns, the shared dimension in order within a panel. A register tile then walks two panels
 * once. Products of decoding (matmul.c) have weights that were packed when they were loaded;
 * here weights change with every step and either side may be transposed.
 *
 * Element (i, j) of C is a sum of chains of ESP_GEMM_DEPTH fused multiply-adds each, in order
 * of k, whatever the part of C that is asked for. (Goto and van de Geijn, "Anatomy of
 * High-Performance Matrix Multiplication", 2008.)
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

/* Rows row..row+m-1 and k columns of A, zeros for rows up to TILE_ROWS. */
static void pack_a(float *to, const struct esp_gemm *g, int row, int m, int depth, int k)
{
    const float *a = g->a + (size_t)row * g->a_row + (size_t)depth * g->a_column;
    if (m < TILE_ROWS)
        memset(to, 0, (size_t)k * TILE_ROWS * sizeof *to);
    if (g->a_row == 1 && m == TILE_ROWS) {
        for (int j = 0; j < k; j++)
            memcpy(to + (size_t)j * TILE_ROWS, a + (size_t)j * g->a_column,
                   TILE_ROWS * sizeof *to);
        return;
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            to[(size_t)j * TILE_ROWS + (size_t)i] =
                a[(size_t)i * g->a_row + (size_t)j * g->a_column];
}

/* k rows and columns column..column+n-1 of B, zeros for columns up to ESP_PANEL. */
static void pack_b(float *to, const struct esp_gemm *g, int column, int n, int depth, int k)
{
    const float *b = g->b + (size_t)depth * g->b_row + (size_t)column * g->b_column;
    if (n < ESP_PANEL)
        memset(to, 0, (size_t)k * ESP_PANEL * sizeof *to);
    if (g->b_column == 1 && n == ESP_PANEL) {
        for (int i = 0; i < k; i++) {
            const float *from = b + (size_t)i * g->b_row;
            v16_store(to + (size_t)i * ESP_PANEL, v16_load(from));
            v16_store(to + (size_t)i * ESP_PANEL + ESP_LANES, v16_load(from + ESP_LANES));
        }
        return;
    }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < k; i++)
            to[(size_t)i * ESP_PANEL + (size_t)j] =
                b[(size_t)i * g->b_row + (size_t)j * g->b_column];
}

/* m rows and n columns of C from one panel of A and one of B. */
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

/* All rows of C by columns column..column+n-1, from the packed part of B. */
static void rows_of_c(const struct esp_gemm *g, int column, int n, int depth, int k, float *a,
                      const float *b)
{
    const bool add = g->add || depth > 0;
    for (int row = 0; row < g->m; row += ESP_GEMM_ROWS) {
        const int m = least(g->m - row, ESP_GEMM_ROWS);
        for (int i = 0; i < m; i += TILE_ROWS)
            pack_a(a + (size_t)i * (size_t)k, g, row + i, least(m - i, TILE_ROWS), depth, k);
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
                pack_b(b + (size_t)j * (size_t)k, g, column + j, least(n - j, ESP_PANEL), depth,
                       k);
            rows_of_c(g, column, n, depth, k, a, b);
        }
    }
}
