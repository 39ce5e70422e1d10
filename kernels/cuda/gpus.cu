/* gpus.cu - opens several GPUs, and decides how they divide a model; see gpus.h. */
#include "kernels/cuda/gpus.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "kernels/clock.h"
}

/* ------------------------------------------------------------------ NCCL */

static int nccl_failed(struct esp_cuda_gpus *gpus, const char *function, int result)
{
    struct esp_cuda_backend *program = gpus->backend[0];
    snprintf(program->failure, sizeof program->failure, "nccl%s failed: %s", function,
             gpus->call.GetErrorString(result));
    program->answers = 0;
    return ESP_E_DEVICE;
}

#define NCCL(gpus, function, ...)                                                              \
    do {                                                                                       \
        const int nccl_result = (gpus)->call.function(__VA_ARGS__);                            \
        if (nccl_result != ESP_NCCL_SUCCESS)                                                   \
            return nccl_failed((gpus), #function, nccl_result);                                \
    } while (0)

/* This function must not return between ncclGroupStart() and ncclGroupEnd(), even if a call
 * fails. */
int esp_cuda_all_gather(struct esp_cuda_gpus *gpus, char *const *at, size_t bytes)
{
    int result = ESP_NCCL_SUCCESS;
    NCCL(gpus, GroupStart);
    for (int i = 0; i < gpus->count && result == ESP_NCCL_SUCCESS; i++)
        result = gpus->call.AllGather(at[i] + i * bytes, at[i], bytes, ESP_NCCL_BYTES,
                                      gpus->comm[i], gpus->backend[i]->stream);
    const int ended = gpus->call.GroupEnd();
    esp_cuda_forget_device();
    if (result != ESP_NCCL_SUCCESS)
        return nccl_failed(gpus, "AllGather", result);
    return ended == ESP_NCCL_SUCCESS ? (int)ESP_OK : nccl_failed(gpus, "GroupEnd", ended);
}

/* ------------------------------------------------------------------ costs */

/* Times `count` all-gathers, and sets *seconds to the average time of an all-gather. */
static int time_gathers(struct esp_cuda_gpus *gpus, char *const *at, size_t bytes, int count,
                        double *seconds)
{
    double began = 0;
    for (int i = 0; i <= count; i++) { /* the first all-gather is not timed */
        int status = esp_cuda_all_gather(gpus, at, bytes);
        if (status < 0)
            return status;
        if (i > 0 && i < count)
            continue;
        for (int r = 0; r < gpus->count; r++) {
            esp_cuda_enter(&gpus->backend[r]->base);
            ESP_CUDA(gpus->backend[0], cudaStreamSynchronize(gpus->backend[r]->stream));
        }
        if (i == 0)
            began = esp_clock();
    }
    *seconds = (esp_clock() - began) / count;
    return ESP_OK;
}

/* Measures how fast a GPU reads its memory. The GPU reads more bytes than its cache holds. */
static int measure_reading(struct esp_cuda_gpus *gpus)
{
    enum { SHARE = 256 };
    static const size_t MOST = (size_t)256 << 20;
    struct esp_cuda_backend *program = gpus->backend[0];
    size_t left, total;
    esp_cuda_enter(&program->base);
    ESP_CUDA(program, cudaMemGetInfo(&left, &total));
    gpus->costs.read =
        esp_cuda_read_rate(&program->base, total / SHARE < MOST ? total / SHARE : MOST);
    return gpus->costs.read > 0
               ? (int)ESP_OK
               : esp_cuda_failed(program, "measuring the read rate", cudaErrorUnknown);
}

/* Measures what an exchange costs, and how fast a GPU reads its memory. The first all-gather
 * also lets NCCL allocate its buffers before a pass is captured. */
static int measure(struct esp_cuda_gpus *gpus)
{
    enum { SMALL = 64, LARGE = 1 << 20, RUNS = 16 };
    char *at[ESP_MAX_RANKS] = {};
    double large = 0;
    int status = ESP_OK;
    for (int r = 0; r < gpus->count && status == ESP_OK; r++) {
        esp_cuda_enter(&gpus->backend[r]->base);
        if (!esp_cuda_fine(cudaMalloc((void **)&at[r], (size_t)gpus->count * LARGE)))
            status = esp_cuda_failed(gpus->backend[0], "cudaMalloc", cudaErrorMemoryAllocation);
    }
    if (status == ESP_OK)
        status = time_gathers(gpus, at, SMALL, RUNS, &gpus->costs.latency);
    if (status == ESP_OK)
        status = time_gathers(gpus, at, LARGE, RUNS, &large);
    for (int r = 0; r < gpus->count; r++) {
        esp_cuda_enter(&gpus->backend[r]->base);
        esp_cuda_fine(cudaFree(at[r]));
    }
    gpus->costs.rate = large > gpus->costs.latency
                           ? (double)(gpus->count - 1) * LARGE / (large - gpus->costs.latency)
                           : 1e12;
    return status < 0 ? status : measure_reading(gpus);
}

/* ------------------------------------------------------------------ opening */

static int check_options(const struct esp_cuda_backend *cuda, const struct esp_rank_options *o,
                         char *err, size_t errlen)
{
    int devices = 0;
    esp_cuda_fine(cudaGetDeviceCount(&devices));
    devices -= cuda->index;
    if (o->hosts || o->given || o->by_layers)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--backend cuda divides rows of matrices among GPUs of this machine; "
                        "%s is for --backend cpu",
                        o->by_layers ? "--ranks-split layers" : "a group of several machines");
    if (o->ranks > devices)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "--ranks %d with --backend cuda needs %d GPUs, but only %d %s available%s; give "
            "fewer ranks, or --backend cpu",
            o->ranks, o->ranks, devices, devices == 1 ? "is" : "are",
            cuda->index > 0 ? ", counted from the one that --device names" : "");
    return ESP_OK;
}

