/* block_formats.h - unpacks quantised weights in kernels. For each format, it says where in a
 * unit (blocks.h) a lane finds the integers and scales that it multiplies.
 *
 * blocks.cu multiplies on tensor cores, and one_row.cu multiplies without them. Both compute
 * the same integers and add the same floats in the same order, so their results are
 * bit-identical.
 */
#ifndef ESP_CUDA_BLOCK_FORMATS_H
#define ESP_CUDA_BLOCK_FORMATS_H

#include "kernels/cuda/blocks.h"
#include "kernels/cuda/tiled_product.h"

/* Holds the weights of 32 columns for a lane's outputs `group` and `group + 8`. The weights are
 * bytes in the order that esp_mma_s8() needs, and are multiplied by 2^SHIFT of the format. */
struct esp_block_words {
    uint32_t a[4];
};

/* Holds the scales for 32 columns of an output. `scale` is divided by 2^SHIFT of the format.
 * Depending on the format, `more` is the minimum, the scale of the last 16 columns, or unused.
 */
struct esp_block_scales {
    float scale, more;
};

static __device__ __forceinline__ float half_of(uint32_t bits)
{
    const uint16_t low = (uint16_t)bits;
    esp_f16 half;
    memcpy(&half, &low, sizeof half);
    return esp_to_float(half);
}

static __device__ __forceinline__ float half_at(const char *p, int output)
{
    return half_of(reinterpret_cast<const uint16_t *>(p)[output]);
}

/* Returns 16-byte word number `i` of a unit in shared memory. */
static __device__ __forceinline__ uint4 words_at(const char *unit, int i)
{
    return esp_shared_get(reinterpret_cast<const uint4 *>(unit) + i);
}

/* Unpacks half-bytes of Q4_K, Q5_K or Q6_K, and multiplies them by 2^up. `shift` is 0 for the
 * low halves and 4 for the high halves. */
static __device__ __forceinline__ void halves(struct esp_block_words *u, uint4 both, int shift,
                                              int up)
{
    const uint32_t four = 0x0f0f0f0fu;
    u->a[0] = (both.x >> shift & four) << up;
    u->a[2] = (both.y >> shift & four) << up;
    u->a[1] = (both.z >> shift & four) << up;
    u->a[3] = (both.w >> shift & four) << up;
}

/* Adds higher bits to unpacked half-bytes. The higher bits are those that `shift` and `mask`
 * select from `bits`. They become bit 4 and, if there are two, bit 5 of each weight. The
 * weights are already multiplied by 2^up. */
static __device__ __forceinline__ void add_bits(struct esp_block_words *u, uint4 bits,
                                                int shift, uint32_t mask, int up)
{
    u->a[0] |= (bits.x >> shift & mask) << (4 + up);
    u->a[2] |= (bits.y >> shift & mask) << (4 + up);
    u->a[1] |= (bits.z >> shift & mask) << (4 + up);
    u->a[3] |= (bits.w >> shift & mask) << (4 + up);
}

/* Unpacks half-bytes of Q4_0 and similar formats, which store 32 columns in 16 bytes, and
 * multiplies them by 2^up. */
static __device__ __forceinline__ void small_halves(struct esp_block_words *u, uint2 both,
                                                    int up)
{
    const uint32_t four = 0x0f0f0f0fu;
    u->a[0] = (both.x & four) << up;
    u->a[2] = (both.x >> 4 & four) << up;
    u->a[1] = (both.y & four) << up;
    u->a[3] = (both.y >> 4 & four) << up;
}

/* Subtracts 128 from every byte. This turns weights that are shifted up to the highest bit into
 * signed weights. */
static __device__ __forceinline__ void make_signed(struct esp_block_words *u)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        u->a[i] ^= 0x80808080u;
}

/* Moves bit i of `bits` to the highest bit of byte i of the result, for i = 0 to 3. */
static __device__ __forceinline__ uint32_t spread(uint32_t bits)
{
    return (bits & 15) * 0x10204080u & 0x80808080u;
}

/* Replaces each of the four bytes of v, which have values 0-15, by an entry of a table of 16
 * bytes. */
