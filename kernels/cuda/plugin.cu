/* plugin.cu - opening a device, and the table of operations that the program finds in this
 * library.
 *
 * The program itself knows nothing of CUDA: kernels/cuda.c loads this library when the backend
 * is asked for, and looks for one symbol, esp_cuda_plugin. Errors of CUDA calls are kept as a
 * sentence in the backend, because most operations return a status alone.
 */
#include "cuda/plugin.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda/cuda.h"

int esp_cuda_failed(struct esp_cuda_backend *backend, const char *call, cudaError_t result)
{
    /* Of "cudaMalloc(&x, n)" only the name is told. */
    snprintf(backend->failure, sizeof backend->failure, "%.*s failed: %s",
             (int)strcspn(call, "("), call, cudaGetErrorString(result));
    cudaGetLastError(); /* an error that can be recovered from must not be met again */
    return result == cudaErrorMemoryAllocation ? ESP_E_MEMORY : ESP_E_DEVICE;
}

int esp_cuda_tell(const struct esp_cuda_backend *backend, int status, char *err, size_t errlen)
{
    if (status == ESP_E_MEMORY)
        return esp_fail(err, errlen, status,
                        "%s: the device has too little memory for this model; try a shorter "
                        "--context or --backend cpu",
                        backend->failure);
    if (status == ESP_E_CANCELLED)
        return esp_fail(err, errlen, status, "loading was cancelled");
    return esp_fail(err, errlen, status, "%s: %s", backend->device, backend->failure);
}

static int find_device(int *device, cudaDeviceProp *properties, char *err, size_t errlen)
{
    int count = 0;
    cudaGetLastError(); /* an error met while an earlier backend was closed is not ours */
    cudaError_t result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess || count < 1)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED, "there is no CUDA device here (%s)",
                        result == cudaSuccess ? "none found" : cudaGetErrorString(result));
    result = cudaGetDevice(device);
    if (result == cudaSuccess)
        result = cudaGetDeviceProperties(properties, *device);
    if (result != cudaSuccess)
        return esp_fail(err, errlen, ESP_E_DEVICE, "the CUDA device does not answer: %s",
                        cudaGetErrorString(result));
    if (properties->major < 8)
        return esp_fail(err, errlen, ESP_E_DEVICE,
                        "%s has compute capability %d.%d; bf16 needs 8.0 or newer",
                        properties->name, properties->major, properties->minor);
    return ESP_OK;
}

