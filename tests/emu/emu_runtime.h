/* emu_runtime.h - the part of the CUDA runtime that is emulated.
 *
 * Names and values are the same as in CUDA. Streams are lazy: their work runs when the host
 * waits for it. So a test that reads a result too early reads an old result. See README.md.
 */
#ifndef EMU_RUNTIME_H
#define EMU_RUNTIME_H

#include "tests/emu/emu_types.h"

/* ------------------------------------------------------------------ errors */

#define EMU_ERRORS(X)                                                                          \
    X(cudaSuccess, 0, "no error")                                                              \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                            \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                           \
    X(cudaErrorInitializationError, 3, "initialization error")                                 \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                      \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                             \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                \
    X(cudaErrorInsufficientDriver, 35,                                                         \
      "CUDA driver version is insufficient for CUDA "                                          \
      "runtime version")                                                                       \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                           \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                            \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                   \
    X(cudaErrorNoKernelImageForDevice, 209,                                                    \
      "no kernel image is available for execution on the device")                              \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                          \
    X(cudaErrorNotReady, 600, "device not ready")                                              \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                               \
    X(cudaErrorNotSupported, 801, "operation not supported")                                   \
    X(cudaErrorStreamCaptureUnsupported, 900,                                                  \
      "operation not permitted when stream is capturing")                                      \
    X(cudaErrorStreamCaptureInvalidated, 901,                                                  \
      "operation failed due to a previous error during capture")                               \
    X(cudaErrorStreamCaptureImplicit, 906,                                                     \
      "operation would make the legacy stream depend on a capturing blocking stream")          \
    X(cudaErrorCapturedEvent, 907,                                                             \
      "operation not permitted on an event last recorded in a capturing stream")               \
    X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define X(name, number, text) name = number,
    EMU_ERRORS(X)
#undef X
};
typedef enum cudaError cudaError_t;

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

/* ------------------------------------------------------------------ devices */

enum { CUDART_VERSION = 13000 };

struct cudaUUID_t {
    char bytes[16];
};

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin,
        sharedMemPerMultiprocessor;
    size_t reservedSharedMemPerBlock, totalConstMem, memPitch;
    int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock;
    int maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, maxThreadsDim[3],
        maxGridSize[3];
    int multiProcessorCount, major, minor, l2CacheSize, persistingL2CacheMaxSize;
    int memoryBusWidth, ECCEnabled, integrated, concurrentKernels, asyncEngineCount;
    int unifiedAddressing, canMapHostMemory, cooperativeLaunch;
    int pciBusID, pciDeviceID, pciDomainID;
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();

/* ------------------------------------------------------------------ memory */

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
};
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
enum { cudaHostAllocWriteCombined = 4 };

typedef struct CUstream_st *cudaStream_t;

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaFree(void *address);
cudaError_t cudaMallocHost(void **address, size_t bytes, unsigned flags = 0);
cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *address);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *address, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes,
                            cudaStream_t stream = nullptr);

template <typename T> static inline cudaError_t cudaMalloc(T **address, size_t bytes)
{
    return cudaMalloc(reinterpret_cast<void **>(address), bytes);
}

template <typename T>
static inline cudaError_t cudaMallocHost(T **address, size_t bytes, unsigned flags = 0)
{
    return cudaMallocHost(reinterpret_cast<void **>(address), bytes, flags);
}

template <typename T>
static inline cudaError_t cudaHostAlloc(T **address, size_t bytes, unsigned flags)
{
    return cudaHostAlloc(reinterpret_cast<void **>(address), bytes, flags);
}

/* Makes a part of an allocation inaccessible to kernels. Copies and fills leave this part
 * unchanged, even if their range includes it. */
enum { ESP_FENCE = 256 };
void emu_put_fence(void *address, size_t bytes);
#define ESP_PUT_FENCE(address, bytes) emu_put_fence((address), (bytes))

/* ------------------------------------------------------------------ streams and events */

typedef struct CUevent_st *cudaEvent_t;
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
typedef void (*cudaHostFn_t)(void *user);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);

/* ------------------------------------------------------------------ graphs */

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2,
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2,
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* ------------------------------------------------------------------ kernels */

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t emu_occupancy(int *blocks, const void *kernel, int threads, size_t shared);

template <typename... P>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...),
                                               cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}

template <typename... P>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes,
                                                void (*kernel)(P...))
{
    return cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(kernel));
}

static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                        const void *kernel,
                                                                        int threads,
                                                                        size_t shared)
{
    return emu_occupancy(blocks, kernel, threads, shared);
}

template <typename... P>
static inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void (*kernel)(P...), int threads,
                                              size_t shared)
{
    return emu_occupancy(blocks, reinterpret_cast<const void *>(kernel), threads, shared);
}

#endif
