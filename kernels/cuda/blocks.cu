/* blocks.cu - products with quantised weights, which are never expanded in memory.
 *
 * As on the CPU (kernels/cpu/isa/blocks.c), the activations of 32 columns become 16-bit
 * integers with one power of two as their scale, and the weights of 32 columns are small
 * integers with one scale, or with two for 16 columns each. An integer is divided into two
 * signed bytes, x = 256 high + low, and int8 tensor cores multiply both with the weights. So
 * the dot product of a block is an exact integer, the same as on the CPU. Then
 *
 *     sum <- fma(integer, scale of the weights * scale of the activations, sum)
 *     sum <- fma(minimum of the weights, -total of the activations, sum)    Q4_K, Q5_K
 *
 * A block of threads computes 1, 2 or 4 tiles of 16 outputs. Each of its 8 warps processes
 * every eighth unit (blocks.h) in ascending order, and their sums are added in the order of
 * the warps. This order depends only on the format and the width, so a row's results are
 * bit-identical in a batch of any size, in both modes. It is not the order of the CPU, which
 * adds all blocks one after the other. A warp copies its next units to shared memory in the
 * background; weights are read once for 64 rows. As in matmul.cu, a block with more tiles
 * reads the activations less often.
 *
 * In a model with quantised weights activations are float32, except the output of attention.
 * Products with matrices that are not quantised read the activations rounded to 16 bits.
 */
#include "kernels/cuda/blocks.h"

#include "kernels/cuda/activation.h"
#include "kernels/cuda/tiled_product.h"

#include <cstring>

enum { WARPS = ESP_PRODUCT_WARPS, THREADS = ESP_PRODUCT_THREADS, COLUMNS = ESP_PRODUCT_ROWS };

void esp_cuda_pack_tile(enum esp_dtype dtype, int columns, const char *rows, char *tile)
{
    const size_t block = esp_dtype_block_bytes(dtype);
    const size_t row_bytes = esp_dtype_row_bytes(dtype, columns);
    int fields = 0;
    while (esp_dtype_fields(dtype)[fields].count)
        fields++;
    for (size_t at = 0; at < row_bytes; at += block) {
        struct esp_block_field field;
        for (int end = fields; esp_block_field_before(dtype, &end, &field);) {
            const int step = field.chunk ? 4 : field.bytes;
            for (int output = 0; output < ESP_CUDA_TILE; output++)
                for (int byte = 0; byte < field.bytes; byte += step)
                    memcpy(tile + esp_block_at(field.chunk, field.bytes, output, byte),
                           rows + output * row_bytes + at + field.from + byte, step);
            tile += ESP_CUDA_TILE * field.bytes;
        }
    }
}

/* ------------------------------------------------------------------ activations */

/* Quantises activations; a warp does 32 numbers. `each`: rows of x for each row of the pass.
 */
template <typename T>
static __global__ void cut_kernel(struct esp_cuda_arrays at, const T *x, size_t x_stride,
                                  bool wanted, int each, struct esp_cuda_cuts to)
{
    const int row = blockIdx.y, lane = threadIdx.x % ESP_WARP;
    const int block = blockIdx.x * WARPS + threadIdx.x / ESP_WARP;
    if (row >= (wanted ? at.pass->wanted : at.pass->rows * each) || block >= to.blocks)
        return;
    esp_cuda_cut_block(
        to, row, block,
        esp_to_float(x[(size_t)row * x_stride + block * ESP_BLOCK_COLUMNS + lane]));
}

/* Rounds activations to 16 bits for a matrix that is not quantised; the padding is already
 * zero. */
template <typename T>
static __global__ void narrow_kernel(struct esp_cuda_arrays at, const float *x, size_t stride,
                                     bool wanted, int each, T *out)
{
    const int row = blockIdx.y;
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (row < (wanted ? at.pass->wanted : at.pass->rows * each) && i < stride)
        out[row * stride + i] = esp_from_float<T>(x[row * stride + i]);
}

/* ------------------------------------------------------------------ the formats */

/* What a lane needs to multiply 32 columns: the bytes of its outputs `group` and `group + 8`
 * in the order of esp_mma_s8(), and for each of these two outputs the scale and, depending on
 * the format, the minimum or the scale of the last 16 columns. */
