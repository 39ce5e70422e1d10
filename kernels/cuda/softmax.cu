/* softmax.cu - logits to probabilities in place: temperature, top-k, top-p. One block per row.
 *
 * The row is read once; as much of it as fits stays in shared memory (50,000 values on an
 * H100), the rest is read again from the cache of the device. The exponential is that of
 * cpu/simd.h operation by operation, and sums are added in the CPU's order (total.h), so
 * probabilities equal the CPU backend's to the last bit.
 *
 * top-k and top-p look for one number, the last rank to be kept (rank.h); nothing is sorted.
 * For top-p the weights are the exponentials as multiples of a 2^61st of a power of two above
 * their total, exact but for what lies below 2^-37 of it.
 */
#include "cuda/rank.h"
#include "cuda/total.h"

#include <cfloat>

enum { MOST_THREADS = 1024, LEAST_THREADS = 64 };

namespace
{

struct plan {
    float factor; /* 1 / temperature */
    int top_k;    /* 0: all */
    double top_p;
    int held; /* values kept in shared memory */
};

struct values {
    const struct esp_walk *w;

    __device__ double operator()(int i) const
    {
        return i < w->held ? w->kept[esp_held_place(i)] : w->row[i];
    }
};

} // namespace

/* e^x for x <= 0, as v16_exp() computes it. */
static __device__ __forceinline__ float exponential(float x)
{
    const float round = 0x1.8p23f;
    const float y = x > -87.0f ? x : -87.0f;
    const float shifted = fmaf(y, 0x1.715476p+0f, round); /* its low bits hold n */
    const float n = shifted - round;
    float r = fmaf(n, -0x1.62e4p-1f, y);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = fmaf(0x1.6a4d5ap-10f, r, 0x1.12398ep-7f);
    p = fmaf(p, r, 0x1.5558b0p-5f);
    p = fmaf(p, r, 0x1.555492p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r * r, r) + 1.0f;
    return x < -87.0f ? 0.0f : p * esp_float((esp_bits(shifted) + 127) << 23);
}

/* Fetches what is kept, and returns the largest value; infinity if one is not a number. */
static __device__ float fetch(const struct esp_walk *w, float *room)
{
    float top = -INFINITY;
    for (int i = 4 * (int)threadIdx.x; i < w->n; i += 4 * (int)blockDim.x) {
        const float4 four = *reinterpret_cast<const float4 *>(w->row + i);
        const float value[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4 && i + j < w->n; j++)
            top = value[j] <= top ? top : value[j] == value[j] ? value[j] : INFINITY;
        if (i < w->held)
            esp_walk_store(w, i, four);
    }
    top = esp_warp_max(top);
    if (threadIdx.x % ESP_WARP == 0)
        room[threadIdx.x / ESP_WARP] = top;
    __syncthreads();
    top = room[0];
    for (int i = 1; i < (int)blockDim.x / ESP_WARP; i++)
        top = room[i] > top ? room[i] : top;
    __syncthreads();
    return top;
}

/* Values become e^((value - top) factor), or 0 past the rank `cut`. */
static __device__ void exponentiate(const struct esp_walk *w, float top, float factor,
                                    uint64_t cut)
{
    for (int i = 4 * (int)threadIdx.x; i < w->n; i += 4 * (int)blockDim.x) {
        float4 four = esp_walk_load(w, i);
        float value[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4; j++)
            value[j] = i + j < w->n && esp_rank(value[j], i + j) <= cut
                           ? exponential((value[j] - top) * factor)
                           : 0.0f;
        esp_walk_store(w, i, make_float4(value[0], value[1], value[2], value[3]));
    }
    __syncthreads();
}

/* Zeroes what top-p leaves out and returns the sum of the rest. What is not above `least`
 * cannot be needed: all of it together is less than half of the mass that may go. */
