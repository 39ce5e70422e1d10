/* softmax.cu - logits to probabilities in place: temperature, top-k, top-p. One block per row.
 *
 * The row is read once; as much of it as fits stays in shared memory (48,000 values of 227
 * KiB), the rest is read again from the cache of the device. Few long rows would leave most of
 * the device idle, they go to softmax_parts.cu. The steps are those of softmax.h in both.
 */
#include "cuda/softmax.h"

enum { MOST_THREADS = 1024, LEAST_THREADS = 64 };

namespace
{

struct plan {
    float factor; /* 1 / temperature */
    int top_k;    /* 0: all */
    double top_p;
    size_t room; /* bytes for each step in turn */
    int held;    /* values kept in shared memory */
};

} // namespace

static __global__ void __launch_bounds__(MOST_THREADS)
    softmax(float *data, size_t stride, int n, const int32_t *which, struct plan plan,
            int *numeric)
{
    ESP_SHARED(unsigned char, shared); /* (room), values held */
    struct esp_select_room *bins = reinterpret_cast<struct esp_select_room *>(shared);
    double *sums = reinterpret_cast<double *>(shared);
    const struct esp_walk w = {data + (size_t)which[blockIdx.x] * stride,
                               reinterpret_cast<float *>(shared + plan.room), 0, n, plan.held};
    const struct esp_walk_values f = {&w};
    const float top = esp_softmax_top(&w, reinterpret_cast<float *>(shared));
    if (!esp_finite(top)) {
        if (threadIdx.x == 0)
            *numeric = 1;
        return;
    }
    uint64_t cut = ESP_NO_RANK;
    if (plan.top_k > 0 && plan.top_k < n) {
        cut = esp_select(&w, esp_softmax_best(plan.top_k), bins);
        __syncthreads();
    }
    esp_softmax_raise(&w, top, plan.factor, cut);
    double total = esp_block_total(f, n, sums);
    if (plan.top_p < 1.0) {
        const struct esp_selection mass = esp_softmax_mass(plan.top_p, total, n);
        cut = esp_select(&w, mass, bins);
        esp_softmax_lower(&w, mass.least, cut);
        total = esp_block_total(f, n, sums);
    }
    esp_softmax_scale(&w, total);
}

/* Bins of a selection, or the sums of chunks. */
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
    double factor = 1.0 / sampling->temperature;
    factor = factor > FLT_MAX ? FLT_MAX : factor < FLT_MIN ? FLT_MIN : factor;
    if (esp_cuda_softmax_splits(r, count))
        return esp_cuda_launch_softmax_parts(r, which, count, (float)factor, sampling);
    while (threads < MOST_THREADS && threads * 4 < n)
        threads *= 2;
    if (room + (size_t)chunks * chunk > r->shared_limit)
        chunks = (int)((r->shared_limit - room) / chunk);
    const struct plan plan = {(float)factor, sampling->top_k, sampling->top_p, room,
                              chunks * ESP_HELD_CHUNK};
    ESP_LAUNCH(softmax, count, threads, room + (size_t)chunks * chunk, b->stream, r->data,
               r->stride, n, which, plan, r->numeric);
    ESP_CUDA_LAUNCHED(b, "softmax");
    return ESP_OK;
}
