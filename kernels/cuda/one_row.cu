/* one_row.cu - computes products of one row with quantised weights.
 *
 * blocks.cu uses tensor cores, which multiply eight rows at a time. For a single row, seven
 * eighths of that work would be wasted. So here a lane unpacks bytes and multiplies them with
 * instructions for dot products of four bytes. Four lanes share two outputs and add up their
 * integers; two of the lanes then continue with one output each, and the other two repeat the
 * same work.
 *
 * The integers are the same as in blocks.cu, and the floats are added in the same order: each
 * warp processes every eighth unit, and the warps' sums are added in the order of the warps. So
 * the result for a row is bit-identical whether or not it is alone in a pass.
 */
#include "kernels/cuda/block_formats.h"

enum { WARPS = ESP_PRODUCT_WARPS, THREADS = ESP_PRODUCT_THREADS };

template <enum esp_dtype D> struct tiling {
    typedef struct esp_block_format<D> F;
    static const int STAGES = 3;
    static const int PIECE = F::UNITS * F::BYTES; /* bytes that a warp copies in a step */
    static const size_t RING = (size_t)STAGES * WARPS * PIECE;
    static const size_t PARTS = esp_cuda_sums_bytes(ESP_CUDA_TILE, 1);
    static const size_t BYTES = RING > PARTS ? RING : PARTS;
    static const int BLOCKS = 3; /* minimum number of blocks per multiprocessor */
};

/* Returns the dot product of four weights with four activations of 16 bits, which are given as
 * their high and their low bytes. */
static __device__ __forceinline__ int dot(uint32_t w, uint32_t high, uint32_t low)
{
    return 256 * esp_dot4(w, high, 0) + esp_dot4(w, low, 0);
}

static __device__ __forceinline__ int dot(uint32_t w, uint32_t high, uint32_t low, uint32_t w2,
                                          uint32_t high2, uint32_t low2)
{
    return 256 * esp_dot4(w2, high2, esp_dot4(w, high, 0)) +
           esp_dot4(w2, low2, esp_dot4(w, low, 0));
}

/* Adds up the integers that the four lanes of a group have computed for two outputs. Even lanes
 * get the sum for the first output, and odd lanes get the sum for the second. */
static __device__ __forceinline__ int add_lanes(int first, int second)
{
    const bool odd = threadIdx.x % 2;
    int sum = odd ? second : first;
    sum += __shfl_xor_sync(ESP_ALL_LANES, odd ? first : second, 1);
    return sum + __shfl_xor_sync(ESP_ALL_LANES, sum, 2);
}

/* Multiplies group `sub` of 32 columns of a unit by the row, adds the product to the sum of the
 * lane's output, and returns the new sum. `words` and `cut` are the row's activations in these
 * columns. */
template <enum esp_dtype D>
static __device__ __forceinline__ float multiply(const char *unit, int sub, const uint4 *words,
                                                 const struct esp_cuda_cut *cut, float sum)
{
    typedef struct esp_block_format<D> F;
    const int lane = threadIdx.x % ESP_WARP;
    const uint4 x = words[lane % 4];
    struct esp_block_words w;
    int whole, last = 0;
    F::words(&w, unit, lane, sub);
    if (F::FORM == TWO_SCALES) {
        whole = add_lanes(dot(w.a[0], x.x, x.z), dot(w.a[1], x.x, x.z));
        last = add_lanes(dot(w.a[2], x.y, x.w), dot(w.a[3], x.y, x.w));
    } else {
        whole = add_lanes(dot(w.a[0], x.x, x.z, w.a[2], x.y, x.w),
                          dot(w.a[1], x.x, x.z, w.a[3], x.y, x.w));
    }
    const int output = lane / 4 + 8 * (lane % 2);
    return esp_block_add<D>(sum, __fmul_rn((float)whole, cut->scale),
                            __fmul_rn((float)last, cut->scale), F::scales(unit, output, sub),
                            *cut);
}

/* Adds up the sums of the warps, which are in parts (WARPS, 16), and writes the outputs. */
static __device__ __forceinline__ void finish_tile(const struct esp_cuda_arrays &at,
                                                   enum esp_cuda_epilogue epilogue,
                                                   const struct esp_block_part &part,
                                                   const struct esp_cuda_span &s,
                                                   const float *parts)
{
    const int output = threadIdx.x;
    float sum = 0.0f;
    if (output < ESP_CUDA_TILE) {
#pragma unroll
        for (int warp = 0; warp < WARPS; warp++)
            sum += esp_shared_get(parts + warp * ESP_CUDA_TILE + output);
        esp_block_put(at, epilogue, part.of, s, s.first, part.first + output, sum);
    }
    if (epilogue == ESP_CUDA_LOGITS)
        esp_cuda_fill_logits(at, s, part.of.outputs);
}

