/* ways.c - times the two ways to multiply by quantised weights, and chooses the faster one; see
 * ways.h. */
#include "kernels/cpu/ways.h"

#include <math.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/cpu/cpu.h"

/* Describes the product that is timed. Its two panels of 1024 columns fit in the second-level
 * cache. A block is 32 by 32 weights. */
enum { PANELS = 2, COLUMNS = 1024, BLOCKS = PANELS * COLUMNS / 32, ROUNDS = 5, ENOUGH = 8 };

/* Products with these numbers of rows are timed. For any other number of rows, the time of the
 * next larger number in this list is used. */
static const int sizes[ESP_WAY_SIZES] = {1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64};

static int size_of(int rows)
{
    int i = 0;
    while (i < ESP_WAY_SIZES - 1 && sizes[i] < rows)
        i++;
    return i;
}

bool esp_cpu_takes_tiles(const struct esp_way_times *times, enum esp_dtype dtype, bool bytes,
                         int rows)
{
    const double *ns = times->ns[dtype][bytes][size_of(rows)];
    if (ns[ESP_WAY_VECTORS] > 0 && ns[ESP_WAY_TILES] > 0)
        return ns[ESP_WAY_TILES] < ns[ESP_WAY_VECTORS];
    return rows >= ENOUGH;
}

/* A product to be timed. Its weights are arbitrary bytes, but without subnormal scales. */
struct example {
    struct esp_packed w;
    struct esp_matmul product;
    char *data;
    float *bias, *x, *y;
    struct esp_cut *cut;
};

static bool open_example(struct example *e, enum esp_dtype dtype, bool bytes)
{
    const int rows = sizes[ESP_WAY_SIZES - 1];
    e->w = (struct esp_packed){
        .dtype = dtype, .rows = PANELS * ESP_PANEL, .columns = COLUMNS, .panels = PANELS};
    const size_t size = PANELS * esp_cpu_panel_bytes(&e->w);
    e->w.data = e->data = esp_cpu_alloc(size, 1);
    e->w.bias = e->bias = esp_cpu_alloc(PANELS * ESP_PANEL, sizeof *e->bias);
    e->x = esp_cpu_alloc((size_t)rows * COLUMNS, sizeof *e->x);
    e->y = esp_cpu_alloc((size_t)rows * PANELS * ESP_PANEL, sizeof *e->y);
    e->cut = esp_cpu_alloc(esp_cut_count((size_t)rows, COLUMNS), sizeof *e->cut);
    if (!e->data || !e->bias || !e->x || !e->y || !e->cut)
        return false;
    memset(e->data, 0x3c, size);
    for (int i = 0; i < rows * COLUMNS; i++)
        e->x[i] = (float)(i % 113 - 56) / 56;
    e->product =
        (struct esp_matmul){.in = {.x = e->x, .stride = COLUMNS, .cut = e->cut, .bytes = bytes},
                            .y = e->y,
                            .y_stride = PANELS * ESP_PANEL};
    return true;
}

static void close_example(struct example *e)
{
    esp_cpu_free(e->data);
    esp_cpu_free(e->bias);
    esp_cpu_free(e->x);
    esp_cpu_free(e->y);
    esp_cpu_free(e->cut);
}

/* Writes how many nanoseconds each of the two ways takes per block. Each time is the minimum
 * of several rounds, in which the two ways alternate. */
static void time_rows(double ns[2], struct example *e, const struct esp_cpu_isa *isa, int rows)
{
    e->product.rows = rows;
    e->product.in.together = esp_cut_together(rows);
    for (int i = 0; i < rows; i++)
        isa->cut(&e->product.in, i, 0, COLUMNS);
    ns[0] = ns[1] = INFINITY;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        const int way = i % 2;
        e->product.tiles = way == ESP_WAY_TILES;
        const double start = esp_clock();
        isa->matmul_blocks(&e->w, 0, PANELS, &e->product);
        ns[way] = fmin(ns[way], (esp_clock() - start) * 1e9 / BLOCKS);
    }
}

bool esp_cpu_time_ways(struct esp_way_times *times, const struct esp_cpu_isa *isa,
                       enum esp_dtype dtype, bool bytes)
{
    struct example e = {.data = NULL};
    const bool opened = open_example(&e, dtype, bytes);
    for (int i = 0; i < ESP_WAY_SIZES && opened; i++)
        time_rows(times->ns[dtype][bytes][i], &e, isa, sizes[i]);
    close_example(&e);
    return opened;
}

/* ------------------------------------------------------------------ for the engine */

static bool is_complete(const struct esp_way_times *times, enum esp_dtype dtype, bool bytes)
{
    for (int i = 0; i < 2 * ESP_WAY_SIZES; i++)
        if (!(times->ns[dtype][bytes][i / 2][i % 2] > 0))
            return false;
    return true;
}

const char *esp_cpu_way_key(const struct esp_backend *backend)
{
    return ((const struct esp_cpu_backend *)backend)->way_key;
}

int esp_cpu_measure_ways(struct esp_weights *weights, struct esp_way_times *times)
{
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)weights;
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)weights->backend;
    int measured = 0;
    for (int t = 0; t < ESP_DTYPE_COUNT && cpu->isa->two_ways; t++)
        if (w->block_types >> t & 1 && !is_complete(times, (enum esp_dtype)t, w->cut_bytes))
            measured += esp_cpu_time_ways(times, cpu->isa, (enum esp_dtype)t, w->cut_bytes);
    cpu->way_times = *times;
    return measured;
}
