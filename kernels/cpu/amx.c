/* amx.c - matrix products with BF16 weights on Intel's tile unit (AMX). All other arithmetic
 * uses AVX-512 with VNNI, which every processor with AMX has.
 *
 * The tile unit multiplies BF16 by BF16 and adds in float32. It is sixteen times as fast as
 * float32 products with AVX-512. Weights stay BF16. An activation is split into two BF16 parts,
 * x = high + low, each rounded to nearest. The error is below 2^-18 of x, which is about the
 * rounding error of adding a thousand products in float32. A batch of n vectors becomes a batch
 * of 2 n rows, and an output is the sum of its two rows. A small batch then takes little longer
 * than one vector, which suits verifying a tree in one pass. Vectors are split once, when they
 * are computed, for all products that read them.
 *
 * Rows of a tile are independent, so results do not depend on the batch. But the tile unit adds
 * in a different order, so the last bits differ from the results of other instruction sets.
 *
 * Products with quantised blocks are in isa/blocks.c.
 *
 * Weights are packed in tiles (esp_packed.pairs): for each panel and 32 inputs, there are two
 * tiles of 16 outputs; a tile is (16 pairs of inputs, 16 outputs, 2). Parts are stored in
 * tiles, too (esp_vectors): for every 16 parts and 32 inputs, a tile is (16 parts, 32 inputs);
 * part k of vector i has index 2 i + k.
 */
#include "kernels/cpu/isa/parts.h"
#include "kernels/cpu/isa/tiles.h"

enum {
    TILE_FLOATS = 256,
    BLOCK = 32,
    PARTS = 2,
    TWO_TILES = 2 * TILE_ROWS / PARTS, /* number of vectors whose parts fill two tiles */
    AHEAD = 8192                       /* how far ahead weights are prefetched, in bytes */
};

/* Returns the size of a group of parts in bytes. Parts are stored in groups of 16. A group is
 * as wide as a full vector of the buffer (v->stride), even if the rows that are read are
 * narrower. */
static inline size_t group_bytes(const struct esp_vectors *v)
{
    return v->stride / BLOCK * TILE_BYTES;
}

/* Returns the tiles of the group that contains the first part of vector `row`. */
static inline char *group_of(const struct esp_vectors *v, int row)
{
    return (char *)v->parts + (size_t)(PARTS * row / TILE_ROWS) * group_bytes(v);
}

void OWN(split)(const struct esp_vectors *v, int row, int begin, int end)
{
    const float *x = v->x + (size_t)row * v->stride;
    uint16_t *line = (uint16_t *)(void *)group_of(v, row) + PARTS * row % TILE_ROWS * BLOCK;
    for (int c = begin, n; c < end; c += n) {
        const int next = (c / ESP_LANES + 1) * ESP_LANES;
        uint16_t *out = line + (size_t)(c / BLOCK) * (TILE_ROWS * BLOCK) + c % BLOCK;
        n = (next < end ? next : end) - c;
        struct v16 rest = v16_load_part(x + c, n, 0);
        for (int k = 0; k < PARTS; k++, out += BLOCK)
            rest = v16_store_bf16(out, n, rest);
    }
}

/* Prefetches the weights AHEAD bytes after b, because a product reads each weight only once. */
static inline void prefetch(const char *b)
{
    for (int line = 0; line < 2 * TILE_BYTES; line += ROW_BYTES)
        __builtin_prefetch(b + AHEAD + line);
}

static inline void clear_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* Multiplies two tiles of parts, a and a2, by one panel. Sums 0 and 1 belong to the first tile,
 * sums 2 and 3 to the second. */