static int open_parts(struct esp_cuda_backend *cuda)
{
    ESP_CUDA(cuda, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    for (int i = 0; i < ESP_MARKS; i++)
        ESP_CUDA(cuda, cudaEventCreate(&cuda->mark[i]));
    ESP_CUDA(cuda, cudaMallocHost((void **)&cuda->numeric, sizeof *cuda->numeric));
    *cuda->numeric = 0;
    int device, limit;
    ESP_CUDA(cuda, cudaGetDevice(&device));
    ESP_CUDA(cuda,
             cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    cuda->shared_limit = (size_t)limit;
    int status = esp_cuda_softmax_prepare(cuda);
    return status < 0 ? status : esp_cuda_sample_prepare(cuda);
}

static void close_backend(struct esp_backend *backend)
{
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    if (!cuda)
        return;
    esp_cuda_lt_close(cuda);
    for (int i = 0; i < ESP_MARKS; i++)
        if (cuda->mark[i])
            cudaEventDestroy(cuda->mark[i]);
    if (cuda->stream)
        cudaStreamDestroy(cuda->stream);
    cudaFreeHost(cuda->numeric);
    free(cuda);
}

static int open_backend(struct esp_backend **backend, int threads, char *err, size_t errlen)
{
    (void)threads;
    int device;
    cudaDeviceProp properties;
    *backend = NULL;
    int status = find_device(&device, &properties, err, errlen);
    if (status < 0)
        return status;
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)calloc(1, sizeof *cuda);
    if (!cuda)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to open the device");
    cuda->base.ops = esp_cuda_plugin.ops;
    cuda->multiprocessors = properties.multiProcessorCount;
    snprintf(cuda->device, sizeof cuda->device, "%.100s, %.0f GB", properties.name,
             (double)properties.totalGlobalMem / 1e9);
    status = open_parts(cuda);
    if (status < 0)
        esp_cuda_tell(cuda, status, err, errlen);
    else
        status = esp_cuda_lt_open(cuda, err, errlen);
    if (status < 0) {
        close_backend(&cuda->base);
        return status;
    }
    *backend = &cuda->base;
    return ESP_OK;
}

static const char *device_name(const struct esp_backend *backend)
{
    return ((const struct esp_cuda_backend *)backend)->device;
}

static const char *failure(const struct esp_backend *backend)
{
    return ((const struct esp_cuda_backend *)backend)->failure;
}

static void set_exact(struct esp_backend *backend, bool exact)
{
    ((struct esp_cuda_backend *)backend)->exact = exact;
}

static size_t memory_free(const struct esp_backend *)
{
    size_t left = 0, total = 0;
    return cudaMemGetInfo(&left, &total) == cudaSuccess ? left : 0;
}

static void defer(struct esp_backend *backend, bool deferred)
{
    ((struct esp_cuda_backend *)backend)->deferred = deferred;
}

static void mark(struct esp_backend *backend, int slot)
{
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    cudaEventRecord(cuda->mark[slot], cuda->stream);
}

static double between(struct esp_backend *backend, int from, int to)
{
    const struct esp_cuda_backend *cuda = (const struct esp_cuda_backend *)backend;
    float milliseconds = 0.0f;
    if (cudaEventSynchronize(cuda->mark[to]) != cudaSuccess ||
        cudaEventElapsedTime(&milliseconds, cuda->mark[from], cuda->mark[to]) !=
            cudaSuccess)
        return 0.0;
    return milliseconds * 1e-3;
}

static struct esp_backend_ops make_ops(void)
{
    struct esp_backend_ops ops = {};
    ops.name = "cuda";
    ops.summary = "an NVIDIA GPU";
    ops.open = open_backend;
    ops.close = close_backend;
    ops.device = device_name;
    ops.failure = failure;
    ops.set_exact = set_exact;
    ops.memory_free = memory_free;
    ops.weights_need = esp_cuda_weights_need;
    ops.cache_need = esp_cuda_cache_need;
    ops.rows_need = esp_cuda_rows_need;
    ops.mark = mark;
    ops.defer = defer;
    ops.between = between;
    ops.read_rate = esp_cuda_read_rate;
    ops.weights_open = esp_cuda_weights_open;
    ops.weights_close = esp_cuda_weights_close;
    ops.weights_bytes = esp_cuda_weights_bytes;
    ops.cache_open = esp_cuda_cache_open;
    ops.cache_close = esp_cuda_cache_close;
    ops.cache_bytes = esp_cuda_cache_bytes;
    ops.rows_open = esp_cuda_rows_open;
    ops.rows_close = esp_cuda_rows_close;
    ops.forward = esp_cuda_forward;
    ops.keep = esp_cuda_keep;
    ops.argmax = esp_cuda_argmax;
    ops.top_k = esp_cuda_top_k;
    ops.softmax = esp_cuda_softmax;
    ops.gather = esp_cuda_gather;
    ops.sample = esp_cuda_sample;
    ops.combine = esp_cuda_combine;
    ops.remove = esp_cuda_remove;
    ops.ratio_masses = esp_cuda_ratio_masses;
    ops.ratio_residual = esp_cuda_ratio_residual;
    ops.read_row = esp_cuda_read_row;
    ops.write_row = esp_cuda_write_row;
    return ops;
}

static const struct esp_backend_ops ops = make_ops();

extern "C" const struct esp_cuda_plugin esp_cuda_plugin = {ESP_VERSION, sizeof ops, &ops};
