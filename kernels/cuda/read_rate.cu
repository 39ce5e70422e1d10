/* read_rate.cu - measures how fast this device reads its memory. This rate limits the speed of
 * every pass with few rows.
 *
 * One large area of memory is read with 16-byte loads by as many threads as fit on the device.
 * The result is the rate of the fastest of several runs, timed by the device.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 512, BLOCKS_EACH = 4, RUNS = 8, UNROLL = 8 };

static __global__ void read_kernel(const uint4 *from, size_t count, uint32_t *sink)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t seen = 0;
    for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
        uint4 words[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; j++)
            words[j] = from[i + j * step];
#pragma unroll
        for (int j = 0; j < UNROLL; j++)
            seen |= words[j].x ^ words[j].y ^ words[j].z ^ words[j].w;
    }
    if (seen == 0x5a5a5a5au) /* never true; keeps the compiler from removing the reads */
        *sink = seen;
}

static int time_reads(struct esp_cuda_backend *cuda, char *memory, size_t bytes, double *rate)
{
    const dim3 grid(cuda->multiprocessors * BLOCKS_EACH);
    for (int i = 0; i < RUNS; i++) {
        float milliseconds = 0.0f;
        ESP_CUDA(cuda, cudaEventRecord(cuda->mark[0], cuda->stream));
        ESP_LAUNCH(read_kernel, grid, dim3(THREADS), 0, cuda->stream, (const uint4 *)memory,
                   bytes / sizeof(uint4), (uint32_t *)memory);
        const int status = esp_cuda_launch_status(cuda, "measuring the read rate");
        if (status < 0)
            return status;
        ESP_CUDA(cuda, cudaEventRecord(cuda->mark[1], cuda->stream));
        ESP_CUDA(cuda, cudaEventSynchronize(cuda->mark[1]));
        ESP_CUDA(cuda, cudaEventElapsedTime(&milliseconds, cuda->mark[0], cuda->mark[1]));
        const double now = bytes / (milliseconds * 1e-3);
        *rate = now > *rate ? now : *rate;
    }
    return ESP_OK;
}

double esp_cuda_read_rate(struct esp_backend *backend, size_t bytes)
{
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    char *memory = NULL;
    double rate = 0.0;
    esp_cuda_enter(backend);
    if (!esp_cuda_fine(cudaMalloc((void **)&memory, bytes)))
        return 0.0;
    int status = esp_cuda_fine(cudaMemsetAsync(memory, 1, bytes, cuda->stream))
                     ? time_reads(cuda, memory, bytes, &rate)
                     : ESP_E_DEVICE;
    esp_cuda_fine(cudaFree(memory));
    return status == ESP_OK ? rate : 0.0;
}
