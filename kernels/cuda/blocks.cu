/* blocks.cu - products with quantised weights, which are never expanded in memory.
 *
 * As on the CPU (kernels/cpu/isa/blocks.c), the activations of 32 columns become 16-bit
 * integers with a common scale, which is a power of two. The weights of 32 columns are small
 * integers with one scale, or with two scales for 16 columns each. A 16-bit integer is divided
 * into two signed bytes, x = 256 high + low, and int8 tensor cores multiply both with the
 * weights. So the dot product of a block is an exact integer, the same as on the CPU. It is
 * added to the sum of an output in float32:
 *
 *     sum <- fma(integer * scale of the activations, scale of the weights, sum)
 *     sum <- fma(minimum of the weights, -total of the activations, sum)    Q4_K, Q5_K
 *
 * The first product is exact, apart from the rounding of integers above 2^24, because the scale
 * of the activations is a power of two.
 *
 * A block of threads computes up to 4 tiles of 16 outputs. Each of its 8 warps processes every
 * eighth unit (blocks.h) in ascending order, and the warps' sums are added in the order of the
 * warps. This order of summation depends only on the format and the width, so a row's results
 * are bit-identical in a batch of any size, in both modes. The CPU has a different order: it
 * adds all blocks of a row one after the other. A pass of one row uses one_row.cu. A warp
 * copies its next units to shared memory in the background. The weights are read once for every
 * 64 rows. As in matmul.cu, a block with more tiles reads the activations less often. Matrices
 * of one type that read the same activations are multiplied in one launch. The blocks of a
 * launch divide the tiles evenly, because the launch takes as long as the multiprocessor that
 * has the most tiles.
 *
 * The number of instructions limits the speed of these products, so no work is done twice. A
 * warp computes the scales of 256 columns for all of its lanes. Weights are made signed while
 * they are unpacked. The integer sums of the tensor cores are already bit patterns of floats;
 * see FLOAT_BITS.
 *
 * In a model with quantised weights activations are float32, except the output of attention.
 * Products with matrices that are not quantised read the activations rounded to 16 bits.
 */
#include "kernels/cuda/block_formats.h"

#include "kernels/cuda/activation.h"

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

/* Quantises activations. Each warp quantises 32 columns. `each`: number of rows of x for each
 * row of the pass. */
template <typename T>
static __global__ void cut_kernel(struct esp_cuda_arrays at, const T *x, size_t x_stride,
                                  bool wanted, int each, struct esp_cuda_cuts to)
{
    esp_begin_early();
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
    esp_begin_early();
    const int row = blockIdx.y;
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (row < (wanted ? at.pass->wanted : at.pass->rows * each) && i < stride)
        out[row * stride + i] = esp_from_float<T>(x[row * stride + i]);
}

/* ------------------------------------------------------------------ the product */

/* The initial value of the tensor cores' integer sums: the bits of the float 1.5 * 2^23. If the
 * sum of the products is below 2^22, the result is then the bits of the float 1.5 * 2^23 + sum.
 * This saves a conversion to float. */
enum { FLOAT_BITS = 0x4b400000 };

/* Multiplies 256 high + low by the scale of a row's activations, a power of two. */
struct scaler {
    /* one: the scale. high: 256 times the scale. less: adding this cancels FLOAT_BITS. */
    float one, high, less;

    /* Only the second addition can round. It rounds in the same way as a conversion of the
     * whole integer to float. */
    __device__ __forceinline__ float operator()(int high_sum, int low_sum) const
    {
        const float rest = __fmaf_rn(__uint_as_float((uint32_t)high_sum), high, less);
        return __fmaf_rn(__uint_as_float((uint32_t)low_sum), one, rest);
    }
};

static __device__ __forceinline__ struct scaler scaler_of(float scale)
{
    return {scale, __fmul_rn(256.0f, scale), __fmul_rn(-257.0f * 12582912.0f, scale)};
}

/* Adds the products of 32 columns, for 16 outputs and 8 rows, to a lane's four sums. `of`: the
 * scales of the lane's outputs `group` and `group + 8`; cut: the scales of the lane's two rows.
 */