struct unpacked {
    uint32_t a[4];
    float scale[2], more[2];
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

static __device__ __forceinline__ void halves(struct unpacked *u, uint4 both, int shift)
{
    const uint32_t four = 0x0f0f0f0fu;
    u->a[0] = both.x >> shift & four;
    u->a[2] = both.y >> shift & four;
    u->a[1] = both.z >> shift & four;
    u->a[3] = both.w >> shift & four;
}

static __device__ __forceinline__ void add_bits(struct unpacked *u, uint4 bits, int shift,
                                                uint32_t mask)
{
    u->a[0] |= (bits.x >> shift & mask) << 4;
    u->a[2] |= (bits.y >> shift & mask) << 4;
    u->a[1] |= (bits.z >> shift & mask) << 4;
    u->a[3] |= (bits.w >> shift & mask) << 4;
}

/* Unpacks half-bytes of Q4_0 and similar formats, which have 32 columns in 16 bytes. */
static __device__ __forceinline__ void small_halves(struct unpacked *u, uint2 both)
{
    const uint32_t four = 0x0f0f0f0fu;
    u->a[0] = both.x & four;
    u->a[2] = both.x >> 4 & four;
    u->a[1] = both.y & four;
    u->a[3] = both.y >> 4 & four;
}

/* Moves four bits to the fifth bit of four bytes. */
static __device__ __forceinline__ uint32_t spread(uint32_t bits)
{
    return (bits & 1) << 4 | (bits & 2) << 11 | (bits & 4) << 18 | (bits & 8) << 25;
}

/* Replaces four bytes with values 0-15 by entries of a table of 16 bytes. */
static __device__ __forceinline__ uint32_t look_up(uint4 table, uint32_t v)
{
    const uint32_t pairs = (v | v >> 4) & 0x00ff00ffu;
    const uint32_t all = (pairs | pairs >> 8) & 0xffffu, low_bits = all & 0x7777u;
    const uint32_t low = __byte_perm(table.x, table.y, low_bits);
    const uint32_t high = __byte_perm(table.z, table.w, low_bits);
    const uint32_t upper = (v >> 3 & 0x01010101u) * 0xffu;
    return (low & ~upper) | (high & upper);
}

/* The table of a type, as in dtype.c. */
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

/* 2^(e - 128), where e is the byte of an output. */
static __device__ __forceinline__ float half_power(const char *p, int output)
{
    const uint32_t e = (uint8_t)p[output];
    return __uint_as_float(e < 2 ? 0x200000u << e : (e - 1) << 23);
}

/* Reads scale and minimum number i of Q4_K and Q5_K, see dtype.c. `head`: d, dmin and 12
 * bytes. */
static __device__ __forceinline__ void k_scales(uint4 head, int i, float *scale, float *minimum)
{
    const uint32_t at = 8 * (i % 4);
    const uint32_t a = head.y >> at, b = head.z >> at, c = head.w >> at;
    const uint32_t s = i < 4 ? a & 63 : (c & 15) | (a >> 6 & 3) << 4;
    const uint32_t m = i < 4 ? b & 63 : (c >> 4 & 15) | (b >> 6 & 3) << 4;
    *scale = __fmul_rn(half_of(head.x), (float)s);
    *minimum = __fmul_rn(half_of(head.x >> 16), (float)m);
}

/* How integers become numbers: an offset is subtracted; a minimum is added; 32 is subtracted
 * and there are two scales. */
enum form { LESS, MINIMUM, TWO_SCALES };

/* Byte `byte` of an output, in the field that begins at `from` in a unit. */
static __device__ __forceinline__ uint32_t byte_of(const char *unit, int from, int chunk,
                                                   int bytes, int output, int byte)
{
    return (uint8_t)unit[from + esp_block_at(chunk, bytes, output, byte)];
}

/* These return the half-byte of number i of an output's block: small_half() for formats with
 * blocks of 32 numbers, k_half() for Q4_K and Q5_K. */
static __device__ __forceinline__ uint32_t small_half(const char *unit, int output, int i)
{
    return byte_of(unit, 0, 16, 16, output, i % 16) >> i / 16 * 4 & 15;
}

static __device__ __forceinline__ uint32_t k_half(const char *unit, int output, int i)
{
    return byte_of(unit, 0, 32, 128, output, i / 64 * 32 + i % 32) >> i / 32 % 2 * 4 & 15;
}

/* Sizes of a unit: it has BYTES bytes and SUBS times 32 columns; UNITS units are copied at a
 * time. */
template <enum esp_dtype D> struct unit_of;
#define X(name, gguf, numbers, bytes, ...)                                                     \
    template <> struct unit_of<ESP_##name> {                                                   \
        enum {                                                                                 \
            SUBS = numbers / ESP_BLOCK_COLUMNS,                                                \
            UNITS = SUBS == 1 ? 4 : 1,                                                         \
            BYTES = ESP_CUDA_TILE * (bytes)                                                    \
        };                                                                                     \
    };