static void two_by_one(const char *a, const char *a2, const char *b, int blocks)
{
    clear_sums();
    for (int i = 0; i < blocks; i++, a += TILE_BYTES, a2 += TILE_BYTES, b += 2 * TILE_BYTES) {
        prefetch(b);
        _tile_loadd(6, b, ROW_BYTES);
        _tile_loadd(4, a, ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + TILE_BYTES, ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a2, ROW_BYTES);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* Multiplies one tile of parts by one panel or, if `both`, by two consecutive panels. */
static void one_by_many(const char *a, const char *b, int blocks, const bool both)
{
    const size_t panel = (size_t)blocks * 2 * TILE_BYTES;
    clear_sums();
    for (int i = 0; i < blocks; i++, a += TILE_BYTES, b += 2 * TILE_BYTES) {
        prefetch(b);
        _tile_loadd(4, a, ROW_BYTES);
        _tile_loadd(6, b, ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + TILE_BYTES, ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        if (!both)
            continue;
        prefetch(b + panel);
        _tile_loadd(6, b + panel, ROW_BYTES);
        _tile_dpbf16ps(2, 4, 6);
        _tile_loadd(7, b + panel + TILE_BYTES, ROW_BYTES);
        _tile_dpbf16ps(3, 4, 7);
    }
}

/* Stores the four tiles of sums. Tiles 0 and 2 become the first two tiles of `sums`. Tiles 1 and
 * 3 become the two tiles that begin `half` floats later. */
static void store_sums(float *sums, size_t half)
{
    _tile_stored(0, sums, ROW_BYTES);
    _tile_stored(1, sums + half, ROW_BYTES);
    _tile_stored(2, sums + TILE_FLOATS, ROW_BYTES);
    _tile_stored(3, sums + half + TILE_FLOATS, ROW_BYTES);
}

/* Computes sixteen outputs of `rows` vectors, beginning with vector `row`: adds the sums of
 * both parts of a vector and the bias. The outputs are the first (half = 0) or the second
 * (half = 1) sixteen outputs of a panel. */
static void finish(const struct esp_packed *w, const struct esp_matmul *p, int panel, int half,
                   int row, int rows, const float *sums)
{
    const size_t at = (size_t)panel * ESP_PANEL + (size_t)half * ESP_LANES;
    const struct v16 bias = v16_load(w->bias + at);
    for (int i = 0; i < rows; i++, sums += PARTS * ESP_LANES) {
        size_t y_row = (size_t)(p->y_row ? p->y_row[row + i] : row + i);
        float *y = p->y + y_row * p->y_stride + at;
        struct v16 sum = v16_add(v16_load(sums), v16_load(sums + ESP_LANES));
        sum = v16_add(sum, bias);
        v16_store(y, p->add ? v16_add(v16_load(y), sum) : sum);
    }
}

/* Multiplies up to eight vectors, whose parts fit in one tile, by panels begin..end-1. */
static void few_rows(const struct esp_packed *w, int begin, int end, const struct esp_matmul *p,
                     int blocks)
{
    const size_t panel = (size_t)blocks * 2 * TILE_BYTES;
    float sums[4 * TILE_FLOATS] __attribute__((aligned(64)));
    for (int first = begin, n; first < end; first += n) {
        const char *b = (const char *)w->data + (size_t)first * panel;
        n = end - first < 2 ? 1 : 2;
        one_by_many(group_of(&p->in, 0), b, blocks, n == 2);
        store_sums(sums, 2 * TILE_FLOATS);
        for (int i = 0; i < n; i++)
            for (int half = 0; half < 2; half++)
                finish(w, p, first + i, half, 0, p->rows, sums + (2 * half + i) * TILE_FLOATS);
    }
}

/* Multiplies all vectors by one panel, sixteen vectors at a time. */
static void many_rows(const struct esp_packed *w, int panel, const struct esp_matmul *p,
                      int blocks)
{
    const char *b = (const char *)w->data + (size_t)panel * (size_t)blocks * 2 * TILE_BYTES;
    float sums[4 * TILE_FLOATS] __attribute__((aligned(64)));
    for (int row = 0, n; row < p->rows; row += n) {
        const char *a = group_of(&p->in, row);
        n = p->rows - row < TWO_TILES ? p->rows - row : TWO_TILES;
        if (PARTS * n > TILE_ROWS)
            two_by_one(a, a + group_bytes(&p->in), b, blocks);
        else
            one_by_many(a, b, blocks, false);
        store_sums(sums, 2 * TILE_FLOATS);
        for (int half = 0; half < 2; half++)
            finish(w, p, panel, half, row, n, sums + half * 2 * TILE_FLOATS);
    }
}

void OWN(matmul)(const struct esp_packed *w, int begin, int end, const struct esp_matmul *p)
{
    if (!w->pairs) {
        ISA(matmul)(w, begin, end, p);
        return;
    }
    const int blocks = (w->columns + BLOCK - 1) / BLOCK;
    bool few = PARTS * p->rows <= TILE_ROWS;
    configure_tiles(few ? PARTS * p->rows : TILE_ROWS, ROW_BYTES);
    if (few)
        few_rows(w, begin, end, p, blocks);
    else
        for (int panel = begin; panel < end; panel++)
            many_rows(w, panel, p, blocks);
    _tile_release();
}
