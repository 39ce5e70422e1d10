/* matmul.cu - computes the product y = W x + bias without cuBLASLt, for up to 64 rows of x at a
 * time. This takes as long as reading W.
 *
 * A tensor core instruction multiplies a tile of 16 outputs and 16 columns of W with the same
 * columns of 8 rows of x. These may be any 16 columns, if they are the same in W and x. So lane
 * (group, t) reads 8 consecutive columns, 8t..8t+7 of a step of 32, in one 16-byte load from
 * row-major memory, and uses them for two instructions. Nothing is repacked, and cuBLASLt can
 * use the same weights.
 *
 * A block computes 1 to 5 tiles of outputs at a time. Each of its 8 warps processes every
 * eighth step, and the warps' sums are added in the order of the warps. This order of summation
 * depends only on the width of W, so a row of the result is bit-identical in a batch of one row
 * or of a thousand.
 *
 * The next steps are copied to shared memory while one step is multiplied. A thread copies only
 * what it multiplies itself, 16 bytes at a time. So the copies need no barrier: shared memory
 * serves as registers that can be filled in the background. W is read once for every 64 rows. A
 * block with more tiles reads x less often, but a product of few outputs needs blocks with few
 * tiles to occupy the device.
 *
 * The first copies of W can begin before the previous kernel has ended (device.h), because no
 * kernel writes W.
 *
 * A block of many tiles and rows is alone on its multiprocessor. While it adds the sums of its
 * warps, no other block reads memory there. So the block is persistent: it continues with tiles
 * that no other block computes, and begins to copy their weights before it finishes its current
 * tiles.
 */
#include "kernels/cuda/activation.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/tiled_product.h"

enum {
    WARPS = ESP_PRODUCT_WARPS,
    THREADS = ESP_PRODUCT_THREADS,
    COLUMNS = ESP_PRODUCT_ROWS,
    STEP = 32,
    TOGETHER = 64
};

template <typename T> struct matmul_args {
    const T *w;
    size_t w_stride;
    const float *bias;
    int outputs, steps;
    const T *x;
    size_t x_stride;
    enum esp_cuda_epilogue epilogue;
    enum esp_activation activation;
    struct esp_clamp clamp;
    float *y;
    size_t y_stride;
    T *out;
    size_t out_stride;
    struct esp_cuda_mixture mixture;
    /* normed: x is the first half of a norm. begins: ADD also computes the first half of the
     * next norm. */
    bool normed, begins;
    struct esp_cuda_squares squares;
    struct esp_cuda_norm_args next;
};

/* Writes an output of a row of the result, but does not start the norm that may follow. Returns
 * the output; for ADD, this is the new value of the residual stream. For GATED, y is the output
 * for `gate`, and `up` is the output for `up`. */
template <typename T>
static __device__ __forceinline__ float put(const struct esp_cuda_arrays &at,
                                            const struct matmul_args<T> &a, size_t row,
                                            int output, float y, float up)
{
    if (a.epilogue == ESP_CUDA_GATED) {
        const int half = ESP_CUDA_TILE / 2, in_tile = output % ESP_CUDA_TILE;
        a.out[row * a.out_stride + output / ESP_CUDA_TILE * half + in_tile] =
            esp_from_float<T>(esp_activated(a.activation, a.clamp, y, up));
    } else if (a.epilogue == ESP_CUDA_ACTIVATED) {
        a.out[row * a.out_stride + output] =
            esp_from_float<T>(esp_activated(a.activation, a.clamp, y, 1.0f));
    } else {
        y = esp_cuda_put_output(at, a.epilogue, a.y, a.y_stride, row, output, y);
    }
    return y;
}

/* Writes an output of a row, and starts the norm that may follow. sum: the sum over the warps.
 * For GATED, `sum` is for the output of `gate`, and `of_up` is for the output of `up`. All
 * lanes of a warp call this, and together they cover whole tiles. */
template <typename T>
static __device__ __forceinline__ void
finish_output(const struct esp_cuda_arrays &at, const struct matmul_args<T> &a, float by,
              const float *bias, int row, int output, bool there, float sum, float of_up)
{
    float y = 0.0f;
    if (there) {
        const float up = a.epilogue == ESP_CUDA_GATED
                             ? fmaf(of_up, by, bias ? bias[output + ESP_CUDA_TILE / 2] : 0.0f)
                             : 0.0f;
        y = put(at, a, row, output, fmaf(sum, by, bias ? bias[output] : 0.0f), up);
    }
    if (a.begins) /* only with ADD */
        esp_cuda_begin_norm(at, a.next, a.squares, row, output, y, there, a.out);
}

