/* tiles.h - implements in C the instructions of Intel's tile unit (AMX) that the CPU backend
 * uses. An operation that would raise an exception on the processor ends the program.
 *
 * These rules are from the "Intel Architecture Instruction Set Extensions" reference. A load
 * writes zeros to the rows and columns of a tile that are not configured. A store writes only
 * configured rows and columns. In a product C += A B, C and A have the same number of rows, and
 * C and B have the same number of columns. B has a row for every four bytes of a row of A.
 */
#ifndef TEST_TILES_H
#define TEST_TILES_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct emulated_tiles {
    int rows[8], row_bytes[8];
    unsigned char byte[8][16][64];
    int configured;
};

static _Thread_local struct emulated_tiles emulated_tiles;

static inline void emulated_demand(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "emulated tiles: %s\n", what);
        abort();
    }
}

static inline void emulated_configure(const void *config)
{
    const uint8_t *c = config;
    struct emulated_tiles *t = &emulated_tiles;
    memset(t, 0, sizeof *t);
    emulated_demand(c[0] == 1, "the palette is not 1");
    for (int i = 1; i < 16; i++)
        emulated_demand(c[i] == 0, "a reserved byte of the configuration is not 0");
    for (int i = 0; i < 16; i++) {
        uint16_t bytes;
        memcpy(&bytes, c + 16 + 2 * i, sizeof bytes);
        emulated_demand(i < 8 || (bytes == 0 && c[48 + i] == 0), "there are only eight tiles");
        emulated_demand(bytes <= 64 && c[48 + i] <= 16, "a tile is too large");
        if (i < 8) {
            t->row_bytes[i] = bytes;
            t->rows[i] = c[48 + i];
        }
    }
    t->configured = 1;
}

static inline void emulated_use(int tile)
{
    const struct emulated_tiles *t = &emulated_tiles;
    emulated_demand(t->configured, "tiles are used before they are configured");
    emulated_demand(t->rows[tile] > 0 && t->row_bytes[tile] > 0, "an empty tile is used");
}

static inline void emulated_zero(int tile)
{
    emulated_use(tile);
    memset(emulated_tiles.byte[tile], 0, sizeof emulated_tiles.byte[tile]);
}

static inline void emulated_load(int tile, const void *from, size_t stride)
{
    const char *row = from;
    emulated_zero(tile);
    for (int i = 0; i < emulated_tiles.rows[tile]; i++)
        memcpy(emulated_tiles.byte[tile][i], row + (size_t)i * stride,
               (size_t)emulated_tiles.row_bytes[tile]);
}

static inline void emulated_store(int tile, void *to, size_t stride)
{
    char *row = to;
    emulated_use(tile);
    for (int i = 0; i < emulated_tiles.rows[tile]; i++)
        memcpy(row + (size_t)i * stride, emulated_tiles.byte[tile][i],
               (size_t)emulated_tiles.row_bytes[tile]);
}

static inline void emulated_shapes(int c, int a, int b)
{
    const struct emulated_tiles *t = &emulated_tiles;
    emulated_use(a);
    emulated_use(b);
    emulated_use(c);
    emulated_demand(a != b && b != c && a != c, "two operands are the same tile");
    emulated_demand(t->row_bytes[a] % 4 == 0 && t->row_bytes[b] % 4 == 0,
                    "the length of a row is not a multiple of four bytes");
    emulated_demand(t->rows[a] == t->rows[c], "A and C have different numbers of rows");
    emulated_demand(t->row_bytes[b] == t->row_bytes[c],
                    "B and C have different numbers of columns");
    emulated_demand(t->rows[b] == t->row_bytes[a] / 4,
                    "B does not have a row for every four bytes of a row of A");
}

/* C += A B for signed bytes. Each row of B adds four products to a sum of 32 bits. */
static inline void emulated_dpbssd(int c, int a, int b)
{
    struct emulated_tiles *t = &emulated_tiles;
    emulated_shapes(c, a, b);
    for (int m = 0; m < t->rows[c]; m++) {
        int32_t sum[16];
        memcpy(sum, t->byte[c][m], sizeof sum);
        for (int k = 0; k < t->rows[b]; k++) {
            const int8_t *x = (const int8_t *)&t->byte[a][m][4 * k];
            int8_t w[16][4];
            memcpy(w, t->byte[b][k], sizeof w);
            for (int n = 0; n < 16; n++)
                sum[n] += x[0] * w[n][0] + x[1] * w[n][1] + x[2] * w[n][2] + x[3] * w[n][3];
        }
        memcpy(t->byte[c][m], sum, (size_t)t->row_bytes[c]);
    }
}

static inline float emulated_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* C += A B for BF16. Adds up the products of even and of odd columns of A separately, then adds
 * both sums to C. Unlike this function, the processor treats subnormal numbers as 0. */
static inline void emulated_dpbf16ps(int c, int a, int b)
{
    struct emulated_tiles *t = &emulated_tiles;
    emulated_shapes(c, a, b);
    for (int m = 0; m < t->rows[c]; m++) {
        float sum[16], even[16] = {0}, odd[16] = {0};
        memcpy(sum, t->byte[c][m], sizeof sum);
        for (int k = 0; k < t->rows[b]; k++) {
            uint32_t x, w[16];
            memcpy(&x, &t->byte[a][m][4 * k], sizeof x);
            memcpy(w, t->byte[b][k], sizeof w);
            const float first = emulated_float(x << 16);
            const float second = emulated_float(x & 0xffff0000u);
            for (int n = 0; n < 16; n++) {
                even[n] = fmaf(first, emulated_float(w[n] << 16), even[n]);
                odd[n] = fmaf(second, emulated_float(w[n] & 0xffff0000u), odd[n]);
            }
        }
        for (int n = 0; n < 16; n++)
            sum[n] += even[n] + odd[n];
        memcpy(t->byte[c][m], sum, (size_t)t->row_bytes[c]);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) emulated_configure(config)
#define _tile_release() ((void)(emulated_tiles.configured = 0))
#define _tile_zero(tile) emulated_zero(tile)
#define _tile_loadd(tile, from, stride) emulated_load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated_store(tile, to, stride)
#define _tile_dpbssd(c, a, b) emulated_dpbssd(c, a, b)
#define _tile_dpbf16ps(c, a, b) emulated_dpbf16ps(c, a, b)

#endif
