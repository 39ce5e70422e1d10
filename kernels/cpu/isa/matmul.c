/* matmul.c - computes matrix products with float weights. These products take nearly all of the
 * time of a pass.
 *
 * Each output is a chain of fused multiply-adds over the inputs in order, starting from the
 * bias. One loop over the inputs computes a tile, which has rows * panels * 32 such chains in
 * registers. The chains are independent, so the shape of the tile changes only the speed. For
 * the same reason a row's result does not depend on its batch.
 *
 * With one row, every weight is used only once, so memory limits the speed. Several panels are
 * then computed at the same time: this gives enough independent chains to hide the latency of
 * the multiply-add. With many rows, a panel stays in the nearest cache while the tiles of all
 * rows use it.
 */
#include "kernels/cpu/isa/parts.h"

/* These constants limit the shapes of tiles. A tile has at most TILE_ROWS rows. If it has m
 * rows, it has at most TILE_PANELS(m) panels. */
#if ESP_SIMD == 3
enum { TILE_ROWS = 12 };
#define TILE_PANELS(m) ((m) <= 2 ? 4 : (m) <= 6 ? 2 : 1)
#else
enum { TILE_ROWS = 3 };
#define TILE_PANELS(m) ((m) == 1 ? 2 : 1)
#endif
enum { PREFETCH = 1024 }; /* how many bytes ahead weights are prefetched in each panel */

V16 size_t panel_bytes(const struct esp_packed *w, const enum esp_dtype dtype)
{
    return (size_t)w->columns * ESP_PANEL * (dtype == ESP_F32 ? 4 : 2);
}

V16 void load_pair(const char *p, const enum esp_dtype dtype, struct v16 *low, struct v16 *high)
{
    if (dtype == ESP_BF16) {
        v16_load_bf16_pair((const uint32_t *)p, low, high);
    } else if (dtype == ESP_F16) {
        *low = v16_load_f16((const uint16_t *)p);
        *high = v16_load_f16((const uint16_t *)p + ESP_LANES);
    } else {
        *low = v16_load((const float *)p);
        *high = v16_load((const float *)p + ESP_LANES);
    }
}

V16 float *output(const struct esp_matmul *p, int row, int panel)
{
    size_t y_row = (size_t)(p->y_row ? p->y_row[row] : row);
    return p->y + y_row * p->y_stride + (size_t)panel * ESP_PANEL;
}

/* Multiplies rows row..row+m-1 by panels panel..panel+n-1. Callers pass constants for m, n and
 * dtype, so that the compiler makes a separate version for each shape. */
V16 void tile(const struct esp_packed *w, const enum esp_dtype dtype, int panel, const int n,
              const struct esp_matmul *p, int row, const int m)
{
    const size_t step = ESP_PANEL * (dtype == ESP_F32 ? 4 : 2), size = panel_bytes(w, dtype);
    const char *data = (const char *)w->data + (size_t)panel * size;
    const float *x = p->in.x + (size_t)row * p->in.stride;
    const size_t x_stride = p->in.stride;
    const int columns = w->columns;
    struct v16 sum[TILE_ROWS][4][2];

#pragma GCC unroll 12
    for (int j = 0; j < n; j++) {
        const float *bias = w->bias + (size_t)(panel + j) * ESP_PANEL;
#pragma GCC unroll 12
        for (int i = 0; i < m; i++) {
            sum[i][j][0] = v16_load(bias);
            sum[i][j][1] = v16_load(bias + ESP_LANES);
        }
    }
    for (int c = 0; c < columns; c++) {
#pragma GCC unroll 12
        for (int j = 0; j < n; j++) {
            struct v16 low, high;
            load_pair(data + (size_t)j * size, dtype, &low, &high);
            __builtin_prefetch(data + (size_t)j * size + PREFETCH);
#pragma GCC unroll 12
            for (int i = 0; i < m; i++) {
                struct v16 input = v16_set(x[(size_t)i * x_stride + (size_t)c]);
                sum[i][j][0] = v16_fma(input, low, sum[i][j][0]);
                sum[i][j][1] = v16_fma(input, high, sum[i][j][1]);
            }
        }
        data += step;
    }
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < n; j++) {
            float *y = output(p, row + i, panel + j);
            if (p->add) {
                sum[i][j][0] = v16_add(v16_load(y), sum[i][j][0]);
                sum[i][j][1] = v16_add(v16_load(y + ESP_LANES), sum[i][j][1]);
            }
            v16_store(y, sum[i][j][0]);
            v16_store(y + ESP_LANES, sum[i][j][1]);
        }
    }
}

V16 void tile_rows(const struct esp_packed *w, const enum esp_dtype dtype, int panel,
                   const int n, const struct esp_matmul *p, int row, int m)
{
    switch (m) {
#define CASE(rows)                                                                             \
    case rows:                                                                                 \
        if (rows <= TILE_ROWS && n <= TILE_PANELS(rows))                                       \
            tile(w, dtype, panel, n, p, row, rows <= TILE_ROWS ? rows : 1);                    \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
#undef CASE
    }
}

/* Multiplies all rows by panels begin..end-1. Divides the rows and panels into tiles that have
 * nearly equal numbers of rows and nearly equal numbers of panels. */
V16 void panels(const struct esp_packed *w, const enum esp_dtype dtype, int begin, int end,
                const struct esp_matmul *p)
{
    int tiles = (p->rows + TILE_ROWS - 1) / TILE_ROWS;
    int height = (p->rows + tiles - 1) / tiles;
    int walks = (end - begin + TILE_PANELS(height) - 1) / TILE_PANELS(height);
    for (int panel = begin, n; panel < end; panel += n, walks--) {
        n = (end - panel + walks - 1) / walks;
        for (int row = 0, m; row < p->rows; row += m) {
            m = p->rows - row < height ? p->rows - row : height;
            if (n == 4)
                tile_rows(w, dtype, panel, 4, p, row, m);
            else if (n == 3)
                tile_rows(w, dtype, panel, 3, p, row, m);
            else if (n == 2)
                tile_rows(w, dtype, panel, 2, p, row, m);
            else
                tile_rows(w, dtype, panel, 1, p, row, m);
        }
    }
}

void ISA(matmul)(const struct esp_packed *w, int begin, int end, const struct esp_matmul *p)
{
    if (w->dtype == ESP_BF16)
        panels(w, ESP_BF16, begin, end, p);
    else if (w->dtype == ESP_F16)
        panels(w, ESP_F16, begin, end, p);
    else
        panels(w, ESP_F32, begin, end, p);
}
