/* times.cu - measures the kernels of a pass one by one, for tables of measurements.
 *
 * An event marks the end of each step. The pass is launched kernel by kernel, after an
 * identical pass that is not timed. While the device still computes the untimed pass, the host
 * already launches kernels of the timed pass. So the device never waits for the host in the
 * timed pass.
 */
#include "kernels/cuda/cuda.h"

#include <cstdlib>
#include <cstring>

enum { STEPS_OF_LAYER = 8, OTHER_STEPS = 8 };

struct step {
    const char *name;
    size_t bytes;
    cudaEvent_t end;
};

struct esp_cuda_times {
    struct step *step; /* step[0] marks the beginning of the pass */
    int count, room;
};

void esp_cuda_launched(struct esp_cuda_backend *backend, const char *name, size_t bytes)
{
    struct esp_cuda_times *times = backend->times;
    if (backend->prediction)
        esp_cuda_predicted(backend, name, bytes);
    if (!times || times->count == times->room)
        return;
    struct step *step = &times->step[times->count++];
    step->name = name;
    step->bytes = bytes;
    esp_cuda_fine(cudaEventRecord(step->end, backend->stream));
}

static void close(struct esp_cuda_times *times)
{
    for (int i = 0; i < times->room; i++)
        if (times->step[i].end)
            esp_cuda_fine(cudaEventDestroy(times->step[i].end));
    free(times->step);
}

static int open(struct esp_cuda_backend *backend, struct esp_cuda_times *times, int room)
{
    times->step = (struct step *)calloc((size_t)room, sizeof *times->step);
    if (!times->step)
        return ESP_E_MEMORY;
    times->room = room;
    for (int i = 0; i < room; i++)
        ESP_CUDA(backend, cudaEventCreate(&times->step[i].end));
    return ESP_OK;
}

static int run(struct esp_cuda_backend *backend, struct esp_cuda_times *times,
               struct esp_cache *cache, const struct esp_batch *batch)
{
    struct esp_cuda_times before = {};
    /* `before` has no room for steps, so this pass is not timed. But it is launched kernel by
     * kernel, because backend->times is set. */
    backend->times = &before;
    int status = esp_cuda_forward(cache, batch);
    backend->times = times;
    esp_cuda_launched(backend, "", 0);
    if (status == ESP_OK)
        status = esp_cuda_forward(cache, batch);
    backend->times = NULL;
    if (status == ESP_OK)
        ESP_CUDA(backend, cudaStreamSynchronize(backend->stream));
    return status;
}

/* Adds up the times of steps with the same name. Returns how many names there are. */
static int add_up(struct esp_cuda_backend *backend, const struct esp_cuda_times *times,
                  struct esp_kernel_time *kernel, int most)
{
    int count = 0;
    for (int i = 1; i < times->count; i++) {
        const struct step *step = &times->step[i];
        float milliseconds = 0.0f;
        int k = 0;
        ESP_CUDA(backend, cudaEventElapsedTime(&milliseconds, step[-1].end, step->end));
        while (k < count && strcmp(kernel[k].name, step->name) != 0)
            k++;
        if (k == most)
            continue;
        if (k == count)
            kernel[count++] = {step->name, 0, 0.0, 0.0};
        kernel[k].count++;
        kernel[k].seconds += milliseconds * 1e-3;
        kernel[k].bytes += (double)step->bytes;
    }
    return count;
}

int esp_cuda_time_kernels(struct esp_cache *cache, const struct esp_batch *batch,
                          struct esp_kernel_time *kernel, int most)
{
    struct esp_cuda_backend *backend = (struct esp_cuda_backend *)cache->weights->backend;
    const struct esp_model_desc *d = cache->weights->desc;
    struct esp_cuda_times times = {};
    if (batch->step)
        return esp_cuda_end(backend, ESP_E_ARGUMENT);
    esp_cuda_enter(&backend->base);
    int status = open(backend, &times, d->layers * STEPS_OF_LAYER + OTHER_STEPS);
    if (status == ESP_OK)
        status = run(backend, &times, cache, batch);
    if (status == ESP_OK)
        status = add_up(backend, &times, kernel, most);
    close(&times);
    return esp_cuda_end(backend, status);
}