template <enum esp_dtype D>
static __device__ __forceinline__ void
add_block(const struct esp_block_words &words, const struct esp_block_scales of[2], uint4 x,
          const struct esp_cuda_cut cut[2], const struct scaler scaled[2], float sum[4])
{
    typedef struct esp_block_format<D> F;
    const uint32_t *w = words.a;
    int high[4], low[4], last_high[4] = {}, last_low[4] = {};
    if (F::FORM == TWO_SCALES) {
        esp_mma_s8_half(high, w[0], w[1], x.x, FLOAT_BITS);
        esp_mma_s8_half(low, w[0], w[1], x.z, FLOAT_BITS);
        esp_mma_s8_half(last_high, w[2], w[3], x.y, FLOAT_BITS);
        esp_mma_s8_half(last_low, w[2], w[3], x.w, FLOAT_BITS);
    } else {
        esp_mma_s8(high, w[0], w[1], w[2], w[3], x.x, x.y, FLOAT_BITS);
        esp_mma_s8(low, w[0], w[1], w[2], w[3], x.z, x.w, FLOAT_BITS);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] =
            esp_block_add<D>(sum[i], scaled[i % 2](high[i], low[i]),
                             scaled[i % 2](last_high[i], last_low[i]), of[i / 2], cut[i % 2]);
}

/* Holds what a lane reads of the activations of 8 rows and 32 columns: the words of row `group`
 * and the scales of rows 2t and 2t + 1. Here group = lane / 4 and t = lane % 4. */
struct activations {
    uint4 x;
    struct esp_cuda_cut cut[2];
};

/* Says where the activations of each row of a block begin, in units of 32 columns. These
 * numbers are kept in registers. If there are not enough registers, they are kept in shared
 * memory: `table` then has 8 GROUPS numbers. */
template <int GROUPS, bool SHARED> struct lane_rows {
    static const int KEPT = SHARED ? 1 : GROUPS;
    uint32_t row[KEPT];               /* for row `group` */
    uint32_t left[KEPT], right[KEPT]; /* for rows 2t and 2t + 1 */
    const uint32_t *table;

    __device__ __forceinline__ void find(const struct esp_block_args &a,
                                         const struct esp_cuda_span &s, uint32_t *room)
    {
        const int group = threadIdx.x % ESP_WARP / 4, t = threadIdx.x % 4;
        table = room;
        if constexpr (SHARED) {
            for (int i = threadIdx.x; i < COLUMNS * GROUPS; i += THREADS)
                room[i] = (uint32_t)(esp_cuda_row_of(s, s.first + i) * a.blocks);
            __syncthreads();
        } else {
#pragma unroll
            for (int j = 0; j < KEPT; j++) {
                const int first = s.first + COLUMNS * j;
                row[j] = (uint32_t)(esp_cuda_row_of(s, first + group) * a.blocks);
                left[j] = (uint32_t)(esp_cuda_row_of(s, first + 2 * t) * a.blocks);
                right[j] = (uint32_t)(esp_cuda_row_of(s, first + 2 * t + 1) * a.blocks);
            }
        }
    }
    __device__ __forceinline__ struct activations load(const struct esp_block_args &a, int j,
                                                       size_t block) const
    {
        const int group = threadIdx.x % ESP_WARP / 4, t = threadIdx.x % 4;
        uint2 pair;
        uint32_t one;
        if (SHARED) {
            one = esp_shared_get(table + COLUMNS * j + group);
            pair = esp_shared_get(reinterpret_cast<const uint2 *>(table + COLUMNS * j) + t);
        } else {
            one = row[j];
            pair = make_uint2(left[j], right[j]);
        }
        return {(a.words + one * ESP_CUT_WORDS + t)[block * ESP_CUT_WORDS],
                {(a.cuts + pair.x)[block], (a.cuts + pair.y)[block]}};
    }
};

/* Defines the sizes of a block that computes HIGH tiles of outputs for GROUPS groups of 8
 * rows. */
