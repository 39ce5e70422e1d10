/* blocks.h - the layout of quantised matrices on the device.
 *
 * The outputs of a matrix are stored in tiles of 16, which tensor cores process together. A
 * tile is a row of units. A unit contains one block of the format (32 or 256 columns) for each
 * of the 16 outputs, and takes as many bytes as these blocks take in the file. In a unit, the
 * fields of the format follow each other. There are two kinds of fields:
 *   words  The bytes from which weights are unpacked. They are divided into chunks of 16 or 32
 *          bytes of every output. Lane 4 group + t of a warp needs the four-byte words t (and
 *          t + 4) of the outputs `group` and `group + 8`; these are next to each other.
 *   plain  (16, bytes): scales, minima and single bits.
 * kernels/dtype.c describes the layouts of the formats.
 */
#ifndef ESP_CUDA_BLOCKS_H
#define ESP_CUDA_BLOCKS_H

#include "kernels/cuda/cuda.h"

enum { ESP_BLOCK_COLUMNS = 32 };

struct esp_block_field {
    int from, bytes; /* first byte and number of bytes in a block of the file */
    int chunk;       /* bytes of a chunk of words, 16 or 32; 0 in a plain field */
};

/* Lists the fields of a unit. Call this first with *end = the number of fields in dtype.h, and
 * then again until it returns false. A unit contains the fields of dtype.h in reverse order,
 * and joined fields are one field. Writes to *field the field of the unit that ends with entry
 * *end - 1 of dtype.h. Then sets *end to the first entry of dtype.h that *field includes. */
static inline bool esp_block_field_before(enum esp_dtype dtype, int *end,
                                          struct esp_block_field *field)
{
    const struct esp_dtype_field *fields = esp_dtype_fields(dtype);
    int last = *end - 1, first = last;
    if (last < 0)
        return false;
    while (fields[first].kind == ESP_JOINED)
        first--;
    field->from = fields[first].from;
    field->bytes = fields[last].from + fields[last].size * fields[last].count - field->from;
    field->chunk = fields[last].kind != ESP_WEIGHTS ? 0 : field->bytes < 32 ? 16 : 32;
    *end = first;
    return true;
}

/* Returns the offset of byte `byte` of an output, counted from the beginning of the field. */
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

/* ------------------------------------------------------------------ activations */

/* The scale of 32 quantised activations of a row: an activation is scale * integer. */
struct alignas(8) esp_cuda_cut {
    float scale, less; /* less = -scale * the sum of the integers, for formats with minima */
};

/* ESP_CUT_HIGHEST is the largest exponent of a block of activations. Activations of about 2^110
 * or more become NaN, because blocks.cu could not compute with them. */
enum { ESP_CUT_WORDS = 4, ESP_CUT_HIGHEST = 237 };

/* The quantised activations that a product reads. A block of 32 columns has one uint4 for each
 * t < 4. Its four words are the high bytes of columns 4t..4t + 3, the high bytes of columns
 * 4t + 16..4t + 19, and the low bytes of the same columns. */
struct esp_cuda_cuts {
    uint4 *words;              /* (rows, blocks, ESP_CUT_WORDS) */
    struct esp_cuda_cut *cuts; /* (rows, blocks) */
    int blocks;                /* blocks in a row; 0 means that nothing is quantised */
};

static inline struct esp_cuda_cuts esp_cuda_cuts_of(const struct esp_cuda_cache *c,
                                                    size_t stride)
{
    return {(uint4 *)c->cut_words, c->cuts, (int)(stride / ESP_BLOCK_COLUMNS)};
}

/* Returns the exponent of a block, or 0 if its largest absolute value is not finite. `most`:
 * the bits of this value. */
static __device__ __forceinline__ uint32_t esp_cuda_cut_exponent(uint32_t most)
{
    const uint32_t rounded = (most + 0x1ffffu) >> 23;
    return rounded > ESP_CUT_HIGHEST ? 0 : rounded < 15 ? 15 : rounded;
}

