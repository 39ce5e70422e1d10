/* softmax.cu - turns logits into probabilities in place, with temperature, top-k and top-p.
 * There is one block per row.
 *
 * A row is read from memory once. As many values as fit stay in shared memory (48,000 values in
 * 227 KiB). The other values are read again from the second-level cache. If there are few long
 * rows, most of the device would be idle, so softmax_parts.cu computes these rows. Both files
 * use the steps of softmax.h.
 */
#include "kernels/cuda/softmax.h"

#include <cmath>

enum { MOST_THREADS = 1024, LEAST_THREADS = 64 };

namespace
{

struct plan {
    int threads;
    size_t room;   /* bytes of shared memory that all steps reuse */
    int held;      /* number of values kept in shared memory */
    size_t shared; /* total bytes of shared memory */
};

} // namespace

template <class From>
static __global__ void __launch_bounds__(MOST_THREADS) softmax(From from, size_t room, int held)
{
    ESP_SHARED(unsigned char, shared); /* `room` bytes, and then the held values */
    const struct esp_cuda_job job = from();
    struct esp_select_room *bins = reinterpret_cast<struct esp_select_room *>(shared);
    double *sums = reinterpret_cast<double *>(shared);
    if ((int)blockIdx.x >= job.rows)
        return;
    const struct esp_walk w =
        esp_softmax_row(&job, 0, job.n, reinterpret_cast<float *>(shared + room), held);
    const struct esp_walk_values f = {&w};
    const float top = esp_softmax_top(&w, reinterpret_cast<float *>(shared));
    if (!esp_finite(top)) {
        if (threadIdx.x == 0)
            *job.numeric = 1;
        return;
    }
    uint64_t cut = ESP_NO_RANK;
    if (job.step.top_k > 0 && job.step.top_k < job.n) {
        cut = esp_select(&w, esp_softmax_best(job.step.top_k), bins);
        __syncthreads();
    }
    esp_softmax_raise(&w, top, job.step.factor, cut);
    double total = esp_block_total(f, job.n, sums);
    if (job.step.top_p < 1.0) {
        const struct esp_selection mass = esp_softmax_mass(job.step.top_p, total, job.n);
        cut = esp_select(&w, mass, bins);
        esp_softmax_lower(&w, mass.least, cut);
        total = esp_block_total(f, job.n, sums);
    }
    esp_softmax_scale(&w, total);
}

int esp_cuda_softmax_prepare(struct esp_cuda_backend *b)
{
    const void *given = (const void *)softmax<struct esp_cuda_job_given>;
    const void *of_pass = (const void *)softmax<struct esp_cuda_job_of_pass>;
    int status = esp_cuda_allow_shared(b, given, b->shared_limit);
    return status < 0 ? status : esp_cuda_allow_shared(b, of_pass, b->shared_limit);
}

float esp_cuda_softmax_factor(double temperature)
{
    const double factor = 1.0 / temperature;
    return (float)(factor > FLT_MAX ? FLT_MAX : factor < FLT_MIN ? FLT_MIN : factor);
}

static struct plan plan_for(const struct esp_cuda_backend *b, int n)
{
    const size_t sums = (size_t)esp_chunks(n) * sizeof(double),
                 bins = sizeof(struct esp_select_room), chunk = ESP_HELD_ROOM * sizeof(float);
    struct plan plan = {LEAST_THREADS, ((sums > bins ? sums : bins) + 15) / 16 * 16, 0, 0};
    int chunks = esp_chunks(n);
    while (plan.threads < MOST_THREADS && plan.threads * 4 < n)
        plan.threads *= 2;
    if (plan.room + (size_t)chunks * chunk > b->shared_limit)
        chunks = (int)((b->shared_limit - plan.room) / chunk);
    plan.held = chunks * ESP_HELD_CHUNK;
    plan.shared = plan.room + (size_t)chunks * chunk;
    return plan;
}

template <class From>
static void launch(struct esp_cuda_backend *b, const From &from, int n, int rows)
{
    const struct plan plan = plan_for(b, n);
    ESP_LAUNCH(softmax<From>, rows, plan.threads, plan.shared, b->stream, from, plan.room,
               plan.held);
}

int esp_cuda_softmax(struct esp_rows *rows, const int32_t *which, int count,
                     const struct esp_sampling *sampling)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const int32_t *asked;
    if (!esp_sampling_fits(sampling))
        return esp_cuda_refuse(rows);
    const int status = esp_cuda_ask(rows, which, count, 0, &asked);
    if (!asked)
        return status;
    struct esp_cuda_job_given given = {esp_cuda_job_for(esp_cuda_rows_of(rows), asked, count)};
    given.job.step.factor = esp_cuda_softmax_factor(sampling->temperature);
    given.job.step.top_k = sampling->top_k;
    given.job.step.top_p = sampling->top_p;
    if (esp_cuda_softmax_splits(b, given.job.n, count))
        esp_cuda_softmax_parts(b, given);
    else
        launch(b, given, given.job.n, count);
    return esp_cuda_launch_status(b, "softmax");
}

void esp_cuda_step_softmax(struct esp_cuda_cache *c, int rows)
{
    struct esp_cuda_backend *b = esp_cuda_backend_of(c);
    const struct esp_cuda_job_of_pass pass = {c->at.pass, c->at.wanted_at, b->numeric};
    const int n = esp_model_desc_tokens(esp_cuda_desc_of(c));
    if (esp_cuda_softmax_splits(b, n, rows))
        esp_cuda_softmax_parts(b, pass, n, rows);
    else
        launch(b, pass, n, rows);
}