template <enum esp_dtype D, int HIGH, int GROUPS> struct tiling {
    typedef struct esp_block_format<D> F;
    typedef struct lane_rows<GROUPS, (HIGH * GROUPS > 16)> rows;
    static const int WIDTH = COLUMNS * GROUPS, HEIGHT = ESP_CUDA_TILE * HIGH;
    static const int STAGES = HIGH == 1 ? 3 : 2;
    static const int BLOCKS = HIGH * GROUPS > 4 ? 1 : 2; /* minimum blocks per multiprocessor */
    static const int PIECE =
        F::UNITS * HIGH * F::BYTES; /* bytes that a warp copies in a step */
    static const size_t RING = (size_t)STAGES * WARPS * PIECE;
    static const bool SCALED = F::SUBS > 1; /* a warp computes the scales once for all lanes */
    /* TOGETHER: the scales of this many groups of 32 columns are computed together. UNROLL: the
     * loop is unrolled for this many groups; the number of registers limits UNROLL. */
    static const int TOGETHER = SCALED ? 4 : 1, EACH = HIGH * GROUPS;
    static const int UNROLL = EACH <= 2 ? 4 : EACH <= 16 ? 2 : 1;
    static const bool SHORT = (D == ESP_Q5_K && EACH == 2) || (D == ESP_Q6_K && EACH == 4);
    static const int UNROLLED = SHORT ? UNROLL / 2 : UNROLL;
    /* True if the first activations for the next 32 columns are loaded during a product. */
    static const bool AHEAD = GROUPS <= 2;
    static const int SCALES = SCALED ? HIGH * TOGETHER * ESP_CUDA_TILE : 0; /* per warp */
    static const size_t LOOP = RING + WARPS * SCALES * sizeof(struct esp_block_scales);
    static const size_t PARTS = esp_cuda_sums_bytes(HEIGHT, WIDTH);
    static const size_t MOST = LOOP > PARTS ? LOOP : PARTS;
    static const size_t BYTES = MOST + WIDTH * sizeof(uint32_t);
};

/* Returns the index of an output's scales, for group `sub` of 32 columns, among the scales of a
 * tile. The order is permuted to avoid bank conflicts. */
static __device__ __forceinline__ int scales_at(int output, int sub)
{
    return sub * ESP_CUDA_TILE + (output ^ 4 * sub);
}

/* Computes the scales of HIGH tiles, from their units at `unit`, for TOGETHER groups of 32
 * columns, beginning with group `sub`. Each lane computes one of these groups for two outputs
 * of each tile. */
template <enum esp_dtype D, int HIGH>
static __device__ __forceinline__ void make_scales(struct esp_block_scales *to,
                                                   const char *unit, int sub)
{
    enum { TOGETHER = tiling<D, HIGH, 1>::TOGETHER };
    const int lane = threadIdx.x % ESP_WARP, mine = lane % TOGETHER;
#pragma unroll
    for (int h = 0; h < HIGH; h++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int output = lane / 4 + 8 * i;
            esp_shared_put(to + h * TOGETHER * ESP_CUDA_TILE + scales_at(output, mine),
                           esp_block_format<D>::scales(unit + h * esp_block_format<D>::BYTES,
                                                       output, sub + mine));
        }
}

/* Adds the warps' sums and writes the block's outputs for its rows. parts: (WARPS, 16 high,
 * pairs) the sums, each for a pair of rows. high: number of tiles in `parts`, at least
 * part.tiles. */
static __device__ __forceinline__ void
finish_tiles(const struct esp_cuda_arrays &at, enum esp_cuda_epilogue epilogue,
             const struct esp_block_part &part, const float2 *parts,
             const struct esp_cuda_span &s, int high, int pairs)
{
    const int height = ESP_CUDA_TILE * high;
    for (int i = threadIdx.x; i < part.tiles * ESP_CUDA_TILE * pairs; i += THREADS) {
        const int pair = i / ESP_CUDA_TILE % pairs, row = s.first + 2 * pair;
        const int in_block = i / ESP_CUDA_TILE / pairs * ESP_CUDA_TILE + i % ESP_CUDA_TILE;
        const float2 sum = esp_cuda_collect(parts, height, pairs, in_block, pair);
        esp_block_put(at, epilogue, part.of, s, row, part.first + in_block, sum.x);
        esp_block_put(at, epilogue, part.of, s, row + 1, part.first + in_block, sum.y);
    }
    if (epilogue == ESP_CUDA_LOGITS)
        esp_cuda_fill_logits(at, s, part.of.outputs);
}