static __device__ __forceinline__ uint32_t look_up(uint4 table, uint32_t v)
{
    const uint32_t pairs = (v | v >> 4) & 0x00ff00ffu;
    const uint32_t all = (pairs | pairs >> 8) & 0xffffu, low_bits = all & 0x7777u;
    const uint32_t low = __byte_perm(table.x, table.y, low_bits);
    const uint32_t high = __byte_perm(table.z, table.w, low_bits);
    const uint32_t upper = (v >> 3 & 0x01010101u) * 0xffu;
    return (low & ~upper) | (high & upper);
}

/* Returns the table of weights of a type. dtype.c uses the same tables. */
static __device__ __forceinline__ uint4 table_of(enum esp_dtype dtype)
{
    const bool power = dtype == ESP_MXFP4;
    uint4 table;
    table.x = power ? 0x03020100u : 0xbfad9881u;
    table.y = power ? 0x0c080604u : 0xf6eaddcfu;
    table.z = power ? 0xfdfeff00u : 0x26190d01u;
    table.w = power ? 0xf4f8fafcu : 0x71594535u;
    return table;
}

/* Returns 2^(e - 128), where e is the byte of an output in the array `p`. */
static __device__ __forceinline__ float half_power(const char *p, int output)
{
    const uint32_t e = (uint8_t)p[output];
    return __uint_as_float(e < 2 ? 0x200000u << e : (e - 1) << 23);
}

/* Reads scale number i and minimum number i of a block of Q4_K or Q5_K (see dtype.c). `head`
 * contains d, dmin and the 12 bytes of packed scales and minima. */
static __device__ __forceinline__ struct esp_block_scales k_scales(uint4 head, int i)
{
    const uint32_t at = 8 * (i % 4);
    const uint32_t a = head.y >> at, b = head.z >> at, c = head.w >> at;
    const uint32_t s = i < 4 ? a & 63 : (c & 15) | (a >> 6 & 3) << 4;
    const uint32_t m = i < 4 ? b & 63 : (c >> 4 & 15) | (b >> 6 & 3) << 4;
    return {__fmul_rn(half_of(head.x), (float)s), __fmul_rn(half_of(head.x >> 16), (float)m)};
}

/* Says how the integers of a format become weights. ONE_SCALE: they are multiplied by one
 * scale. MINIMUM: a minimum is subtracted as well. TWO_SCALES: the first 16 and the last 16
 * columns have different scales. */
enum esp_block_form { ONE_SCALE, MINIMUM, TWO_SCALES };

/* Returns byte `byte` of an output from the field that begins at byte `from` of a unit. */
static __device__ __forceinline__ uint32_t byte_of(const char *unit, int from, int chunk,
                                                   int bytes, int output, int byte)
{
    return (uint8_t)unit[from + esp_block_at(chunk, bytes, output, byte)];
}

/* These functions return the half-byte of number i in an output's block. small_half() is for
 * formats with blocks of 32 numbers, and k_half() is for Q4_K and Q5_K. */
static __device__ __forceinline__ uint32_t small_half(const char *unit, int output, int i)
{
    return byte_of(unit, 0, 16, 16, output, i % 16) >> i / 16 * 4 & 15;
}

static __device__ __forceinline__ uint32_t k_half(const char *unit, int output, int i)
{
    return byte_of(unit, 0, 32, 128, output, i / 64 * 32 + i % 32) >> i / 32 % 2 * 4 & 15;
}

/* Defines the sizes of a unit of a format. A unit has BYTES bytes and SUBS groups of 32
 * columns. UNITS units are copied at a time. */
template <enum esp_dtype D> struct esp_block_unit;
#define X(name, gguf, numbers, bytes, ...)                                                     \
    template <> struct esp_block_unit<ESP_##name> {                                            \
        enum {                                                                                 \
            SUBS = numbers / ESP_BLOCK_COLUMNS,                                                \
            UNITS = SUBS == 1 ? 4 : 1,                                                         \
            BYTES = ESP_CUDA_TILE * (bytes)                                                    \
        };                                                                                     \
    };
ESP_BLOCK_TYPES(X)
#undef X

/* Defines how weights of format D are unpacked. words() and scales() read group `sub` of 32
 * columns from a unit in shared memory. All lanes of a warp must call words(). number() returns
 * number `i` of an output's block, as esp_dequantise() computes it. */
template <enum esp_dtype D> struct esp_block_format;