/* Adds the warps' sums and writes the block's outputs, which begin with `first_output`, for its
 * rows. parts: (WARPS, 16 high, pairs) the sums, each for a pair of rows; factor: (2 pairs) the
 * factors of the rows' norms. */
template <typename T>
static __device__ void finish_tiles(const struct esp_cuda_arrays &at,
                                    const struct matmul_args<T> &a, const float2 *parts,
                                    const float *factor, const struct esp_cuda_span &s,
                                    const float *bias, int first_output, int high, int pairs)
{
    const bool gated = a.epilogue == ESP_CUDA_GATED;
    const int height = gated ? ESP_CUDA_TILE / 2 : ESP_CUDA_TILE, rows = high * ESP_CUDA_TILE;
    for (int i = threadIdx.x; i < high * height * pairs; i += THREADS) {
        const int pair = i / height % pairs, column = s.first + 2 * pair;
        const int row = i / height / pairs * ESP_CUDA_TILE + i % height;
        const int output = first_output + row;
        const float2 sum = esp_cuda_collect(parts, rows, pairs, row, pair);
        float2 up = make_float2(0.0f, 0.0f);
        if (gated)
            up = esp_cuda_collect(parts, rows, pairs, row + height, pair);
        const bool first = column < s.end && output < a.outputs;
        const bool second = column + 1 < s.end && output < a.outputs;
        finish_output(at, a, a.normed && first ? factor[2 * pair] : 1.0f, bias, column, output,
                      first, sum.x, up.x);
        finish_output(at, a, a.normed && second ? factor[2 * pair + 1] : 1.0f, bias, column + 1,
                      output, second, sum.y, up.y);
    }
}

/* Computes the second half of a norm: a factor for each of the block's 8 GROUPS rows. A warp
 * processes one row of each group, and reads all its rows at the same time. */
template <int GROUPS>
static __device__ __forceinline__ void find_factors(const struct esp_cuda_squares &squares,
                                                    const struct esp_cuda_span &s,
                                                    float *factor)
{
    const int warp = threadIdx.x / ESP_WARP, left = s.end - s.first - warp;
    int row[GROUPS];
    float found[GROUPS];
    if (left <= 0) /* true for the whole warp */
        return;
#pragma unroll
    for (int j = 0; j < GROUPS; j++)
        row[j] = esp_cuda_row_of(s, s.first + warp + COLUMNS * j);
    esp_cuda_norm_factors<GROUPS>(squares, row, (left + COLUMNS - 1) / COLUMNS, found);
#pragma unroll
    for (int j = 0; j < GROUPS; j++)
        if (threadIdx.x % ESP_WARP == 0)
            factor[warp + COLUMNS * j] = found[j];
}

/* Gives the sizes of a block that computes HIGH tiles of outputs for GROUPS groups of 8 rows.
 * Shared memory has room for the operands of DEEP steps. */
template <int HIGH, int GROUPS, int DEEP> struct tiling {
    static const int WIDTH = COLUMNS * GROUPS, HEIGHT = ESP_CUDA_TILE * HIGH;
    static const int PIECES =
        2 * HIGH + GROUPS; /* 16-byte pieces that a thread needs in a step */
    static const int STAGES = DEEP, STAGE = PIECES * THREADS;
    static const int BLOCKS = HIGH * GROUPS > 8 ? 1 : 2; /* minimum blocks per multiprocessor */
    static const size_t RING = (size_t)STAGES * STAGE * sizeof(uint4);
    static const size_t PARTS = esp_cuda_sums_bytes(HEIGHT, WIDTH);
    /* PERSISTENT: true if a block continues with other tiles. These variants are the highest
     * that fit into 99, 163 or 227 KB of shared memory. Only such variants are chosen if there
     * are more tiles than multiprocessors. AHEAD: bytes of the next tiles' weights for the
     * first step. They are copied while the sums of the previous tiles are in shared memory. */
    static const bool PERSISTENT = HIGH == 5 || (HIGH == 2 && BLOCKS == 1 && DEEP < 4);
    static const int AHEAD = PERSISTENT ? 2 * HIGH * THREADS * (int)sizeof(uint4) : 0;
    static_assert(!PERSISTENT || RING - AHEAD >= PARTS, "the copies would overwrite the sums");
    static const size_t MOST = RING > PARTS ? RING : PARTS;
    static const size_t BYTES = MOST + WIDTH * sizeof(float);
};