/* Multiplies 32 columns: group `sub` of the units at `unit`, which is group `block` of the
 * whole matrix. On entry, `ready` holds the activations of the first 8 rows for these columns.
 * On return, it holds the activations for group `next`, which are loaded during the product. */
template <enum esp_dtype D, int HIGH, int GROUPS>
static __device__ __forceinline__ void
multiply_block(const struct esp_block_args &a,
               const typename tiling<D, HIGH, GROUPS>::rows &rows, int groups, const char *unit,
               const struct esp_block_scales *scales, int sub, size_t block, size_t next,
               struct activations *ready, float sum[HIGH][GROUPS][4])
{
    typedef struct esp_block_format<D> F;
    typedef struct tiling<D, HIGH, GROUPS> Z;
    const int lane = threadIdx.x % ESP_WARP;
    struct activations now = Z::AHEAD ? *ready : rows.load(a, 0, block);
    struct esp_block_words words[HIGH];
    struct esp_block_scales of[HIGH][2];
    if (Z::AHEAD)
        *ready = rows.load(a, 0, next);
#pragma unroll
    for (int h = 0; h < HIGH; h++) {
        F::words(&words[h], unit + h * F::BYTES, lane, sub);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int output = lane / 4 + 8 * i;
            of[h][i] = Z::SCALED ? esp_shared_get(scales + h * Z::TOGETHER * ESP_CUDA_TILE +
                                                  scales_at(output, sub % Z::TOGETHER))
                                 : F::scales(unit + h * F::BYTES, output, sub);
        }
    }
#pragma unroll
    for (int j = 0; j < GROUPS; j++) {
        struct activations later = now;
        if (j > 0 && j >= groups)
            break;
        if (j + 1 < GROUPS)
            later = rows.load(a, j + 1, block);
        const struct scaler scaled[2] = {scaler_of(now.cut[0].scale),
                                         scaler_of(now.cut[1].scale)};
#pragma unroll
        for (int h = 0; h < HIGH; h++)
            add_block<D>(words[h], of[h], now.x, now.cut, scaled, sum[h][j]);
        now = later;
    }
}

/* Returns where the weights of a part begin. */
template <enum esp_dtype D>
static __device__ __forceinline__ const char *weights_of(const struct esp_block_args &a,
                                                         const struct esp_cuda_span &s,
                                                         const struct esp_block_part &part)
{
    const size_t tiles = esp_cuda_pad(part.of.outputs, ESP_CUDA_TILE) / ESP_CUDA_TILE;
    const size_t first = s.expert * tiles + part.first / ESP_CUDA_TILE;
    return part.of.w + first * a.units * esp_block_format<D>::BYTES;
}