template <> struct esp_block_format<ESP_Q8_0> : esp_block_unit<ESP_Q8_0> {
    enum { SHIFT = 0 };
    static constexpr enum esp_block_form FORM = ONE_SCALE;
    static __device__ __forceinline__ void words(struct esp_block_words *u, const char *unit,
                                                 int lane, int)
    {
        const uint4 words = words_at(unit, lane);
        u->a[0] = words.x;
        u->a[2] = words.y;
        u->a[1] = words.z;
        u->a[3] = words.w;
    }
    static __device__ __forceinline__ struct esp_block_scales scales(const char *unit,
                                                                     int output, int)
    {
        return {half_at(unit + 512, output), 0.0f};
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        return __fmul_rn(half_at(unit + 512, output),
                         (float)(int8_t)byte_of(unit, 0, 32, 32, output, i));
    }
};

/* Unpacks the formats whose blocks have 32 half-bytes in 16 bytes, followed by the scale. For
 * Q4_0, a weight is the half-byte minus 8. For the other formats, it is an index into a
 * table. */
template <enum esp_dtype D> struct esp_block_format_of_halves : esp_block_unit<D> {
    enum { SHIFT = D == ESP_Q4_0 ? 4 : 0 };
    static constexpr enum esp_block_form FORM = ONE_SCALE;
    static __device__ __forceinline__ float scale(const char *unit, int output)
    {
        return D == ESP_MXFP4 ? half_power(unit + 256, output) : half_at(unit + 256, output);
    }
    static __device__ __forceinline__ void words(struct esp_block_words *u, const char *unit,
                                                 int lane, int)
    {
        small_halves(u, esp_shared_get(reinterpret_cast<const uint2 *>(unit) + lane), SHIFT);
        if constexpr (D == ESP_Q4_0) {
            make_signed(u);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                u->a[i] = look_up(table_of(D), u->a[i]);
        }
    }
    static __device__ __forceinline__ struct esp_block_scales scales(const char *unit,
                                                                     int output, int)
    {
        return {__fmul_rn(scale(unit, output), 1.0f / (1 << SHIFT)), 0.0f};
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        const int half = (int)small_half(unit, output, i);
        const int q = D == ESP_Q4_0 ? half - 8 : (int8_t)(look_up(table_of(D), half) & 255);
        return __fmul_rn(scale(unit, output), (float)q);
    }
};

template <> struct esp_block_format<ESP_Q4_0> : esp_block_format_of_halves<ESP_Q4_0> {
};
template <> struct esp_block_format<ESP_IQ4_NL> : esp_block_format_of_halves<ESP_IQ4_NL> {
};
template <> struct esp_block_format<ESP_MXFP4> : esp_block_format_of_halves<ESP_MXFP4> {
};

template <> struct esp_block_format<ESP_Q5_0> : esp_block_unit<ESP_Q5_0> {
    enum { SHIFT = 3 };
    static constexpr enum esp_block_form FORM = ONE_SCALE;
    static __device__ __forceinline__ void words(struct esp_block_words *u, const char *unit,
                                                 int lane, int)
    {
        small_halves(u, esp_shared_get(reinterpret_cast<const uint2 *>(unit) + lane), SHIFT);
        for (int i = 0; i < 2; i++) {
            const int output = lane / 4 + 8 * i;
            const uint32_t fifth =
                reinterpret_cast<const uint32_t *>(unit + 256)[output] >> 4 * (lane % 4);
            u->a[i] |= spread(fifth);
            u->a[i + 2] |= spread(fifth >> 16);
        }
        make_signed(u);
    }
    static __device__ __forceinline__ struct esp_block_scales scales(const char *unit,
                                                                     int output, int)
    {
        return {__fmul_rn(half_at(unit + 320, output), 1.0f / (1 << SHIFT)), 0.0f};
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        const uint32_t fifth = byte_of(unit, 256, 0, 4, output, i / 8) >> i % 8 & 1;
        const int q = (int)(small_half(unit, output, i) | fifth << 4) - 16;
        return __fmul_rn(half_at(unit + 320, output), (float)q);
    }
};

/* Unpacks the formats with blocks of 256 columns and with minima. A block has 128 bytes of
 * half-bytes, then, if FIFTH, 32 bytes of fifth bits, and then the scales and minima. */