/* Returns the integer to which `value` is quantised in a block with this exponent. */
static __device__ __forceinline__ int esp_cuda_cut_integer(uint32_t exponent, float value)
{
    const float up = exponent ? __uint_as_float((268 - exponent) << 23) : 0.0f;
    /* Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. */
    const float shifted = __fmaf_rn(exponent ? value : 0.0f, up, 12582912.0f);
    return (int)(__float_as_uint(shifted) - 0x4b400000u);
}

/* Returns the scale of a block with this exponent. `sum` is the sum of the block's integers. */
static __device__ __forceinline__ struct esp_cuda_cut esp_cuda_cut_scale(uint32_t exponent,
                                                                         int sum)
{
    const float scale = exponent ? __uint_as_float((exponent - 14) << 23)
                                 : __uint_as_float(0x7fc00000u); /* NaN */
    return {scale, -__fmul_rn((float)sum, scale)};
}

/* Quantises block `block` of a row. A warp calls this, and each lane passes one number. */
static __device__ __forceinline__ void esp_cuda_cut_block(const struct esp_cuda_cuts &cuts,
                                                          int row, int block, float value)
{
    const int lane = threadIdx.x % ESP_WARP;
    const uint32_t exponent =
        esp_cuda_cut_exponent(esp_warp_max(__float_as_uint(value) & 0x7fffffffu));
    const int q = esp_cuda_cut_integer(exponent, value), high = (q + 128) >> 8;
    const size_t index = (size_t)row * cuts.blocks + block;
    char *to = (char *)(cuts.words + index * ESP_CUT_WORDS) + lane % 16 / 4 * 16 +
               lane / 16 * 4 + lane % 4;
    to[0] = (char)high;
    to[8] = (char)(q - 256 * high);
    const int sum = esp_warp_sum(q);
    if (lane == 0)
        cuts.cuts[index] = esp_cuda_cut_scale(exponent, sum);
}

/* Quantises blocks block..block+3 of a row. A warp calls this, and each lane passes four
 * consecutive numbers. `there` is true if the lane's block exists. */
static __device__ __forceinline__ void esp_cuda_cut_blocks(const struct esp_cuda_cuts &cuts,
                                                           int row, int block,
                                                           const float value[4], bool there)
{
    enum { LANES = ESP_BLOCK_COLUMNS / 4 };
    const int lane = threadIdx.x % LANES;
    const size_t index = (size_t)row * cuts.blocks + block + threadIdx.x % ESP_WARP / LANES;
    uint32_t most = 0, high = 0, low = 0;
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t bits = __float_as_uint(value[i]) & 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
        const uint32_t other = __shfl_xor_sync(ESP_ALL_LANES, most, step);
        most = other > most ? other : most;
    }
    const uint32_t exponent = esp_cuda_cut_exponent(most);
    for (int i = 0; i < 4; i++) {
        const int q = esp_cuda_cut_integer(exponent, value[i]), upper = (q + 128) >> 8;
        high |= ((uint32_t)upper & 255) << 8 * i;
        low |= ((uint32_t)(q - 256 * upper) & 255) << 8 * i;
        sum += q;
    }
    for (int step = LANES / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(ESP_ALL_LANES, sum, step);
    if (!there)
        return;
    uint32_t *to = (uint32_t *)(cuts.words + index * ESP_CUT_WORDS + lane % 4) + lane / 4;
    to[0] = high;
    to[2] = low;
    if (lane == 0)
        cuts.cuts[index] = esp_cuda_cut_scale(exponent, sum);
}

/* Returns whether the attention kernel of a layer quantises its output for the next product. It
 * does not do so if a gate changes the output first. */
static inline bool esp_cuda_attention_cuts(const struct esp_cuda_cache *c, int layer)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    return esp_cuda_weights_of(c)->blocks && d->head_dim % ESP_BLOCK_COLUMNS == 0 &&
           !d->layer[layer].attention_gate.data;
}

/* ------------------------------------------------------------------ weights */

/* Packs 16 quantised rows of `columns` numbers into a tile. `rows` contains the rows as the
 * file stores them. */
void esp_cuda_pack_tile(enum esp_dtype dtype, int columns, const char *rows, char *tile);

#endif