/* Computes the outputs of the block's part, which has `count` tiles, at most HIGH. */
template <enum esp_dtype D, int HIGH, int GROUPS>
static __device__ __forceinline__ void
multiply_part(const struct esp_cuda_arrays &at, const struct esp_block_args &a,
              const struct esp_cuda_span &s, int count, char *ring)
{
    typedef struct esp_block_format<D> F;
    typedef struct tiling<D, HIGH, GROUPS> Z;
    const int warp = threadIdx.x / ESP_WARP, groups = (s.end - s.first + COLUMNS - 1) / COLUMNS;
    const char *w = weights_of<D>(a, s, esp_block_part_of(a));
    char *mine = ring + (size_t)warp * Z::STAGES * Z::PIECE;
    struct esp_block_scales *scales =
        reinterpret_cast<struct esp_block_scales *>(ring + Z::RING) + warp * Z::SCALES;
    float sum[HIGH][GROUPS][4] = {};

#pragma unroll
    for (int i = 0; i < Z::STAGES - 1; i++) {
        esp_block_begin_step<D, HIGH>(mine + i * Z::PIECE, w, count, a.units,
                                      warp + i * F::UNITS * WARPS, WARPS);
        esp_copy_group();
    }
    typename Z::rows rows;
    rows.find(a, s, reinterpret_cast<uint32_t *>(ring + Z::MOST));
    esp_wait_previous(); /* the copies above need not wait: no kernel writes weights */
    struct activations ready;
    if (Z::AHEAD)
        ready = rows.load(a, 0, warp < a.units ? warp * F::SUBS : 0);
    int stage = 0, next = Z::STAGES - 1;
    for (int unit = warp; unit < a.units; unit += F::UNITS * WARPS) {
        const int ahead = unit + (Z::STAGES - 1) * F::UNITS * WARPS;
        __syncwarp(); /* all lanes have read the data that the next copy overwrites */
        if (ahead < a.units)
            esp_block_begin_step<D, HIGH>(mine + next * Z::PIECE, w, count, a.units, ahead,
                                          WARPS);
        esp_copy_group();
        esp_copy_wait<Z::STAGES - 1>();
        __syncwarp();
#pragma unroll 1
        for (int i = 0; i < F::UNITS * F::SUBS; i += Z::TOGETHER) {
            const int at_unit = unit + i / F::SUBS * WARPS;
            if (at_unit >= a.units)
                break;
            const char *from = mine + stage * Z::PIECE + i / F::SUBS * HIGH * F::BYTES;
            if (Z::SCALED) {
                __syncwarp(); /* all lanes have read the previous scales */
                make_scales<D, HIGH>(scales, from, i);
                __syncwarp();
            }
#pragma unroll(Z::UNROLLED)
            for (int k = 0; k < Z::TOGETHER; k++) {
                const int sub = F::SUBS > 1 ? i + k : 0;
                const size_t block = (size_t)at_unit * F::SUBS + sub;
                size_t then = block + 1; /* the columns that the warp multiplies next */
                if (k + 1 == Z::TOGETHER && sub + 1 == F::SUBS)
                    then = at_unit + WARPS < a.units ? then + (WARPS - 1) * F::SUBS : 0;
                multiply_block<D, HIGH, GROUPS>(a, rows, groups, from, scales, sub, block, then,
                                                &ready, sum);
            }
        }
        stage = stage + 1 == Z::STAGES ? 0 : stage + 1;
        next = next + 1 == Z::STAGES ? 0 : next + 1;
    }
    __syncthreads(); /* below, the sums overwrite the units */
    float2 *parts = reinterpret_cast<float2 *>(ring);
    esp_cuda_leave_sums<HIGH, GROUPS>(parts, sum);
    __syncthreads();
    /* esp_block_part_of() is called a second time, because the loop uses all registers and
     * could not keep its result. */
    finish_tiles(at, a.epilogue, esp_block_part_of(a), parts, s, HIGH, Z::WIDTH / 2);
}

/* A block computes HIGH or HIGH - 1 tiles, so that all multiprocessors have the same number of
 * tiles. */
template <enum esp_dtype D, int HIGH, int GROUPS>
static __global__ void __launch_bounds__(THREADS, tiling<D, HIGH, GROUPS>::BLOCKS)
    blocks_kernel(struct esp_cuda_arrays at, struct esp_block_args a)
{
    enum { LOWER = HIGH > 1 ? HIGH - 1 : 1 };
    typedef struct tiling<D, HIGH, GROUPS> Z;
    static_assert(tiling<D, LOWER, GROUPS>::BYTES <= Z::BYTES, "the smaller tiling also fits");
    /* `ring` holds the copied weights (WARPS, STAGES, PIECE) and then the warps' scales. Later,
     * the warps' sums overwrite both. The table of lane_rows follows after this memory. */
    ESP_SHARED(char, ring);
    esp_let_next_begin();
    if (a.mixture.tiles) /* previous kernels compute these tiles */
        esp_wait_previous();
    const struct esp_cuda_span s =
        esp_cuda_span_of(at, a.mixture, a.epilogue == ESP_CUDA_LOGITS, Z::WIDTH);
    if (s.first >= s.end) {
        esp_wait_previous();
        return;
    }
    const int count = esp_block_part_of(a).tiles;
    if (HIGH > 1 && count < HIGH)
        multiply_part<D, LOWER, GROUPS>(at, a, s, count, ring);
    else
        multiply_part<D, HIGH, GROUPS>(at, a, s, HIGH, ring);
}