template <enum esp_dtype D, bool FIFTH> struct esp_block_format_of_minima : esp_block_unit<D> {
    enum { SHIFT = 0, HEAD = FIFTH ? 2560 : 2048 };
    static constexpr enum esp_block_form FORM = MINIMUM;
    static __device__ __forceinline__ void words(struct esp_block_words *u, const char *unit,
                                                 int lane, int sub)
    {
        halves(u, words_at(unit, sub / 2 * ESP_WARP + lane), 4 * (sub % 2), 0);
        if (FIFTH)
            add_bits(u, words_at(unit, 4 * ESP_WARP + lane), sub, 0x01010101u, 0);
    }
    static __device__ __forceinline__ struct esp_block_scales scales(const char *unit,
                                                                     int output, int sub)
    {
        return k_scales(words_at(unit + HEAD, output), sub);
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        const struct esp_block_scales s =
            k_scales(reinterpret_cast<const uint4 *>(unit + HEAD)[output], i / 32);
        uint32_t q = k_half(unit, output, i);
        if (FIFTH)
            q |= (byte_of(unit, 2048, 32, 32, output, i % 32) >> i / 32 & 1) << 4;
        return __fsub_rn(__fmul_rn(s.scale, (float)q), s.more);
    }
};

template <> struct esp_block_format<ESP_Q4_K> : esp_block_format_of_minima<ESP_Q4_K, false> {
};
template <> struct esp_block_format<ESP_Q5_K> : esp_block_format_of_minima<ESP_Q5_K, true> {
};

template <> struct esp_block_format<ESP_Q6_K> : esp_block_unit<ESP_Q6_K> {
    enum { SHIFT = 2 };
    static constexpr enum esp_block_form FORM = TWO_SCALES;
    static __device__ __forceinline__ void words(struct esp_block_words *u, const char *unit,
                                                 int lane, int sub)
    {
        halves(u, words_at(unit, (sub / 4 * 2 + sub % 2) * ESP_WARP + lane), sub / 2 % 2 * 4,
               SHIFT);
        add_bits(u, words_at(unit, (4 + sub / 4) * ESP_WARP + lane), sub % 4 * 2, 0x03030303u,
                 SHIFT);
        make_signed(u);
    }
    /* All sixteen scales of an output are in one 16-byte word. The compiler loads the word only
     * once for all values of `sub`. */
    static __device__ __forceinline__ struct esp_block_scales scales(const char *unit,
                                                                     int output, int sub)
    {
        const uint4 all = words_at(unit + 3072, output);
        const uint32_t word = sub < 2 ? all.x : sub < 4 ? all.y : sub < 6 ? all.z : all.w;
        const float d = __fmul_rn(half_at(unit + 3328, output), 1.0f / (1 << SHIFT));
        return {__fmul_rn(d, (float)(int8_t)(word >> sub % 2 * 16 & 255)),
                __fmul_rn(d, (float)(int8_t)(word >> (sub % 2 * 16 + 8) & 255))};
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        const int sub = i / 32, k = i % 32, from = 64 * (sub / 4) + 32 * (sub % 2) + k;
        const uint32_t low = byte_of(unit, 0, 32, 128, output, from) >> sub / 2 % 2 * 4 & 15;
        const uint32_t high =
            byte_of(unit, 2048, 32, 64, output, sub / 4 * 32 + k) >> sub % 4 * 2 & 3;
        const float s = (float)(int8_t)byte_of(unit, 3072, 0, 16, output, i / 16);
        return __fmul_rn(__fmul_rn(half_at(unit + 3328, output), s),
                         (float)((int)(low | high << 4) - 32));
    }
};

/* ------------------------------------------------------------------ sums */

/* Adds the product of 32 columns of an output and a row to a sum. `dot` is the dot product of
 * the integers as a float, multiplied by the scale of the activations. With TWO_SCALES, `dot`
 * is for the first 16 columns, and `last` is for the last 16. */
template <enum esp_dtype D>
static __device__ __forceinline__ float esp_block_add(float sum, float dot, float last,
                                                      const struct esp_block_scales &s,
                                                      const struct esp_cuda_cut &c)
{
    sum = __fmaf_rn(dot, s.scale, sum);
    if (esp_block_format<D>::FORM == MINIMUM)
        return __fmaf_rn(s.more, c.less, sum);
    if (esp_block_format<D>::FORM == TWO_SCALES)
        return __fmaf_rn(last, s.more, sum);
    return sum;
}

