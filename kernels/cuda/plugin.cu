/* plugin.cu - opens a device, and defines the table of operations that the program uses.
 *
 * The program is not linked with CUDA: kernels/cuda_plugin.c loads this library when the
 * backend is needed, and looks for one symbol, esp_cuda_plugin. The backend keeps a message
 * about the last error of a CUDA call, because most operations return only a status.
 */
#include "kernels/cuda/plugin.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/gpus.h"

int esp_cuda_failed(struct esp_cuda_backend *backend, const char *call, cudaError_t result)
{
    /* The message contains only the name of the CUDA function, not its arguments. */
    backend = esp_cuda_program(backend);
    snprintf(backend->failure, sizeof backend->failure, "%.*s failed: %s",
             (int)strcspn(call, "("), call, cudaGetErrorString(result));
    backend->answers = 0;
    esp_cuda_fine(result); /* clears the error, if it is not permanent */
    return result == cudaErrorMemoryAllocation ? ESP_E_MEMORY : ESP_E_DEVICE;
}

bool esp_cuda_fine(cudaError_t result)
{
    if (result != cudaSuccess)
        cudaGetLastError();
    return result == cudaSuccess;
}

int esp_cuda_end(struct esp_cuda_backend *backend, int status)
{
    if (status < 0)
        backend->answers = 0;
    return status;
}

int esp_cuda_launch_status(struct esp_cuda_backend *backend, const char *what)
{
    const cudaError_t result = cudaGetLastError();
    return result == cudaSuccess ? ESP_OK : esp_cuda_failed(backend, what, result);
}

int esp_cuda_allow_shared(struct esp_cuda_backend *backend, const void *kernel, size_t bytes)
{
    ESP_CUDA(backend, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           (int)bytes));
    return ESP_OK;
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

/* Writes the release of the driver, as nvidia-smi shows it. Writes "" if it is unknown. */
static void name_driver(char *text, size_t size)
{
    *text = '\0';
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    if (!file)
        return;
    if (!fgets(text, (int)size, file))
        *text = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

/* Returns the oldest release of the driver that runs programs built with this major version of
 * CUDA and any minor version. NVIDIA's "CUDA Compatibility" lists these releases under minor
 * version compatibility. */
static int oldest_driver(int cuda)
{
    return cuda / 1000 >= 13 ? 580 : cuda / 1000 == 12 ? 525 : 450;
}

/* Writes a message that says why there is no device. Returns ESP_E_UNSUPPORTED on a machine
 * without a driver or without a GPU; with --backend auto, the user is not told. Returns
 * ESP_E_DEVICE if the driver does not work; with --backend auto, the user is told. */
static int tell_none(cudaError_t result, char *err, size_t errlen)
{
    int driver = 0, needed = 0;
    char release[24];
    if (!esp_cuda_fine(cudaDriverGetVersion(&driver)) ||
        !esp_cuda_fine(cudaRuntimeGetVersion(&needed)))
        driver = 0;
    name_driver(release, sizeof release);
    if (result == cudaErrorInsufficientDriver && driver > 0)
        return esp_fail(err, errlen, ESP_E_DEVICE,
                        "the NVIDIA driver%s%s is too old: it knows CUDA %d.%d, and the CUDA "
                        "backend built here needs CUDA %d, so driver %d or newer; update the "
                        "driver%s",
                        *release ? " " : "", release, driver / 1000, driver % 1000 / 10,
                        needed / 1000, oldest_driver(needed),
                        driver >= 12000 ? ", or build the backend for CUDA 12, too (make "
                                          "NVCC12=/path/to/nvcc)"
                                        : "");
    const bool none = driver == 0 || result == cudaSuccess || result == cudaErrorNoDevice;
    return esp_fail(err, errlen, none ? ESP_E_UNSUPPORTED : ESP_E_DEVICE,
                    "there is no CUDA device here (%s)",
                    driver == 0             ? "no NVIDIA driver was found"
                    : result == cudaSuccess ? "the driver finds no GPU"
                                            : cudaGetErrorString(result));
}

/* This kernel is never launched. Its attributes say for which architecture the kernels of this
 * library were compiled. */
static __global__ void early_kernel()
{
    esp_wait_previous();
}

/* The current device of this thread, or -1 if it is unknown. CUDA begins with device 0. */
static thread_local int current;

void esp_cuda_forget_device()
{
    current = -1;
}

static cudaError_t enter(int device)
{
    const cudaError_t result = device == current ? cudaSuccess : cudaSetDevice(device);
    if (esp_cuda_fine(result))
        current = device;
    return result;
}

/* If the device cannot be made current, the CUDA calls that follow report the failure. */
void esp_cuda_enter(const struct esp_backend *backend)
{
    enter(((const struct esp_cuda_backend *)backend)->index);
}

static int find_device(int device, cudaDeviceProp *properties, char *err, size_t errlen)
{
    int count = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    if (!esp_cuda_fine(result) || count < 1)
        return tell_none(result, err, errlen);
    if (device < 0 || device >= count)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "there is no GPU %d here; %d can be used, numbered from 0; see "
                        "espalier list backends",
                        device, count);
    result = enter(device);
    if (result == cudaSuccess)
        result = cudaGetDeviceProperties(properties, device);
    if (!esp_cuda_fine(result))
        return esp_fail(err, errlen, ESP_E_DEVICE, "the CUDA device does not answer: %s",
                        cudaGetErrorString(result));
    if (properties->major < 8)
        return esp_fail(err, errlen, ESP_E_DEVICE,
                        "%s has compute capability %d.%d, but bf16 needs 8.0 or newer; use "
                        "--backend cpu",
                        properties->name, properties->major, properties->minor);
    return ESP_OK;
}