/* Says where a thread's operands come from, and begins to copy them. In shared memory, the
 * thread's pieces of x come first, then its pieces of W. Pieces of one thread are THREADS
 * apart. */
template <typename T, int HIGH, int GROUPS> struct operands {
    const T *w, *x;       /* the thread's columns of step 0, in the first tile and in row 0 */
    uint32_t row[GROUPS]; /* where the thread's rows of x begin, in units of 8 numbers */
    int outputs, rows;    /* number that remains, including the first tile and row[0] */
    size_t eight_rows;    /* distance between rows i and i + 8 of W, in numbers */

    /* These functions begin to copy to `to` what the thread multiplies in step `step`. */
    __device__ __forceinline__ void begin_weights(uint4 *to, int step) const
    {
        const size_t column = (size_t)step * STEP;
#pragma unroll
        for (int i = 0; i < 2 * HIGH; i++) {
            const bool there = i < 2 || i / 2 * ESP_CUDA_TILE < outputs;
            esp_copy_begin(to + (GROUPS + i) * THREADS,
                           w + (there ? i * eight_rows : 0) + column, there);
        }
    }
    __device__ __forceinline__ void begin_rows(uint4 *to, int step) const
    {
        const size_t column = (size_t)step * STEP;
#pragma unroll
        for (int j = 0; j < GROUPS; j++)
            esp_copy_begin(to + j * THREADS, x + 8 * (size_t)row[j] + column,
                           COLUMNS * j < rows);
    }
    /* Continues with the tiles that begin `by` outputs later. */
    __device__ __forceinline__ void advance(int by)
    {
        w += by / 8 * eight_rows;
        outputs -= by;
    }
};

template <typename T>
static __device__ __forceinline__ esp_eight<T> piece(const uint4 *from, int i)
{
    esp_eight<T> eight;
    eight.words = esp_shared_get(from + i * THREADS);
    return eight;
}

/* Multiplies the operands of a step, which are in shared memory. */
template <typename T, int HIGH, int GROUPS>
static __device__ __forceinline__ void multiply(const uint4 *from, float sum[HIGH][GROUPS][4])
{
    esp_eight<T> x[GROUPS];
#pragma unroll
    for (int j = 0; j < GROUPS; j++)
        x[j] = piece<T>(from, j);
#pragma unroll
    for (int h = 0; h < HIGH; h++) {
        const esp_eight<T> above = piece<T>(from, GROUPS + 2 * h);
        const esp_eight<T> below = piece<T>(from, GROUPS + 2 * h + 1);
#pragma unroll
        for (int j = 0; j < GROUPS; j++) {
            esp_mma(sum[h][j], above.pair[0], below.pair[0], above.pair[1], below.pair[1],
                    x[j].pair[0], x[j].pair[1], T());
            esp_mma(sum[h][j], above.pair[2], below.pair[2], above.pair[3], below.pair[3],
                    x[j].pair[2], x[j].pair[3], T());
        }
    }
}

/* Returns the address in shared memory of the thread's operands for step number i of its warp.
 * Step 0 uses the last stage, because the sums of the previous tiles leave AHEAD bytes of it
 * free. */
template <int HIGH, int GROUPS, int DEEP>
static __device__ __forceinline__ uint4 *stage_of(uint4 *ring, int i)
{
    return ring + (DEEP - 1 + i) % DEEP * tiling<HIGH, GROUPS, DEEP>::STAGE + threadIdx.x;
}

/* Begins to copy the weights of the warp's steps from..to-1. */
template <typename T, int HIGH, int GROUPS, int DEEP>
static __device__ __forceinline__ void begin_weights(const struct operands<T, HIGH, GROUPS> &of,
                                                     uint4 *ring, int steps, int from, int to)
{
    const int warp = threadIdx.x / ESP_WARP;
#pragma unroll
    for (int i = from; i < to; i++)
        if (warp + i * WARPS < steps)
            of.begin_weights(stage_of<HIGH, GROUPS, DEEP>(ring, i), warp + i * WARPS);
}

/* Begins to copy the first operands of the block's tiles. The weights of the first `begun`
 * steps are already being copied. */