/* ------------------------------------------------------------------ matrices */

enum { ESP_BLOCK_MATRICES = 3 };

/* Describes one matrix of a product: its weights, where its outputs are written, and how many
 * blocks of threads compute them. */
struct esp_block_matrix {
    const char *w;
    const float *bias;
    float *y;
    size_t y_stride;
    int outputs, blocks;
};

/* Arguments of a product's kernel. It multiplies up to ESP_BLOCK_MATRICES matrices of one type
 * by the same activations, for example the matrices for queries, keys and values. */
struct esp_block_args {
    struct esp_block_matrix matrix[ESP_BLOCK_MATRICES];
    int matrices, units;             /* units: number of units in a tile */
    const uint4 *words;              /* (rows, blocks, 4) */
    const struct esp_cuda_cut *cuts; /* (rows, blocks) */
    int blocks;
    enum esp_cuda_epilogue epilogue; /* STORE, ADD or LOGITS */
    struct esp_cuda_mixture mixture;
};

/* Describes the part of a product that a block of threads computes: `tiles` tiles of 16 outputs
 * of a matrix, beginning with output number `first`. */
struct esp_block_part {
    struct esp_block_matrix of;
    int first, tiles;
};

/* Returns the part that block blockIdx.x computes. The tiles of a matrix are divided evenly
 * among its blocks. */
static __device__ __forceinline__ struct esp_block_part
esp_block_part_of(const struct esp_block_args &a)
{
    int i = 0, block = blockIdx.x;
    for (; i + 1 < a.matrices && block >= a.matrix[i].blocks; i++)
        block -= a.matrix[i].blocks;
    const int tiles = (a.matrix[i].outputs + ESP_CUDA_TILE - 1) / ESP_CUDA_TILE;
    const int each = tiles / a.matrix[i].blocks, more = tiles % a.matrix[i].blocks;
    const int first = block * each + (block < more ? block : more);
    return {a.matrix[i], first * ESP_CUDA_TILE, each + (block < more)};
}

/* ------------------------------------------------------------------ copies of units */

/* Begins to copy the weights of the warp's next step to `to` (UNITS, HIGH, unit). Copies UNITS
 * units for each tile of the block, with the indices unit, unit + apart, unit + 2 apart, ... */
template <enum esp_dtype D, int HIGH>
static __device__ __forceinline__ void esp_block_begin_step(char *to, const char *w, int tiles,
                                                            int units, int unit, int apart)
{
    typedef struct esp_block_format<D> F;
    const int sixteens = F::BYTES / 16, lane = threadIdx.x % ESP_WARP;
#pragma unroll
    for (int i = 0; i < F::UNITS; i++)
#pragma unroll
        for (int h = 0; h < HIGH; h++) {
            const int at = unit + i * apart;
            const bool there = at < units && h < tiles;
            const char *from =
                w + (there ? ((size_t)h * units + at) * F::BYTES : 0) + 16 * lane;
            char *place = to + (i * HIGH + h) * F::BYTES + 16 * lane;
#pragma unroll
            for (int k = 0; k < sixteens; k += ESP_WARP)
                if (k + ESP_WARP <= sixteens || lane < sixteens - k)
                    esp_copy_begin(place + 16 * k, from + 16 * k, there);
        }
}

/* ------------------------------------------------------------------ writing results */

/* Adds the bias to an output of a row and writes the result. Does nothing for rows and outputs
 * that do not exist. `sum` is the sum over the warps. */
static __device__ __forceinline__ void esp_block_put(const struct esp_cuda_arrays &at,
                                                     enum esp_cuda_epilogue epilogue,
                                                     const struct esp_block_matrix &m,
                                                     const struct esp_cuda_span &s, int row,
                                                     int output, float sum)
{
    if (row >= s.end || output >= m.outputs)
        return;
    if (m.bias)
        sum += m.bias[s.expert * esp_cuda_pad(m.outputs, ESP_CUDA_TILE) + output];
    else
        sum += 0.0f; /* gives the same bits as a bias of zero: -0 becomes 0 */
    esp_cuda_put_output(at, epilogue, m.y, m.y_stride, row, output, sum);
}

/* Returns the kernel of one_row.cu for matrices of a type. */
const struct esp_cuda_variant<struct esp_block_args> *esp_cuda_one_row(enum esp_dtype dtype);

#endif