enum { VARIANTS = 6 };

/* The number of instructions that a warp executes for each KB of weights (RESOURCES.md, sm_90).
 * Only predictions use these numbers. There is a column for the kernel for 8 rows, one for 16
 * rows, and two for the two kernels for 64 rows. In each pair, the first number is for a block
 * with all its tiles, and the second number is for a block with one tile fewer. */
static const int instructions[][4][2] = {
    {{118, 176}, {197, 251}, {550, 721}, {458, 497}},    /* Q8_0 */
    {{291, 363}, {384, 502}, {875, 1226}, {684, 762}},   /* Q4_0 */
    {{311, 367}, {376, 472}, {777, 1064}, {619, 682}},   /* Q5_0 */
    {{464, 537}, {544, 666}, {1031, 1386}, {842, 918}},  /* IQ4_NL */
    {{512, 584}, {597, 731}, {1114, 1490}, {914, 999}},  /* MXFP4 */
    {{205, 248}, {344, 368}, {895, 1216}, {794, 860}},   /* Q4_K */
    {{243, 262}, {320, 425}, {767, 1032}, {688, 742}},   /* Q5_K */
    {{187, 224}, {379, 330}, {1089, 1089}, {864, 1076}}, /* Q6_K */
};

typedef struct esp_cuda_variant<struct esp_block_args> variant;

template <enum esp_dtype D, int HIGH, int GROUPS> static variant variant_of(int place)
{
    typedef struct tiling<D, HIGH, GROUPS> Z;
    const int *const issue = instructions[D - ESP_Q8_0][place];
    return {blocks_kernel<D, HIGH, GROUPS>,
            Z::WIDTH,
            Z::HEIGHT,
            Z::BYTES,
            (Z::STAGES - 1) * WARPS * Z::PIECE,
            0,
            esp_cuda_end_cycles(HIGH, Z::WIDTH),
            HIGH > 1 ? issue[0] : issue[1],
            issue[1]};
}

/* Returns the variants of the kernel for a format: two for each number of rows (8, 16 and 64).
 * The first of the two fits into 99 KB of shared memory; for Q6_K, it has only one tile. In the
 * other formats, the two variants for 8 rows are the same, and so are the two variants for 16
 * rows. For Q6_K, there are not enough registers for four tiles. */