template <enum esp_dtype D>
static __global__ void __launch_bounds__(THREADS, tiling<D>::BLOCKS)
    one_row_kernel(struct esp_cuda_arrays at, struct esp_block_args a)
{
    typedef struct esp_block_format<D> F;
    typedef struct tiling<D> Z;
    ESP_SHARED(char, ring); /* weights (WARPS, STAGES, PIECE); later the warps' sums */
    esp_let_next_begin();
    const struct esp_cuda_span s =
        esp_cuda_span_of(at, a.mixture, a.epilogue == ESP_CUDA_LOGITS, 1);
    if (s.first >= s.end) {
        esp_wait_previous();
        return;
    }
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const struct esp_block_part part = esp_block_part_of(a);
    const char *w = part.of.w + (size_t)(part.first / ESP_CUDA_TILE) * a.units * F::BYTES;
    char *mine = ring + (size_t)warp * Z::STAGES * Z::PIECE;
    const uint4 *words = a.words + (size_t)s.first * a.blocks * ESP_CUT_WORDS;
    const struct esp_cuda_cut *cuts = a.cuts + (size_t)s.first * a.blocks;
    float sum = 0.0f;

#pragma unroll
    for (int i = 0; i < Z::STAGES - 1; i++) {
        esp_block_begin_step<D, 1>(mine + i * Z::PIECE, w, 1, a.units,
                                   warp + i * F::UNITS * WARPS, WARPS);
        esp_copy_group();
    }
    esp_wait_previous(); /* copying weights need not wait for this, as no kernel writes them */
    int stage = 0, next = Z::STAGES - 1;
    for (int unit = warp; unit < a.units; unit += F::UNITS * WARPS) {
        const int ahead = unit + (Z::STAGES - 1) * F::UNITS * WARPS;
        __syncwarp(); /* all lanes have read the data that the next copy overwrites */
        if (ahead < a.units)
            esp_block_begin_step<D, 1>(mine + next * Z::PIECE, w, 1, a.units, ahead, WARPS);
        esp_copy_group();
        esp_copy_wait<Z::STAGES - 1>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < F::UNITS; i++) {
            const int at_unit = unit + i * WARPS;
            if (at_unit >= a.units)
                break;
            const int block = at_unit * F::SUBS;
#pragma unroll
            for (int sub = 0; sub < F::SUBS; sub++)
                sum = multiply<D>(mine + stage * Z::PIECE + i * F::BYTES, sub,
                                  words + (size_t)(block + sub) * ESP_CUT_WORDS,
                                  cuts + block + sub, sum);
        }
        stage = stage + 1 == Z::STAGES ? 0 : stage + 1;
        next = next + 1 == Z::STAGES ? 0 : next + 1;
    }
    __syncthreads(); /* below, the sums overwrite the units */
    float *parts = reinterpret_cast<float *>(ring);
    if (lane % 4 < 2)
        esp_shared_put(parts + warp * ESP_CUDA_TILE + lane / 4 + 8 * (lane % 2), sum);
    __syncthreads();
    finish_tile(at, a.epilogue, part, s, parts);
}

/* Returns how many instructions a warp executes for each KB of weights (RESOURCES.md, sm_90).
 * Only predictions use these numbers. */
static constexpr int instructions_of(enum esp_dtype dtype)
{
    return dtype == ESP_Q8_0     ? 95
           : dtype == ESP_Q4_0   ? 250
           : dtype == ESP_Q5_0   ? 260
           : dtype == ESP_IQ4_NL ? 380
           : dtype == ESP_MXFP4  ? 415
                                 : 180;
}

template <enum esp_dtype D> static const struct esp_cuda_variant<struct esp_block_args> *of() {
    static const struct esp_cuda_variant<struct esp_block_args> one = {
        one_row_kernel<D>, 1, ESP_CUDA_TILE, tiling<D>::BYTES,
            (tiling<D>::STAGES - 1) * WARPS *tiling<D>::PIECE, 0, esp_cuda_end_cycles(1, 1),
            instructions_of(D), instructions_of(D)
    };
    return &one;
}

const struct esp_cuda_variant<struct esp_block_args> *
esp_cuda_one_row(enum esp_dtype dtype) {
    switch (dtype) {
#define X(name, ...)                                                                           \
    case ESP_##name:                                                                           \
        return of<ESP_##name>();
        ESP_BLOCK_TYPES(X)
#undef X
    default:
        return NULL; /* esp_model_desc_check() refuses other types */
    }
}
