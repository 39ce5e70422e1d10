/* blocks.h - quantised matrices on the device: where the bytes of a file's block lie.
 *
 * Outputs go by tiles of 16, as the tensor cores take them. A tile is a row of units; a unit
 * is one block of the format (32 or 256 columns) of each of the 16 outputs, in exactly as many
 * bytes as in the file. In a unit the fields of the format lie one after the other:
 *   words  bytes that become weights, cut into chunks of 16 or 32 bytes of every output and
 *          ordered so that lane (group, t) = 4 group + t of a warp finds its four-byte words t
 *          (and t + 4) of the outputs `group` and `group + 8` side by side;
 *   plain  (16, bytes): scales, minima and single bits.
 * The layouts of the formats are described in kernels/dtype.c.
 */
#ifndef ESP_CUDA_BLOCKS_H
#define ESP_CUDA_BLOCKS_H

#include "kernels/cuda/cuda.h"

enum { ESP_BLOCK_COLUMNS = 32, ESP_BLOCK_FIELDS = 4 };

struct esp_block_field {
    int from, bytes; /* in a block of the file */
    int chunk;       /* 16 or 32: words; 0: plain */
};

struct esp_block_layout {
    struct esp_block_field field[ESP_BLOCK_FIELDS]; /* in the order in which a unit has them */
};

static inline struct esp_block_layout esp_block_layout_of(enum esp_dtype dtype)
{
    switch (dtype) {
    case ESP_Q8_0:
        return {{{2, 32, 32}, {0, 2, 0}}};
    case ESP_Q4_0:
    case ESP_IQ4_NL:
        return {{{2, 16, 16}, {0, 2, 0}}};
    case ESP_MXFP4:
        return {{{1, 16, 16}, {0, 1, 0}}};
    case ESP_Q5_0:
        return {{{6, 16, 16}, {2, 4, 0}, {0, 2, 0}}};
    case ESP_Q4_K:
        return {{{16, 128, 32}, {0, 16, 0}}};
    case ESP_Q5_K:
        return {{{48, 128, 32}, {16, 32, 32}, {0, 16, 0}}};
    default: /* ESP_Q6_K */
        return {{{0, 128, 32}, {128, 64, 32}, {192, 16, 0}, {208, 2, 0}}};
    }
}

/* Where byte `byte` of a field lies in the unit, behind the field's beginning. */
static __host__ __device__ __forceinline__ int esp_block_at(int chunk, int bytes, int output,
                                                            int byte)
{
    const int group = output % 8, below = output / 8;
    if (chunk == 0)
        return output * bytes + byte;
    const int word = byte % chunk / 4, t = word % 4, more = word / 4, wide = chunk / 16;
    return byte / chunk * chunk * ESP_CUDA_TILE + (4 * group + t) * 8 * wide +
           below * 4 * wide + more * 4 + byte % 4;
}

/* Turns 16 rows of `columns` numbers as the file has them, one below the other, into a tile. */
void esp_cuda_pack_tile(enum esp_dtype dtype, int columns, const char *rows, char *tile);

#endif