template <enum esp_dtype D> static const variant *variants_of()
{
    enum { LOW = esp_block_format<D>::FORM == TWO_SCALES ? 1 : 2, HIGHEST = 2 * LOW };
    static const variant all[VARIANTS] = {
        variant_of<D, LOW, 1>(0), variant_of<D, 2, 1>(0),   variant_of<D, LOW, 2>(1),
        variant_of<D, 2, 2>(1),   variant_of<D, LOW, 8>(2), variant_of<D, HIGHEST, 8>(3)};
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

/* Returns how many blocks the matrices need if a block has `high` tiles. */
static int blocks_of(const struct esp_block_args &a, int high)
{
    int blocks = 0;
    for (int i = 0; i < a.matrices; i++)
        blocks += (a.matrix[i].outputs + high * ESP_CUDA_TILE - 1) / (high * ESP_CUDA_TILE);
    return blocks;
}

/* Returns the number of waves that blocks of `high` tiles need. The grid repeats these blocks
 * `spans` times, once for each group of rows. A wave is one block on each multiprocessor. */
static int waves_of(const struct esp_cuda_backend *backend, const struct esp_block_args &a,
                    int high, int spans)
{
    const int here = backend->multiprocessors;
    return (int)(((size_t)blocks_of(a, high) * spans + here - 1) / here);
}

/* Returns how many tiles the busiest multiprocessor gets. This number is an even share of all
 * tiles, or more if blocks of `high` or `high` - 1 tiles cannot be divided evenly. */
static int busiest(const struct esp_cuda_backend *backend, const struct esp_block_args &a,
                   int high, int spans)
{
    const int even = waves_of(backend, a, 1, spans);
    const int least = (high - 1) * waves_of(backend, a, high, spans);
    return even > least ? even : least;
}

/* Divides the tiles evenly among as many blocks as fit into the waves that blocks of `high`
 * tiles need. Each block gets `high` or `high` - 1 tiles. Returns the number of blocks. */
static int divide(const struct esp_cuda_backend *backend, struct esp_block_args *a, int high,
                  int spans)
{
    const int lower = high > 1 ? high - 1 : 1, tiles = blocks_of(*a, 1);
    const int room = waves_of(backend, *a, high, spans) * backend->multiprocessors / spans;
    const int spare = room - blocks_of(*a, high);
    int blocks = 0;
    for (int i = 0; i < a->matrices; i++) {
        struct esp_block_matrix *m = &a->matrix[i];
        const int own = (m->outputs + ESP_CUDA_TILE - 1) / ESP_CUDA_TILE;
        const int most = (own + lower - 1) / lower;
        const int even = (own + high - 1) / high + (int)((size_t)spare * own / tiles);
        m->blocks = even < most ? even : most;
        blocks += m->blocks;
    }
    return blocks;
}

/* Returns the kernel for a pass of `rows` rows. If several kernels give the busiest
 * multiprocessor the fewest tiles, returns the kernel with the highest blocks, because high
 * blocks read the activations less often. */
static const variant *choose(const struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                             const struct esp_block_args &a, int rows)
{
    const struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const int most = p->tile > 0 ? p->tile : rows;
    if (most == 1)
        return esp_cuda_one_row(p->w->dtype);
    return esp_cuda_choose_variant(
        backend, variants(p->w->dtype), VARIANTS, most,
        [&](const variant *one, const variant *before) {
            const int spans = esp_cuda_spans_of(c, p, rows, one->width);
            return busiest(backend, a, one->height / ESP_CUDA_TILE, spans) <=
                   busiest(backend, a, before->height / ESP_CUDA_TILE, spans);
        });
}

/* Runs `count` products in one launch. Their matrices have the same type, and they read the
 * same activations. */
static void multiply(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int count,
                     int rows)
{
    struct esp_block_args a = {};
    for (int i = 0; i < count; i++) {
        const struct esp_cuda_matrix *w = p[i].w;
        a.matrix[i] = {(const char *)w->data, w->bias, p[i].y, p[i].y_stride, w->rows, 0};
    }
    a.matrices = count;
    a.units = (int)(p->w->columns / esp_dtype_block(p->w->dtype));
    a.words = (const uint4 *)c->cut_words;
    a.cuts = c->cuts;
    a.blocks = (int)(p->x_stride / ESP_BLOCK_COLUMNS);
    a.epilogue = p->epilogue;
    a.mixture = esp_cuda_mixture_of(c, p);
    const variant *v = choose(c, p, a, rows);
    const int spans = esp_cuda_spans_of(c, p, rows, v->width);
    const int blocks = divide(esp_cuda_backend_of(c), &a, v->height / ESP_CUDA_TILE, spans);
    esp_cuda_launch_product(c, p, count, v, a, blocks, spans, rows);
}

/* Runs the products whose matrices have the type `dtype`. */
static void multiply_type(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int count,
                          enum esp_dtype dtype, int rows)
{
    struct esp_cuda_product together[ESP_BLOCK_MATRICES];
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (p[i].w->dtype == dtype)
            together[n++] = p[i];
        if (n > 0 && (n == ESP_BLOCK_MATRICES || i + 1 == count)) {
            multiply(c, together, n, rows);
            n = 0;
        }
    }
}

int esp_cuda_blocks_prepare(struct esp_cuda_backend *backend)
{
    int status = ESP_OK;
    for (int i = ESP_Q8_0; i < ESP_DTYPE_COUNT && status == ESP_OK; i++) {
        const enum esp_dtype dtype = (enum esp_dtype)i;
        status = esp_cuda_allow_variants(backend, variants(dtype), VARIANTS);
        if (status == ESP_OK)
            status = esp_cuda_allow_variants(backend, esp_cuda_one_row(dtype), 1);
    }
    return status;
}

