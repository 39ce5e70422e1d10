/* ratio.cu - compares two rows of probabilities, p and q, by sums over classes of tokens. The
 * class of a token follows from its ratio p/q (ratio.h).
 *
 * The probabilities of a class are added as integers, in units of 2^-60; for a probability
 * above 2^-37, the integer is exact. Integers have the same sum in any order, so all threads
 * can add concurrently. A block adds up its part of the row in shared memory, and then adds
 * these sums to arrays in device memory. The last block to finish converts the arrays to
 * doubles, and resets them to zero.
 */
#include "kernels/cuda/total.h"

enum { THREADS = 512, CLASSES = 2 * ESP_RATIO_CLASSES };

namespace
{

struct class_sums {
    /* The lower and upper 32 bits of each sum: first the sums of p, then the sums of q. */
    unsigned low[CLASSES], high[CLASSES];
    int last;
};

struct residual {
    enum { clears = false };
    const float *p, *q;   /* (n) */
    const double *factor; /* (ESP_RATIO_CLASSES) */

    __device__ double operator()(int token) const
    {
        const double x = p[token], y = q[token];
        const double share = esp_times(factor[esp_ratio_class(x, y)], y);
        const double left = esp_plus(x, -share);
        return left > 0.0 ? left : 0.0;
    }
};

} // namespace

static __device__ void add(struct class_sums *s, int at, float probability)
{
    if (!(probability > 0.0f))
        return;
    const float size = probability < 1.0f ? probability : 1.0f;
    esp_add_halves(&s->low[at], &s->high[at], (uint64_t)(size * 0x1p60));
}

static __global__ void __launch_bounds__(THREADS)
    masses(const float *p, const float *q, int n, unsigned long long *mass, unsigned *counter,
           double *p_mass, double *q_mass)
{
    ESP_SHARED(struct class_sums, s);
    for (int i = threadIdx.x; i < CLASSES; i += THREADS)
        s->low[i] = s->high[i] = 0;
    __syncthreads();
    const int end = n - (int)blockIdx.x * ESP_PART < ESP_PART ? n : (blockIdx.x + 1) * ESP_PART;
    for (int i = blockIdx.x * ESP_PART + threadIdx.x; i < end; i += THREADS) {
        const int ratio = esp_ratio_class(p[i], q[i]);
        add(s, ratio, p[i]);
        add(s, ESP_RATIO_CLASSES + ratio, q[i]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < CLASSES; i += THREADS) {
        const unsigned long long sum = (unsigned long long)s->high[i] << 32 | s->low[i];
        if (sum)
            atomicAdd(&mass[i], sum);
    }
    if (!esp_last_block(counter, gridDim.x, &s->last))
        return;
    for (int i = threadIdx.x; i < ESP_RATIO_CLASSES; i += THREADS) {
        p_mass[i] = (double)mass[i] * 0x1p-60;
        q_mass[i] = (double)mass[ESP_RATIO_CLASSES + i] * 0x1p-60;
        mass[i] = mass[ESP_RATIO_CLASSES + i] = 0;
    }
}

int esp_cuda_ratio_masses(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                          double *p_mass, double *q_mass)
{
    struct esp_cuda_backend *b = esp_cuda_of(p);
    struct esp_cuda_scratch *scratch = esp_cuda_rows_of(p)->scratch;
    const int n = p->vocabulary, parts = esp_parts(n);
    if (!esp_rows_fit(p, p_row, q, q_row, NULL, 0))
        return esp_cuda_refuse(p);
    const int status = esp_cuda_begin(p, 2 * esp_cuda_room<double>(ESP_RATIO_CLASSES));
    if (status < 0)
        return status;
    double *of_p = esp_cuda_promise(p, ESP_RATIO_CLASSES, p_mass);
    double *of_q = esp_cuda_promise(p, ESP_RATIO_CLASSES, q_mass);
    ESP_LAUNCH(masses, parts, THREADS, sizeof(struct class_sums), b->stream,
               esp_cuda_row(p, p_row), esp_cuda_row(q, q_row), n, scratch->mass,
               scratch->counter, of_p, of_q);
    return esp_cuda_finish(p, esp_cuda_launch_status(b, "ratio_masses"), ESP_NOW);
}

int esp_cuda_ratio_residual(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                            const double *factor, struct esp_rows *to, int to_row, double *sum)
{
    const double *factors = NULL;
    if (!esp_rows_fit(p, p_row, q, q_row, to, to_row))
        return esp_cuda_refuse(p);
    int status =
        esp_cuda_begin(p, esp_cuda_room<double>(ESP_RATIO_CLASSES) + esp_cuda_room<double>(1));
    if (status == ESP_OK)
        status = esp_cuda_put(p, factor, ESP_RATIO_CLASSES, &factors);
    const struct residual function = {esp_cuda_row(p, p_row), esp_cuda_row(q, q_row), factors};
    float *out = to ? esp_cuda_row(to, to_row) : NULL;
    return status < 0 ? status : esp_cuda_total(p, function, out, sum, "ratio_residual");
}