/* Finds out whether kernels can begin early. The device must be able to do this, the driver
 * must be able to capture such kernels in a graph, and the code must have been compiled for it.
 * Code that the driver has compiled from the PTX of an older architecture does not wait for the
 * previous kernel. */
static int find_early(struct esp_cuda_backend *cuda)
{
    int driver, major;
    cudaFuncAttributes code;
    ESP_CUDA(cuda, cudaDriverGetVersion(&driver));
    ESP_CUDA(cuda,
             cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->index));
    ESP_CUDA(cuda, cudaFuncGetAttributes(&code, (const void *)early_kernel));
    cuda->early = driver >= ESP_EARLY_DRIVER && 10 * major >= ESP_EARLY_PTX &&
                  code.ptxVersion >= ESP_EARLY_PTX;
    return ESP_OK;
}

static int open_parts(struct esp_cuda_backend *cuda)
{
    ESP_CUDA(cuda, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    for (int i = 0; i < ESP_MARKS; i++)
        ESP_CUDA(cuda, cudaEventCreate(&cuda->mark[i]));
    ESP_CUDA(cuda, cudaMallocHost((void **)&cuda->numeric, sizeof *cuda->numeric));
    *cuda->numeric = 0;
    int limit, status;
    ESP_CUDA(cuda, cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                          cuda->index));
    cuda->shared_limit = (size_t)limit;
    status = find_early(cuda);
    if (status < 0)
        return status;
    int (*const prepare[])(struct esp_cuda_backend *) = {
        esp_cuda_softmax_prepare, esp_cuda_sample_prepare, esp_cuda_matmul_prepare,
        esp_cuda_blocks_prepare, esp_cuda_attention_prepare};
    for (size_t i = 0; i < sizeof prepare / sizeof *prepare && status == ESP_OK; i++)
        status = prepare[i](cuda);
    return status;
}

static void close_backend(struct esp_backend *backend)
{
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    if (!cuda)
        return;
    esp_cuda_gpus_close(cuda->gpus);
    esp_cuda_enter(backend);
    esp_cuda_lt_close(cuda);
    for (int i = 0; i < ESP_MARKS; i++)
        if (cuda->mark[i])
            esp_cuda_fine(cudaEventDestroy(cuda->mark[i]));
    if (cuda->stream)
        esp_cuda_fine(cudaStreamDestroy(cuda->stream));
    esp_cuda_fine(cudaFreeHost(cuda->numeric));
    free(cuda);
}

static int describe(struct esp_cuda_backend *cuda, const cudaDeviceProp *properties)
{
    char driver[24];
    int version;
    cuda->multiprocessors = properties->multiProcessorCount;
    name_driver(driver, sizeof driver);
    if (!*driver) {
        ESP_CUDA(cuda, cudaDriverGetVersion(&version));
        snprintf(driver, sizeof driver, "for CUDA %d.%d", version / 1000, version % 1000 / 10);
    }
    snprintf(cuda->device, sizeof cuda->device, "%.90s, %.0f GB, driver %s", properties->name,
             (double)properties->totalGlobalMem / 1e9, driver);
    return ESP_OK;
}