static int open_all(struct esp_cuda_gpus *gpus, char *err, size_t errlen)
{
    struct esp_cuda_backend *program = gpus->backend[0];
    int device[ESP_MAX_RANKS] = {program->index};
    for (int i = 1; i < gpus->count; i++) {
        const int status = esp_cuda_open_rank(program, i, &gpus->backend[i], err, errlen);
        if (status < 0)
            return status;
        device[i] = gpus->backend[i]->index;
    }
    const int result = gpus->call.CommInitAll(gpus->comm, gpus->count, device);
    esp_cuda_forget_device();
    int status =
        result == ESP_NCCL_SUCCESS ? (int)ESP_OK : nccl_failed(gpus, "CommInitAll", result);
    if (status == ESP_OK)
        status = measure(gpus);
    return status < 0 ? esp_cuda_tell(program, status, err, errlen) : status;
}

int esp_cuda_start_ranks(struct esp_backend *backend, const struct esp_rank_options *options,
                         char *err, size_t errlen)
{
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    esp_cuda_enter(backend);
    int status = check_options(cuda, options, err, errlen);
    if (status < 0)
        return status;
    struct esp_cuda_gpus *gpus = (struct esp_cuda_gpus *)calloc(1, sizeof *gpus);
    if (!gpus)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for several GPUs");
    gpus->count = options->ranks;
    gpus->options = *options;
    gpus->backend[0] = cuda;
    status = esp_nccl_load(&gpus->call)
                 ? open_all(gpus, err, errlen)
                 : esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "several GPUs need NCCL, but libnccl.so.2 was not found; install "
                            "libnccl2, or set ESPALIER_NCCL to its path (pip's nvidia-nccl "
                            "package contains it in nvidia/nccl/lib)");
    if (status < 0) {
        esp_cuda_gpus_close(gpus);
        return status;
    }
    cuda->gpus = gpus;
    const size_t length = strlen(cuda->device);
    snprintf(cuda->device + length, sizeof cuda->device - length, ", %d GPUs", gpus->count);
    return ESP_OK;
}

void esp_cuda_gpus_close(struct esp_cuda_gpus *gpus)
{
    if (!gpus)
        return;
    for (int i = 0; i < gpus->count; i++)
        if (gpus->comm[i])
            gpus->call.CommDestroy(gpus->comm[i]);
    esp_cuda_forget_device();
    for (int i = 1; i < gpus->count; i++)
        if (gpus->backend[i])
            esp_cuda_close_rank(gpus->backend[i]);
    free(gpus);
}

bool esp_cuda_rank_times(const struct esp_backend *backend, struct esp_rank_times *times)
{
    const struct esp_cuda_gpus *gpus = ((const struct esp_cuda_backend *)backend)->gpus;
    if (!gpus)
        return false;
    *times = {};
    times->latency = gpus->costs.latency;
    times->rate = gpus->costs.rate;
    times->starts = 1;
    return true;
}

/* ------------------------------------------------------------------ the plan */

/* Returns whether results of a kind must not be divided among ranks. This is so if a rank's
 * part would be empty or could not be copied in words of four bytes, or if a norm needs all
 * heads. */
static bool must_be_whole(const struct esp_rank_plan *plan, const struct esp_model_desc *d,
                          enum esp_rank_kind kind)
{
    bool whole = false;
    for (int r = 0; r < plan->ranks; r++)
        whole = whole || plan->begin[kind][r] == plan->begin[kind][r + 1];
    if (kind == ESP_RANK_ATTENTION)
        whole = whole || d->heads / d->kv_heads * d->head_dim % 2 != 0;
    for (int i = 0; i < d->layers && kind == ESP_RANK_ATTENTION; i++) {
        const struct esp_tensor *const norms[] = {&d->layer[i].query_norm,
                                                  &d->layer[i].key_norm};
        for (const struct esp_tensor *norm : norms) /* a norm of all heads together */
            whole = whole || (norm->data && norm->rows != d->head_dim);
    }
    return whole;
}

int esp_cuda_plan_ranks(struct esp_backend *backend, const struct esp_model_desc *desc,
                        struct esp_rank_plan *plan, struct esp_rank_costs *costs, char *err,
                        size_t errlen)
{
    const struct esp_cuda_gpus *gpus = ((const struct esp_cuda_backend *)backend)->gpus;
    *costs = gpus->costs;
    esp_rank_plan_make(plan, desc, &gpus->options);
    if (!gpus->options.planned)
        esp_rank_plan_choose(plan, desc, costs);
    for (int k = 0; k < ESP_RANK_KIND_COUNT; k++)
        if (must_be_whole(plan, desc, (enum esp_rank_kind)k))
            plan->whole |= 1u << k;
    return esp_rank_plan_fits(plan, desc)
               ? (int)ESP_OK
               : esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                          "this model cannot be divided among GPUs; leave out --ranks");
}