template <typename T, int HIGH, int GROUPS, int DEEP>
static __device__ __forceinline__ void begin_tiles(const struct operands<T, HIGH, GROUPS> &of,
                                                   uint4 *ring, int steps, int begun)
{
    const int warp = threadIdx.x / ESP_WARP;
#pragma unroll
    for (int i = 0; i < DEEP - 1; i++) {
        if (i >= begun)
            begin_weights<T, HIGH, GROUPS, DEEP>(of, ring, steps, i, i + 1);
        if (warp + i * WARPS < steps)
            of.begin_rows(stage_of<HIGH, GROUPS, DEEP>(ring, i), warp + i * WARPS);
        esp_copy_group();
    }
}

/* Multiplies all steps of the warp. The operands of its first steps are already being copied.
 */
template <typename T, int HIGH, int GROUPS, int DEEP>
static __device__ __forceinline__ void
multiply_steps(const struct operands<T, HIGH, GROUPS> &of, uint4 *ring, int steps,
               float sum[HIGH][GROUPS][4])
{
    typedef struct tiling<HIGH, GROUPS, DEEP> Z;
    uint4 *const mine = ring + threadIdx.x;
    int stage = Z::STAGES - 1, next = Z::STAGES - 2;
    for (int step = threadIdx.x / ESP_WARP; step < steps; step += WARPS) {
        const int ahead = step + (Z::STAGES - 1) * WARPS;
        if (ahead < steps) {
            of.begin_weights(mine + next * Z::STAGE, ahead);
            of.begin_rows(mine + next * Z::STAGE, ahead);
        }
        esp_copy_group();
        esp_copy_wait<Z::STAGES - 1>();
        multiply<T, HIGH, GROUPS>(mine + stage * Z::STAGE, sum);
        stage = stage + 1 == Z::STAGES ? 0 : stage + 1;
        next = next + 1 == Z::STAGES ? 0 : next + 1;
    }
}

/* Finds the operands of a thread for the block's first tiles. padded: number of outputs of an
 * expert's matrix, with padding. */
template <typename T, int HIGH, int GROUPS>
static __device__ __forceinline__ void
find_operands(const struct matmul_args<T> &a, const struct esp_cuda_span &s, size_t padded,
              struct operands<T, HIGH, GROUPS> *of)
{
    const int tile = blockIdx.x * ESP_CUDA_TILE * HIGH;
    const int group = threadIdx.x % ESP_WARP / 4, t = threadIdx.x % 4;
    of->w = a.w + (s.expert * padded + tile + group) * a.w_stride + 8 * t;
    of->x = a.x + 8 * t;
    of->eight_rows = 8 * a.w_stride;
    of->outputs = a.outputs - tile;
    of->rows = s.end - s.first - group;
#pragma unroll
    for (int j = 0; j < GROUPS; j++)
        of->row[j] =
            (uint32_t)(esp_cuda_row_of(s, s.first + COLUMNS * j + group) * (a.x_stride / 8));
}