static __device__ double keep_mass(const struct esp_walk *w, double top_p, double total,
                                   void *room)
{
    struct esp_selection s;
    s.least = (float)(0.5 * (1.0 - top_p) * total / w->n);
    s.weigh = scalbn(1.0, 60 - ilogb(total));
    s.want = (uint64_t)ceil(top_p * total * s.weigh);
    s.want = s.want > 0 ? s.want : 1;
    const uint64_t cut = esp_select(w, s, static_cast<struct esp_select_room *>(room));
    for (int i = 4 * (int)threadIdx.x; i < w->n; i += 4 * (int)blockDim.x) {
        float4 four = esp_walk_load(w, i);
        float value[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4; j++)
            if (!(value[j] > s.least) || esp_rank(value[j], i + j) > cut)
                value[j] = 0.0f;
        esp_walk_store(w, i, make_float4(value[0], value[1], value[2], value[3]));
    }
    __syncthreads();
    const struct values f = {w};
    return esp_block_total(f, w->n, static_cast<double *>(room));
}

static __global__ void __launch_bounds__(MOST_THREADS)
    softmax(float *data, size_t stride, int n, const int32_t *which, struct plan plan,
            int *numeric, size_t room_bytes)
{
    ESP_SHARED(unsigned char, room); /* (room_bytes) for each step in turn, values kept */
    const struct esp_walk w = {data + (size_t)which[blockIdx.x] * stride,
                               reinterpret_cast<float *>(room + room_bytes), n, plan.held};
    const struct values f = {&w};
    const float top = fetch(&w, reinterpret_cast<float *>(room));
    if (!(fabsf(top) <= FLT_MAX)) {
        if (threadIdx.x == 0)
            *numeric = 1;
        return;
    }
    uint64_t cut = ESP_NO_RANK;
    if (plan.top_k > 0 && plan.top_k < n) {
        const struct esp_selection best = {(uint64_t)plan.top_k, 0.0, 0.0f};
        cut = esp_select(&w, best, reinterpret_cast<struct esp_select_room *>(room));
        __syncthreads();
    }
    exponentiate(&w, top, plan.factor, cut);
    double total = esp_block_total(f, n, reinterpret_cast<double *>(room));
    if (plan.top_p < 1.0)
        total = keep_mass(&w, plan.top_p, total, room);
    const float inverse = (float)(1.0 / total);
    for (int i = 4 * (int)threadIdx.x; i < n; i += 4 * (int)blockDim.x) {
        const float4 four = esp_walk_load(&w, i);
        *reinterpret_cast<float4 *>(w.row + i) =
            make_float4(four.x * inverse, four.y * inverse, four.z * inverse, four.w * inverse);
    }
}

/* Bytes for the steps: bins of a selection, or the sums of chunks. */
static size_t room_for(int n)
{
    size_t sums = (size_t)esp_chunks(n) * sizeof(double), bins = sizeof(struct esp_select_room);
    size_t most = sums > bins ? sums : bins;
    return (most + 15) / 16 * 16;
}

int esp_cuda_softmax_prepare(struct esp_cuda_rows *r)
{
    struct esp_cuda_backend *b = esp_cuda_of(&r->base);
    int device, limit;
    ESP_CUDA(b, cudaGetDevice(&device));
    ESP_CUDA(b,
             cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    ESP_CUDA(b,
             cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    r->shared_limit = (size_t)limit;
    return ESP_OK;
}

int esp_cuda_launch_softmax(struct esp_cuda_rows *r, const int32_t *which, int count,
                            const struct esp_sampling *sampling)
{
    struct esp_cuda_backend *b = esp_cuda_of(&r->base);
    const int n = r->base.vocabulary;
    const size_t room = room_for(n), chunk = ESP_HELD_ROOM * sizeof(float);
    int threads = LEAST_THREADS, chunks = esp_chunks(n);
    while (threads < MOST_THREADS && threads * 4 < n)
        threads *= 2;
    if (room + (size_t)chunks * chunk > r->shared_limit)
        chunks = (int)((r->shared_limit - room) / chunk);
    double factor = 1.0 / sampling->temperature;
    factor = factor > FLT_MAX ? FLT_MAX : factor < FLT_MIN ? FLT_MIN : factor;
    const struct plan plan = {(float)factor, sampling->top_k, sampling->top_p,
                              chunks * ESP_HELD_CHUNK};
    ESP_LAUNCH(softmax, count, threads, room + (size_t)chunks * chunk, b->stream, r->data,
               r->stride, n, which, plan, r->numeric, room);
    ESP_CUDA_LAUNCHED(b, "softmax");
    return ESP_OK;
}