ESP_BLOCK_TYPES(X)
#undef X

/* A format. unpack(): a lane unpacks the 32 columns number `sub` of a unit, which is in shared
 * memory. number(): number `i` of an output's block, as esp_dequantise() computes it. */
template <enum esp_dtype D> struct format;

template <> struct format<ESP_Q8_0> : unit_of<ESP_Q8_0> {
    enum { OFFSET = 0 };
    static constexpr enum form FORM = LESS;
    static __device__ __forceinline__ void unpack(struct unpacked *u, const char *unit,
                                                  int lane, int)
    {
        const uint4 words = reinterpret_cast<const uint4 *>(unit)[lane];
        u->a[0] = words.x;
        u->a[2] = words.y;
        u->a[1] = words.z;
        u->a[3] = words.w;
        for (int i = 0; i < 2; i++)
            u->scale[i] = half_at(unit + 512, lane / 4 + 8 * i);
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        return __fmul_rn(half_at(unit + 512, output),
                         (float)(int8_t)byte_of(unit, 0, 32, 32, output, i));
    }
};

/* Formats with 32 columns: 16 bytes of halves, which may be indices of a table, and then the
 * scale. */
template <enum esp_dtype D, int LESS_BY> struct format_of_halves : unit_of<D> {
    enum { OFFSET = LESS_BY };
    static constexpr enum form FORM = LESS;
    static __device__ __forceinline__ uint32_t weights(uint32_t halves)
    {
        return D == ESP_Q4_0 ? halves : look_up(table_of(D), halves);
    }
    static __device__ __forceinline__ float scale(const char *unit, int output)
    {
        return D == ESP_MXFP4 ? half_power(unit + 256, output) : half_at(unit + 256, output);
    }
    static __device__ __forceinline__ void unpack(struct unpacked *u, const char *unit,
                                                  int lane, int)
    {
        small_halves(u, reinterpret_cast<const uint2 *>(unit)[lane]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            u->a[i] = weights(u->a[i]);
        for (int i = 0; i < 2; i++)
            u->scale[i] = scale(unit, lane / 4 + 8 * i);
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        const int q = (int8_t)(weights(small_half(unit, output, i)) & 255);
        return __fmul_rn(scale(unit, output), (float)(q - OFFSET));
    }
};

template <> struct format<ESP_Q4_0> : format_of_halves<ESP_Q4_0, 8> {
};
template <> struct format<ESP_IQ4_NL> : format_of_halves<ESP_IQ4_NL, 0> {
};
template <> struct format<ESP_MXFP4> : format_of_halves<ESP_MXFP4, 0> {
};

template <> struct format<ESP_Q5_0> : unit_of<ESP_Q5_0> {
    enum { OFFSET = 16 };
    static constexpr enum form FORM = LESS;
    static __device__ __forceinline__ void unpack(struct unpacked *u, const char *unit,
                                                  int lane, int)
    {
        small_halves(u, reinterpret_cast<const uint2 *>(unit)[lane]);
        for (int i = 0; i < 2; i++) {
            const int output = lane / 4 + 8 * i;
            const uint32_t fifth =
                reinterpret_cast<const uint32_t *>(unit + 256)[output] >> 4 * (lane % 4);
            u->a[i] |= spread(fifth);
            u->a[i + 2] |= spread(fifth >> 16);
            u->scale[i] = half_at(unit + 320, output);
        }
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        const uint32_t fifth = byte_of(unit, 256, 0, 4, output, i / 8) >> i % 8 & 1;
        const int q = (int)(small_half(unit, output, i) | fifth << 4) - 16;
        return __fmul_rn(half_at(unit + 320, output), (float)q);
    }
};

/* Formats with 256 columns: 128 bytes of halves, 32 bytes of fifth bits if there are any, and
 * the scales and minima. */
template <enum esp_dtype D, bool FIFTH> struct format_of_minima : unit_of<D> {
    enum { OFFSET = 0, HEAD = FIFTH ? 2560 : 2048 };
    static constexpr enum form FORM = MINIMUM;
    static __device__ __forceinline__ void unpack(struct unpacked *u, const char *unit,
                                                  int lane, int sub)
    {
        const uint4 *words = reinterpret_cast<const uint4 *>(unit);
        halves(u, words[sub / 2 * ESP_WARP + lane], 4 * (sub % 2));
        if (FIFTH)
            add_bits(u, words[4 * ESP_WARP + lane], sub, 0x01010101u);
        for (int i = 0; i < 2; i++)
            k_scales(reinterpret_cast<const uint4 *>(unit + HEAD)[lane / 4 + 8 * i], sub,
                     &u->scale[i], &u->more[i]);
    }
    static __device__ float number(const char *unit, int output, int i)
    {
        float scale, minimum;
        k_scales(reinterpret_cast<const uint4 *>(unit + HEAD)[output], i / 32, &scale,
                 &minimum);
        uint32_t q = k_half(unit, output, i);
        if (FIFTH)
            q |= (byte_of(unit, 2048, 32, 32, output, i % 32) >> i / 32 & 1) << 4;
        return __fsub_rn(__fmul_rn(scale, (float)q), minimum);
    }
};

template <> struct format<ESP_Q4_K> : format_of_minima<ESP_Q4_K, false> {
};
template <> struct format<ESP_Q5_K> : format_of_minima<ESP_Q5_K, true> {
};

template <> struct format<ESP_Q6_K> : unit_of<ESP_Q6_K> {
    enum { OFFSET = 32 };
    static constexpr enum form FORM = TWO_SCALES;
    static __device__ __forceinline__ void unpack(struct unpacked *u, const char *unit,
                                                  int lane, int sub)
    {
        const uint4 *words = reinterpret_cast<const uint4 *>(unit);
        halves(u, words[(sub / 4 * 2 + sub % 2) * ESP_WARP + lane], sub / 2 % 2 * 4);
        add_bits(u, words[(4 + sub / 4) * ESP_WARP + lane], sub % 4 * 2, 0x03030303u);
        for (int i = 0; i < 2; i++) {
            const int output = lane / 4 + 8 * i;
            const int8_t *scales = reinterpret_cast<const int8_t *>(unit + 3072) + 16 * output;
            const float d = half_at(unit + 3328, output);
            u->scale[i] = __fmul_rn(d, (float)scales[2 * sub]);
            u->more[i] = __fmul_rn(d, (float)scales[2 * sub + 1]);
        }
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

/* ------------------------------------------------------------------ the product */

struct blocks_args {
    const char *w;
    const float *bias;
    int outputs, units;              /* units: number of units in a tile */
    const uint4 *words;              /* (rows, blocks, 4) */
    const struct esp_cuda_cut *cuts; /* (rows, blocks) */
    int blocks;
    enum esp_cuda_epilogue epilogue; /* STORE, ADD, LOGITS */
    float *y;
    size_t y_stride;
    struct esp_cuda_mixture mixture;
};

/* Adds 32 columns of 16 outputs by 8 rows to a lane's four sums. */
template <enum esp_dtype D>
static __device__ __forceinline__ void add_block(const struct unpacked &u, uint4 x,
                                                 const struct esp_cuda_cut cut[2], float sum[4])
{
    int high[4] = {}, low[4] = {}, last_high[4] = {}, last_low[4] = {};
    if (format<D>::FORM == TWO_SCALES) {
        esp_mma_s8(high, u.a[0], u.a[1], 0, 0, x.x, 0);
        esp_mma_s8(low, u.a[0], u.a[1], 0, 0, x.y, 0);
        esp_mma_s8(last_high, u.a[2], u.a[3], 0, 0, x.z, 0);
        esp_mma_s8(last_low, u.a[2], u.a[3], 0, 0, x.w, 0);
    } else {
        esp_mma_s8(high, u.a[0], u.a[1], u.a[2], u.a[3], x.x, x.z);
        esp_mma_s8(low, u.a[0], u.a[1], u.a[2], u.a[3], x.y, x.w);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const struct esp_cuda_cut &c = cut[i % 2];
        const int dot = 256 * high[i] + low[i], total = c.first + c.second;
        const float scale = __fmul_rn(u.scale[i / 2], c.scale);
        if (format<D>::FORM == LESS) {
            sum[i] = __fmaf_rn((float)(dot - format<D>::OFFSET * total), scale, sum[i]);
        } else if (format<D>::FORM == MINIMUM) {
            sum[i] = __fmaf_rn((float)dot, scale, sum[i]);
            sum[i] = __fmaf_rn(u.more[i / 2], -__fmul_rn((float)total, c.scale), sum[i]);
        } else {
            const int last = 256 * last_high[i] + last_low[i];
            sum[i] = __fmaf_rn((float)(dot - format<D>::OFFSET * c.first), scale, sum[i]);
            sum[i] = __fmaf_rn((float)(last - format<D>::OFFSET * c.second),
                               __fmul_rn(u.more[i / 2], c.scale), sum[i]);
        }
    }
}

/* Adds the warps' sums and writes the block's outputs for its rows. parts: (WARPS, 16 high,
 * width). */
static __device__ void finish_tiles(const struct esp_cuda_arrays &at,
                                    const struct blocks_args &a, const float *parts,
                                    const struct esp_cuda_span &s, const float *bias, int high,
                                    int width)
{
    const int height = ESP_CUDA_TILE * high;
    for (int i = threadIdx.x; i < height * width; i += THREADS) {
        const int output = blockIdx.x * height + i % height;
        const int row = s.first + i / height;
        if (row >= s.end || output >= a.outputs)
            continue;
        const float y = esp_cuda_collect(parts, height, width, i % height, i / height) +
                        (bias ? bias[output] : 0.0f);
        esp_cuda_put_output(at, a.epilogue, a.y, a.y_stride, row, output, y);
    }
    if (a.epilogue == ESP_CUDA_LOGITS)
        esp_cuda_fill_logits(at, s, a.outputs);
}

/* Sizes for a block of HIGH tiles of outputs by GROUPS of 8 rows. */
template <enum esp_dtype D, int HIGH, int GROUPS> struct tiling {
    typedef struct format<D> F;
    static const int WIDTH = COLUMNS * GROUPS, HEIGHT = ESP_CUDA_TILE * HIGH;
    static const int STAGES = HIGH == 1 ? 3 : 2;
    static const int BLOCKS = HIGH * GROUPS > 4 ? 1 : 2; /* per multiprocessor, at least */
    static const int PIECE = F::UNITS * HIGH * F::BYTES; /* bytes that a warp copies in a step */
    static const size_t RING = (size_t)STAGES * WARPS * PIECE;
    static const size_t PARTS = (size_t)WARPS * HEIGHT * WIDTH * sizeof(float);
    static const size_t BYTES = RING > PARTS ? RING : PARTS;
};

/* Begins to copy the warp's next units, from number `unit` on, of each tile of the block to
 * `to` (UNITS, HIGH, unit). A step has UNITS units, which are WARPS apart. */
template <enum esp_dtype D, int HIGH>
static __device__ __forceinline__ void begin_step(char *to, const char *w, int tiles, int units,
                                                  int unit, int lane)
{
    typedef struct format<D> F;
    const int sixteens = F::BYTES / 16;
#pragma unroll
    for (int i = 0; i < F::UNITS; i++)
#pragma unroll
        for (int h = 0; h < HIGH; h++) {
            const int at = unit + i * WARPS;
            const bool there = at < units && h < tiles;
            const char *from = w + (there ? ((size_t)h * units + at) * F::BYTES : 0);
            char *place = to + (i * HIGH + h) * F::BYTES;
            for (int k = lane; k < sixteens; k += ESP_WARP)
                esp_copy_begin(place + 16 * k, from + 16 * k, there);
        }
}

/* Multiplies the 32 columns number `sub` of the units at `unit`, which are number `block` in
 * the matrix. */
template <enum esp_dtype D, int HIGH, int GROUPS>
static __device__ __forceinline__ void
multiply_block(const struct blocks_args &a, const struct esp_cuda_span &s, const char *unit,
               int sub, size_t block, float sum[HIGH][GROUPS][4])
{
    const int lane = threadIdx.x % ESP_WARP, group = lane / 4, t = lane % 4;
    struct unpacked u[HIGH];
#pragma unroll
    for (int h = 0; h < HIGH; h++)
        format<D>::unpack(&u[h], unit + h * format<D>::BYTES, lane, sub);
#pragma unroll
    for (int j = 0; j < GROUPS; j++) {
        const int row = s.first + COLUMNS * j;
        if (row >= s.end)
            break;
        const int mine = esp_cuda_row_of(s, row + group);
        const int left = esp_cuda_row_of(s, row + 2 * t);
        const int right = esp_cuda_row_of(s, row + 2 * t + 1);
        const uint4 x = a.words[(mine * (size_t)a.blocks + block) * ESP_CUT_WORDS + t];
        const struct esp_cuda_cut cut[2] = {a.cuts[left * (size_t)a.blocks + block],
                                            a.cuts[right * (size_t)a.blocks + block]};
#pragma unroll
        for (int h = 0; h < HIGH; h++)
            add_block<D>(u[h], x, cut, sum[h][j]);
    }
}

template <enum esp_dtype D, int HIGH, int GROUPS>
static __global__ void __launch_bounds__(THREADS, tiling<D, HIGH, GROUPS>::BLOCKS)
    blocks_kernel(struct esp_cuda_arrays at, struct blocks_args a)
{
    typedef struct format<D> F;
    typedef struct tiling<D, HIGH, GROUPS> Z;
    ESP_SHARED(char, ring); /* (WARPS, STAGES, PIECE); then (WARPS, HEIGHT, WIDTH) floats */
    const struct esp_cuda_span s =
        esp_cuda_span_of(at, a.mixture, a.epilogue == ESP_CUDA_LOGITS, Z::WIDTH);
    if (s.first >= s.end)
        return;
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const size_t padded = esp_cuda_pad(a.outputs, ESP_CUDA_TILE),
                 tiles = padded / ESP_CUDA_TILE;
    const int first = blockIdx.x * HIGH, left = (int)tiles - first;
    const char *w = a.w + (s.expert * tiles + first) * a.units * F::BYTES;
    char *mine = ring + (size_t)warp * Z::STAGES * Z::PIECE;
    float sum[HIGH][GROUPS][4] = {};

#pragma unroll
    for (int i = 0; i < Z::STAGES - 1; i++) {
        begin_step<D, HIGH>(mine + i * Z::PIECE, w, left, a.units, warp + i * F::UNITS * WARPS,
                            lane);
        esp_copy_group();
    }
    int stage = 0, next = Z::STAGES - 1;
    for (int unit = warp; unit < a.units; unit += F::UNITS * WARPS) {
        const int ahead = unit + (Z::STAGES - 1) * F::UNITS * WARPS;
        __syncwarp(); /* all lanes have read what is overwritten next */
        if (ahead < a.units)
            begin_step<D, HIGH>(mine + next * Z::PIECE, w, left, a.units, ahead, lane);
        esp_copy_group();
        esp_copy_wait<Z::STAGES - 1>();
        __syncwarp();
#pragma unroll 1
        for (int i = 0; i < F::UNITS; i++) {
            const int at_unit = unit + i * WARPS;
            if (at_unit >= a.units)
                break;
            const char *from = mine + stage * Z::PIECE + i * HIGH * F::BYTES;
#pragma unroll(HIGH > 2 ? 1 : 2)
            for (int sub = 0; sub < F::SUBS; sub++)
                multiply_block<D, HIGH, GROUPS>(a, s, from, sub,
                                                (size_t)at_unit * F::SUBS + sub, sum);
        }
        stage = stage + 1 == Z::STAGES ? 0 : stage + 1;
        next = next + 1 == Z::STAGES ? 0 : next + 1;
    }
    __syncthreads(); /* the sums are written where the units were */
    float *parts = reinterpret_cast<float *>(ring);
    esp_cuda_leave_sums<HIGH, GROUPS>(parts, sum);
    __syncthreads();
    finish_tiles(at, a, parts, s, a.bias ? a.bias + s.expert * padded : NULL, HIGH, Z::WIDTH);
}

typedef struct esp_cuda_variant<struct blocks_args> variant;

enum { VARIANTS = 4 };

template <enum esp_dtype D, int HIGH, int GROUPS> static variant variant_of()
{
    typedef struct tiling<D, HIGH, GROUPS> Z;
    return {blocks_kernel<D, HIGH, GROUPS>, Z::WIDTH, Z::HEIGHT, Z::BYTES};
}

/* The variants of the kernel for a format. For Q6_K, there are not enough registers for four
 * tiles. */
template <enum esp_dtype D> static const variant *variants_of()
{
    enum { HIGHEST = format<D>::FORM == TWO_SCALES ? 2 : 4 };
    static const variant all[VARIANTS] = {variant_of<D, 1, 1>(), variant_of<D, 1, 4>(),
                                          variant_of<D, 2, 8>(), variant_of<D, HIGHEST, 8>()};
    return all;
}

static const variant *variants(enum esp_dtype dtype)
{
    switch (dtype) {
#define X(name, ...)                                                                           \
    case ESP_##name:                                                                           \
        return variants_of<ESP_##name>();
        ESP_BLOCK_TYPES(X)
#undef X
    default:
        return NULL; /* esp_model_desc_check() refuses other types */
    }
}

static void multiply(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int rows)
{
    const struct esp_cuda_matrix *w = p->w;
    const struct blocks_args a = {(const char *)w->data,
                                  w->bias,
                                  w->rows,
                                  (int)(w->columns / esp_dtype_block(w->dtype)),
                                  (const uint4 *)c->cut_words,
                                  c->cuts,
                                  (int)(p->x_stride / ESP_BLOCK_COLUMNS),
                                  p->epilogue,
                                  p->y,
                                  p->y_stride,
                                  esp_cuda_mixture_of(c, p)};
    const int most = p->tile > 0 ? p->tile : rows;
    esp_cuda_launch_product(c, p,
                            esp_cuda_choose_variant(esp_cuda_backend_of(c), variants(w->dtype),
                                                    VARIANTS, most, a.outputs),
                            a, rows);
}

int esp_cuda_blocks_prepare(struct esp_cuda_backend *backend)
{
    int status = ESP_OK;
    for (int dtype = ESP_Q8_0; dtype < ESP_DTYPE_COUNT && status == ESP_OK; dtype++)
        status = esp_cuda_allow_variants(backend, variants((enum esp_dtype)dtype), VARIANTS);
    return status;
}

template <typename T>
void esp_cuda_blocks_multiply(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                              int count, int rows)
{
    const bool wanted = p->epilogue == ESP_CUDA_LOGITS, floats = p->x != c->attended;
    const int each = p->by_pair ? esp_cuda_desc_of(c)->experts_used : 1;
    const struct esp_cuda_cuts to = esp_cuda_cuts_of(c, p->x_stride);
    bool cut = false, narrow = false;
    for (int i = 0; i < count; i++) {
        const bool quantised = esp_dtype_quantised(p[i].w->dtype);
        cut = cut || (quantised && !p->cut);
        narrow = narrow || (!quantised && floats);
    }
    const dim3 cut_grid((to.blocks + WARPS - 1) / WARPS, rows * each);
    if (cut && floats)
        ESP_LAUNCH((cut_kernel<float>), cut_grid, dim3(THREADS), 0,
                   esp_cuda_backend_of(c)->stream, c->at, (const float *)p->x, p->x_stride,
                   wanted, each, to);
    else if (cut)
        ESP_LAUNCH((cut_kernel<T>), cut_grid, dim3(THREADS), 0, esp_cuda_backend_of(c)->stream,
                   c->at, (const T *)p->x, p->x_stride, wanted, each, to);
    if (narrow)
        ESP_LAUNCH((narrow_kernel<T>),
                   dim3((unsigned)((p->x_stride + THREADS - 1) / THREADS), rows * each),
                   dim3(THREADS), 0, esp_cuda_backend_of(c)->stream, c->at, (const float *)p->x,
                   p->x_stride, wanted, each, (T *)c->narrow);
    for (int i = 0; i < count; i++) {
        struct esp_cuda_product one = p[i];
        if (floats && narrow)
            one.x = c->narrow;
        if (esp_dtype_quantised(one.w->dtype))
            multiply(c, &one, rows);
        else
            esp_cuda_matmul<T>(c, &one, rows);
    }
}

/* ------------------------------------------------------------------ activation */

struct activate_args {
    enum esp_activation activation;
    struct esp_clamp clamp;
    const float *y; /* (rows, y_stride): gate, if there is one, and up `stride` numbers later */
    float *out;     /* (rows, stride) */
    size_t y_stride, stride;
    int n, each; /* each: rows of y for each row of the pass */
    bool gated;
    struct esp_cuda_cuts cuts;
};

static __global__ void activate_kernel(struct esp_cuda_arrays at, struct activate_args a)
{
    const int row = blockIdx.y, i = blockIdx.x * THREADS + threadIdx.x;
    if (row >= at.pass->rows * a.each || i >= (int)a.stride) /* whole warps */
        return;
    const float *from = a.y + row * a.y_stride + i;
    const float value =
        i < a.n ? esp_activated(a.activation, a.clamp, from[0], a.gated ? from[a.stride] : 1.0f)
                : 0.0f;
    a.out[row * a.stride + i] = value;
    esp_cuda_cut_block(a.cuts, row, i / ESP_BLOCK_COLUMNS, value);
}

void esp_cuda_blocks_activate(struct esp_cuda_cache *c, bool pairs, int rows)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    struct activate_args a = {
        d->activation, d->clamp, c->up, (float *)c->active,       c->up_width,
        c->ffn,        d->ffn,   1,     esp_gated(d->activation), {}};
    if (pairs) {
        a.y = c->pair_up;
        a.out = (float *)c->pair_active;
        a.stride = c->expert_ffn;
        a.y_stride = 2 * c->expert_ffn;
        a.n = d->expert_ffn;
        a.each = d->experts_used;
    }
    a.cuts = esp_cuda_cuts_of(c, a.stride);
    ESP_LAUNCH(activate_kernel,
               dim3((unsigned)((a.stride + THREADS - 1) / THREADS), rows * a.each),
               dim3(THREADS), 0, esp_cuda_backend_of(c)->stream, c->at, a);
}

/* ------------------------------------------------------------------ embedding */

struct embedding_args {
    enum esp_dtype dtype;
    const char *data;
    size_t unit_bytes;
    int units, numbers; /* units in a tile; columns in a unit */
};

static __device__ float read_number(enum esp_dtype dtype, const char *unit, int output, int i)
{
    switch (dtype) {
#define X(name, ...)                                                                           \
    case ESP_##name:                                                                           \
        return format<ESP_##name>::number(unit, output, i);
        ESP_BLOCK_TYPES(X)
#undef X
    default:
        return __uint_as_float(0x7fc00000u); /* not a number */
    }
}

static __global__ void embed_blocks_kernel(struct esp_cuda_arrays at, struct embedding_args a,
                                           float *x, size_t stride, int hidden)
{
    const int row = blockIdx.x;
    if (row >= at.pass->rows)
        return;
    const int token = at.tokens[row];
    const char *tile = a.data + (size_t)(token / ESP_CUDA_TILE) * a.units * a.unit_bytes;
    for (int i = threadIdx.x; i < hidden; i += THREADS)
        x[row * stride + i] =
            read_number(a.dtype, tile + (size_t)(i / a.numbers) * a.unit_bytes,
                        token % ESP_CUDA_TILE, i % a.numbers);
}

void esp_cuda_blocks_embed(struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_matrix *w = &esp_cuda_weights_of(c)->embedding;
    const int numbers = esp_dtype_block(w->dtype);
    const struct embedding_args a = {w->dtype, (const char *)w->data,
                                     ESP_CUDA_TILE * esp_dtype_block_bytes(w->dtype),
                                     w->columns / numbers, numbers};
    ESP_LAUNCH(embed_blocks_kernel, dim3(rows), dim3(THREADS), 0,
               esp_cuda_backend_of(c)->stream, c->at, a, c->x, c->hidden, w->columns);
}

template void esp_cuda_blocks_multiply<esp_bf16>(struct esp_cuda_cache *,
                                                 const struct esp_cuda_product *, int, int);
template void esp_cuda_blocks_multiply<esp_f16>(struct esp_cuda_cache *,
                                                const struct esp_cuda_product *, int, int);