template <typename T, int HIGH, int GROUPS, int DEEP>
static __global__ void __launch_bounds__(THREADS, tiling<HIGH, GROUPS, DEEP>::BLOCKS)
    matmul_kernel(struct esp_cuda_arrays at, struct matmul_args<T> a)
{
    typedef struct tiling<HIGH, GROUPS, DEEP> Z;
    /* Operands (STAGES, PIECES, THREADS), which the sums (WARPS, HEIGHT, WIDTH) later
     * overwrite; after them, the factors of the rows (WIDTH). */
    ESP_SHARED(uint4, ring);
    float *factor = reinterpret_cast<float *>(ring + Z::MOST / sizeof *ring);
    float2 *parts = reinterpret_cast<float2 *>(ring);
    const bool logits = a.epilogue == ESP_CUDA_LOGITS;
    esp_let_next_begin();
    if (a.mixture.tiles) /* previous kernels compute these tiles */
        esp_wait_previous();
    const struct esp_cuda_span s = esp_cuda_span_of(at, a.mixture, logits, Z::WIDTH);
    if (s.first >= s.end) {
        esp_wait_previous();
        return;
    }
    const size_t padded = esp_cuda_pad(a.outputs, ESP_CUDA_TILE);
    const float *bias = a.bias ? a.bias + s.expert * padded : NULL;
    struct operands<T, HIGH, GROUPS> of;
    find_operands(a, s, padded, &of);
    begin_weights<T, HIGH, GROUPS, DEEP>(of, ring, a.steps, 0, DEEP - 1);
    esp_wait_previous();
    begin_tiles<T, HIGH, GROUPS, DEEP>(of, ring, a.steps, DEEP - 1);
    if (a.normed)
        find_factors<GROUPS>(a.squares, s, factor);
    const int by = gridDim.x * Z::HEIGHT;
    for (bool more = true; more;) {
        float sum[HIGH][GROUPS][4] = {};
        multiply_steps<T, HIGH, GROUPS, DEEP>(of, ring, a.steps, sum);
        const int first = a.outputs - of.outputs;
        more = Z::PERSISTENT && of.outputs > by;
        __syncthreads(); /* below, the sums overwrite the operands */
        esp_cuda_leave_sums<HIGH, GROUPS>(parts, sum);
        if (more) {
            of.advance(by);
            begin_weights<T, HIGH, GROUPS, DEEP>(of, ring, a.steps, 0, 1);
        }
        __syncthreads();
        finish_tiles(at, a, parts, factor, s, bias, first, HIGH, Z::WIDTH / 2);
        if (more) {
            __syncthreads(); /* below, operands overwrite the sums */
            begin_tiles<T, HIGH, GROUPS, DEEP>(of, ring, a.steps, 1);
        }
    }
    if (logits)
        esp_cuda_fill_logits(at, s, a.outputs);
}

template <typename T, int HIGH, int GROUPS, int DEEP>
static struct esp_cuda_variant<struct matmul_args<T>> variant_of() {
    typedef struct tiling<HIGH, GROUPS, DEEP> Z;
    return {matmul_kernel<T, HIGH, GROUPS, DEEP>,
            Z::WIDTH,
            Z::HEIGHT,
            Z::BYTES,
            (DEEP - 1) * 2 * HIGH *THREADS *(int)sizeof(uint4),
            Z::AHEAD,
            esp_cuda_end_cycles(HIGH, Z::WIDTH),
            0,
            0};
}

enum {
    VARIANTS = 11
};

template <typename T> static const struct esp_cuda_variant<struct matmul_args<T>> *variants() {
    static const struct esp_cuda_variant<struct matmul_args<T>> all[VARIANTS] = {
        variant_of<T, 1, 1, 4>(), variant_of<T, 1, 2, 4>(), variant_of<T, 2, 2, 3>(),
            variant_of<T, 1, 4, 3>(), variant_of<T, 2, 4, 3>(), variant_of<T, 2, 8, 2>(),
            variant_of<T, 2, 8, 3>(), variant_of<T, 2, 8, 4>(), variant_of<T, 3, 8, 3>(),
            variant_of<T, 4, 8, 3>(), variant_of<T, 5, 8, 3>()
    };
    return all;
}

template <typename T>
static struct matmul_args<T> args_of(const struct esp_cuda_cache *c,
                                     const struct esp_cuda_product *p) {
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    struct matmul_args<T> a = {
    };
    a.w = (const T *)p->w->data;
    a.w_stride = p->w->stride;
    a.bias = p->w->bias;
    a.outputs = p->w->rows;
    a.steps = (int)(p->w->stride / STEP);
    a.x = (const T *)p->x;
    a.x_stride = p->x_stride;
    a.epilogue = p->epilogue;
    a.activation = d->activation;
    a.clamp = d->clamp;
    a.y = p->y;
    a.y_stride = p->y_stride;
    a.out = (T *)p->out;
    a.out_stride = p->out_stride;
    return a;
}

/* Returns whether blocks of a variant occupy the device. They do if 15 of 32 multiprocessors
 * have a block and 20 KB of weights are being copied for each multiprocessor. That many blocks
 * can use the whole bandwidth of memory and of the second-level cache. This cache limits a
 * product of many rows, and higher blocks read the activations from it less often. */
template <typename A>
static bool occupies(const struct esp_cuda_backend *backend,
                     const struct esp_cuda_variant<A> *v, int outputs)
{
    enum { UNDER_WAY = 20480, MANY = 15, OF = 32 };
    const size_t blocks = (outputs + v->height - 1) / v->height;
    const size_t here = backend->multiprocessors;
    return OF * blocks >= MANY * here && blocks * v->flight >= UNDER_WAY * here;
}