static int open_device(struct esp_backend **backend, int device, char *err, size_t errlen)
{
    cudaDeviceProp properties;
    *backend = NULL;
    int status = find_device(device, &properties, err, errlen);
    if (status < 0)
        return status;
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)calloc(1, sizeof *cuda);
    if (!cuda)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to open the device");
    cuda->base.ops = esp_cuda_plugin.ops;
    cuda->index = device;
    status = describe(cuda, &properties);
    if (status == ESP_OK)
        status = open_parts(cuda);
    if (status < 0) {
        esp_cuda_tell(cuda, status, err, errlen);
        close_backend(&cuda->base);
        return status;
    }
    *backend = &cuda->base;
    return ESP_OK;
}

int esp_cuda_open_rank(struct esp_cuda_backend *program, int rank,
                       struct esp_cuda_backend **backend, char *err, size_t errlen)
{
    struct esp_backend *made;
    const int status = open_device(&made, program->index + rank, err, errlen);
    if (status < 0)
        return status;
    *backend = (struct esp_cuda_backend *)made;
    (*backend)->program = program;
    (*backend)->exact = program->exact;
    return ESP_OK;
}

void esp_cuda_close_rank(struct esp_cuda_backend *backend)
{
    close_backend(&backend->base);
}

static int open_first(struct esp_backend **backend, int, char *err, size_t errlen)
{
    return open_device(backend, 0, err, errlen);
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
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    cuda->exact = exact;
    for (int i = 1; cuda->gpus && i < cuda->gpus->count; i++)
        cuda->gpus->backend[i]->exact = exact;
}

static size_t free_of_one(const struct esp_backend *backend)
{
    esp_cuda_enter(backend);
    size_t left = 0, total = 0;
    return esp_cuda_fine(cudaMemGetInfo(&left, &total)) ? left : 0;
}

/* Several GPUs are treated as one GPU. Its free memory is the number of GPUs times the
 * free memory of the GPU with the least free memory. */
static size_t memory_free(const struct esp_backend *backend)
{
    const struct esp_cuda_gpus *gpus = ((const struct esp_cuda_backend *)backend)->gpus;
    size_t least = free_of_one(backend);
    for (int i = 1; gpus && i < gpus->count; i++) {
        const size_t left = free_of_one(&gpus->backend[i]->base);
        least = left < least ? left : least;
    }
    return gpus ? least * gpus->count : least;
}

static void mark(struct esp_backend *backend, int slot)
{
    struct esp_cuda_backend *cuda = (struct esp_cuda_backend *)backend;
    esp_cuda_enter(backend);
    esp_cuda_fine(cudaEventRecord(cuda->mark[slot], cuda->stream));
}

static double between(struct esp_backend *backend, int from, int to)
{
    const struct esp_cuda_backend *cuda = (const struct esp_cuda_backend *)backend;
    float milliseconds = 0.0f;
    esp_cuda_enter(backend);
    if (!esp_cuda_fine(cudaEventSynchronize(cuda->mark[to])) ||
        !esp_cuda_fine(cudaEventElapsedTime(&milliseconds, cuda->mark[from], cuda->mark[to])))
        return 0.0;
    return milliseconds * 1e-3;
}

static struct esp_backend_ops make_ops(void)
{
    struct esp_backend_ops ops = {};
    ops.name = "cuda";
    ops.summary = "an NVIDIA GPU";
    ops.asynchronous = true;
    ops.gives_states = true;
    ops.windows = true;
    ops.open = open_first;
    ops.open_device = open_device;
    ops.close = close_backend;
    ops.device = device_name;
    ops.failure = failure;
    ops.set_exact = set_exact;
    ops.memory_free = memory_free;
    ops.weights_need = esp_cuda_weights_need;
    ops.mark = mark;
    ops.between = between;
    ops.read_rate = esp_cuda_read_rate;
    ops.start_ranks = esp_cuda_start_ranks;
    ops.rank_times = esp_cuda_rank_times;
    ops.plan_ranks = esp_cuda_plan_ranks;
    ops.time_kernels = esp_cuda_time_kernels;
    ops.predict = esp_cuda_predict;
    ops.state_bytes = esp_cuda_state_bytes;
    ops.checkpoint_bytes = esp_cuda_checkpoint_bytes;
    ops.fold = esp_cuda_fold;
    ops.state_save = esp_cuda_state_save;
    ops.state_load = esp_cuda_state_load;
#define X(result, name, ...) ops.name = esp_cuda_##name;
#include "kernels/model_ops.def"
#undef X
#define X(name, ...) ops.name = esp_cuda_##name;
#include "kernels/row_ops.def"
#undef X
    return ops;
}

static const struct esp_backend_ops ops = make_ops();

extern "C" const struct esp_cuda_plugin esp_cuda_plugin = {ESP_VERSION, sizeof ops, &ops,
                                                           CUDART_VERSION};