template <typename T>
void esp_cuda_blocks_multiply(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                              int count, int rows)
{
    const bool wanted = p->epilogue == ESP_CUDA_LOGITS;
    const bool floats = p->x != c->attended && p->x != c->states.mixed;
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
        ESP_LAUNCH_EARLY(esp_cuda_early(c), (cut_kernel<float>), cut_grid, dim3(THREADS), 0,
                         esp_cuda_backend_of(c)->stream, c->at, (const float *)p->x,
                         p->x_stride, wanted, each, to);
    else if (cut)
        ESP_LAUNCH_EARLY(esp_cuda_early(c), (cut_kernel<T>), cut_grid, dim3(THREADS), 0,
                         esp_cuda_backend_of(c)->stream, c->at, (const T *)p->x, p->x_stride,
                         wanted, each, to);
    if (narrow)
        ESP_LAUNCH_EARLY(esp_cuda_early(c), (narrow_kernel<T>),
                         dim3((unsigned)((p->x_stride + THREADS - 1) / THREADS), rows * each),
                         dim3(THREADS), 0, esp_cuda_backend_of(c)->stream, c->at,
                         (const float *)p->x, p->x_stride, wanted, each, (T *)c->narrow);
    for (int i = ESP_Q8_0; i < ESP_DTYPE_COUNT; i++)
        multiply_type(c, p, count, (enum esp_dtype)i, rows);
    for (int i = 0; i < count; i++) {
        struct esp_cuda_product one = p[i];
        if (floats && narrow)
            one.x = c->narrow;
        if (!esp_dtype_quantised(one.w->dtype))
            esp_cuda_matmul<T>(c, &one, rows);
    }
}

/* ------------------------------------------------------------------ activation */

struct activate_args {
    enum esp_activation activation;
    struct esp_clamp clamp;
    const float *y; /* (rows, y_stride): `gate`, then `up` from column `stride` on; or `up` */
    float *out;     /* (rows, stride), beginning with this GPU's first column */
    size_t y_stride, stride;
    int n, each; /* each: rows of y for each row of the pass */
    bool gated;
    struct esp_cuda_cuts cuts;
};

static __global__ void activate_kernel(struct esp_cuda_arrays at, struct activate_args a)
{
    esp_begin_early();
    const int row = blockIdx.y, i = blockIdx.x * THREADS + threadIdx.x;
    if (row >= at.pass->rows * a.each || i >= (int)esp_cuda_pad(a.n, ESP_CUDA_PAD))
        return; /* all lanes of a warp return together */
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
    a.out += esp_cuda_first(c, ESP_RANK_MLP);
    if (pairs) {
        a.y = c->pair_up;
        a.out = (float *)c->pair_active + esp_cuda_first(c, ESP_RANK_EXPERTS);
        a.stride = c->expert_ffn;
        a.y_stride = 2 * c->expert_ffn;
        a.n = d->expert_ffn;
        a.each = d->experts_used;
    }
    a.cuts = esp_cuda_cuts_of(c, a.stride);
    ESP_LAUNCH_EARLY(esp_cuda_early(c), activate_kernel,
                     dim3((unsigned)((a.stride + THREADS - 1) / THREADS), rows * a.each),
                     dim3(THREADS), 0, esp_cuda_backend_of(c)->stream, c->at, a);
}

/* ------------------------------------------------------------------ embedding */

struct embedding_args {
    enum esp_dtype dtype;
    const char *data;
    size_t unit_bytes;
    int units, numbers; /* number of units in a tile, and number of columns in a unit */
};

static __device__ float read_number(enum esp_dtype dtype, const char *unit, int output, int i)
{
    switch (dtype) {
#define X(name, ...)                                                                           \
    case ESP_##name:                                                                           \
        return esp_block_format<ESP_##name>::number(unit, output, i);
        ESP_BLOCK_TYPES(X)
#undef X
    default:
        return __uint_as_float(0x7fc00000u); /* NaN */
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