template <typename T>
void esp_cuda_matmul(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int rows)
{
    struct matmul_args<T> a = args_of<T>(c, p);
    a.mixture = esp_cuda_mixture_of(c, p);
    a.normed = p->normed;
    a.squares = esp_cuda_squares_of(c);
    a.begins = p->next != NULL;
    if (a.begins) {
        a.next = esp_cuda_norm_args_of(c, p->next);
        a.next.weight += p->first;
        a.squares.sum += p->first / ESP_CUDA_TILE;
        a.out = (T *)c->normed + p->first;
    }
    const struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const int most = p->tile > 0 ? p->tile : rows;
    const struct esp_cuda_variant<struct matmul_args<T>> *v = esp_cuda_choose_variant(
        backend, variants<T>(), VARIANTS, most < TOGETHER ? most : TOGETHER,
        [&](const auto *one, const auto *before) {
            return one->height == before->height || occupies(backend, one, a.outputs);
        });
    esp_cuda_launch_product(c, p, 1, v, a, (a.outputs + v->height - 1) / v->height,
                            esp_cuda_spans_of(c, p, rows, v->width), rows);
}

int esp_cuda_matmul_prepare(struct esp_cuda_backend *backend)
{
    int status = esp_cuda_allow_variants(backend, variants<esp_bf16>(), VARIANTS);
    return status < 0 ? status
                      : esp_cuda_allow_variants(backend, variants<esp_f16>(), VARIANTS);
}

/* ------------------------------------------------------------------ work after cuBLASLt */

/* Does the work of finish_tiles() for a product that cuBLASLt has written to memory. STORE and
 * ADD only add the bias. LOGITS also fills the columns beyond the model's vocabulary. */
template <typename T>
static __global__ void finish_kernel(struct esp_cuda_arrays at, struct matmul_args<T> a,
                                     const float *product, size_t product_stride)
{
    const int i = blockIdx.y * THREADS + threadIdx.x, half = ESP_CUDA_TILE / 2;
    const size_t row = blockIdx.x;
    if (row >= (size_t)(a.epilogue == ESP_CUDA_LOGITS ? at.pass->wanted : at.pass->rows))
        return;
    if (a.epilogue == ESP_CUDA_GATED) {
        const int gate = i / half * ESP_CUDA_TILE + i % half, up = gate + half;
        const float *y = product + row * product_stride;
        if (up < a.outputs)
            a.out[row * a.out_stride + i] = esp_from_float<T>(
                esp_activated(a.activation, a.clamp, y[gate] + (a.bias ? a.bias[gate] : 0.0f),
                              y[up] + (a.bias ? a.bias[up] : 0.0f)));
    } else if (a.epilogue == ESP_CUDA_ACTIVATED) {
        if (i < a.outputs)
            a.out[row * a.out_stride + i] = esp_from_float<T>(esp_activated(
                a.activation, a.clamp,
                product[row * product_stride + i] + (a.bias ? a.bias[i] : 0.0f), 1.0f));
    } else if (a.epilogue == ESP_CUDA_LOGITS) {
        float *logits = at.pass->logits + at.wanted_at[row] * at.pass->logits_stride;
        if (i >= a.outputs && i < at.pass->logits_vocabulary)
            logits[i] = -1e30f;
        else if (i < at.pass->logits_vocabulary && a.bias)
            logits[i] += a.bias[i];
    } else if (i < a.outputs && a.bias) {
        a.y[row * a.y_stride + i] += a.bias[i];
    }
}

template <typename T>
void esp_cuda_finish(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                     const float *product, size_t product_stride, int rows)
{
    const size_t width = p->epilogue == ESP_CUDA_LOGITS ? p->columns : (size_t)p->w->rows;
    ESP_LAUNCH((finish_kernel<T>), dim3(rows, (unsigned)((width + THREADS - 1) / THREADS)),
               dim3(THREADS), 0, esp_cuda_backend_of(c)->stream, c->at, args_of<T>(c, p),
               product, product_stride);
}

template void esp_cuda_matmul<esp_bf16>(struct esp_cuda_cache *,
                                        const struct esp_cuda_product *, int);
template void esp_cuda_matmul<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_product *,
                                       int);
template void esp_cuda_finish<esp_bf16>(struct esp_cuda_cache *,
                                        const struct esp_cuda_product *, const float *, size_t,
                                        int);
template void esp_cuda_finish<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_product *,
                                       const float *, size_t, int);
