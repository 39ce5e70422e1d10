/* emu_properties.cpp - returns the properties of the emulated device, and checks launches.
 *
 * The emulated device has the limits of a GPU with compute capability 9.0, but only a few
 * multiprocessors. So even the small shapes of the tests have more blocks than can run at a
 * time. A test can set the number of multiprocessors and the size of shared memory
 * (emu_control.h), because the backend's choice of kernels depends on these two numbers.
 */
#include <cstdio>
#include <map>
#include <set>

#include "tests/emu/emu_block.h"
#include "tests/emu/emu_state.h"

enum { threads_per_block = 1024, threads_per_multiprocessor = 2048 };
enum { blocks_per_multiprocessor = 32, registers = 65536 };
enum { shared_default = 48 << 10, shared_reserved = 1 << 10, cache_bytes = 50 << 20 };

static int shared_most()
{
    return emu_shared_kilobytes() << 10;
}

static int shared_multiprocessor()
{
    return shared_most() + shared_reserved;
}

static std::map<const void *, int> &shared_allowed()
{
    static auto *all = new std::map<const void *, int>;
    return *all;
}

/* The kernels that are loaded. A launch loads a kernel, and so does reading its attributes. */
static std::set<const void *> &loaded()
{
    static auto *all = new std::set<const void *>;
    return *all;
}

static thread_local int current_device;

int emu_current_device()
{
    return current_device;
}

static cudaError_t no_device(int device)
{
    if (emu_device_count() == 0)
        return cudaErrorNoDevice;
    return device < 0 || device >= emu_device_count() ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    EMU_CALL();
    *count = 0;
    /* the runtime reports the same error for an old driver and for no driver */
    if (emu_driver_version() / 1000 < CUDART_VERSION / 1000)
        return emu_result(cudaErrorInsufficientDriver);
    *count = emu_device_count();
    return emu_result(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    EMU_CALL();
    if (cudaError_t error = no_device(device))
        return emu_result(error);
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    EMU_CALL();
    *device = current_device;
    return emu_result(no_device(current_device));
}

cudaError_t cudaDeviceReset()
{
    EMU_CALL();
    return emu_run_all();
}

cudaError_t cudaDriverGetVersion(int *driver)
{
    EMU_CALL();
    *driver = emu_driver_version();
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *runtime)
{
    EMU_CALL();
    *runtime = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    EMU_CALL();
    if (cudaError_t error = no_device(device))
        return emu_result(error);
    *properties = cudaDeviceProp();
    snprintf(properties->name, sizeof properties->name,
             emu_device_count() > 1 ? "emulated GPU %d" : "emulated GPU", device);
    properties->totalGlobalMem = emu_memory_size();
    properties->sharedMemPerBlock = shared_default;
    properties->sharedMemPerBlockOptin = shared_most();
    properties->sharedMemPerMultiprocessor = shared_multiprocessor();
    properties->reservedSharedMemPerBlock = shared_reserved;
    properties->totalConstMem = 65536;
    properties->regsPerBlock = properties->regsPerMultiprocessor = registers;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = threads_per_block;
    properties->maxThreadsPerMultiProcessor = threads_per_multiprocessor;
    properties->maxBlocksPerMultiProcessor = blocks_per_multiprocessor;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 0x7fffffff;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->multiProcessorCount = emu_multiprocessors();
    properties->major = 9;
    properties->l2CacheSize = cache_bytes;
    properties->memoryBusWidth = 64;
    properties->concurrentKernels = properties->unifiedAddressing = 1;
    properties->canMapHostMemory = properties->asyncEngineCount = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    EMU_CALL();
    if (cudaError_t error = no_device(device))
        return emu_result(error);
    const std::map<cudaDeviceAttr, int> values = {
        {cudaDevAttrMaxThreadsPerBlock, threads_per_block},
        {cudaDevAttrMaxSharedMemoryPerBlock, shared_default},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrClockRate, 1000000},
        {cudaDevAttrMultiProcessorCount, emu_multiprocessors()},
        {cudaDevAttrMemoryClockRate, 1000000},
        {cudaDevAttrGlobalMemoryBusWidth, 64},
        {cudaDevAttrL2CacheSize, cache_bytes},
        {cudaDevAttrMaxThreadsPerMultiProcessor, threads_per_multiprocessor},
        {cudaDevAttrComputeCapabilityMajor, 9},
        {cudaDevAttrComputeCapabilityMinor, 0},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, shared_multiprocessor()},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, shared_most()},
    };
    auto found = values.find(attribute);
    if (found == values.end())
        return emu_result(cudaErrorInvalidValue);
    *value = found->second;
    return cudaSuccess;
}

/* ------------------------------------------------------------------ kernels */

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    EMU_CALL();
    if (!kernel)
        return emu_result(cudaErrorInvalidDeviceFunction);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    if (value < 0 || value > shared_most())
        return emu_result(cudaErrorInvalidValue);
    shared_allowed()[kernel] = value;
    return cudaSuccess;
}

static size_t shared_limit(const void *kernel)
{
    auto found = shared_allowed().find(kernel);
    int allowed = found == shared_allowed().end() ? 0 : found->second;
    if (allowed > shared_most()) /* if the limit was lowered after `allowed` was set */
        allowed = shared_most();
    return (size_t)(allowed > shared_default ? allowed : shared_default);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel)
{
    EMU_CALL();
    if (!kernel)
        return emu_result(cudaErrorInvalidDeviceFunction);
    loaded().insert(kernel);
    *attributes = cudaFuncAttributes();
    attributes->maxThreadsPerBlock = threads_per_block;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = (int)shared_limit(kernel);
    return cudaSuccess;
}

cudaError_t emu_occupancy(int *blocks, const void *kernel, int threads, size_t shared)
{
    EMU_CALL();
    *blocks = 0;
    if (threads <= 0 || threads > threads_per_block)
        return emu_result(cudaErrorInvalidValue);
    if (shared > shared_limit(kernel))
        return cudaSuccess;
    int by_threads = threads_per_multiprocessor / ((threads + 31) / 32 * 32);
    int by_shared = (int)((size_t)shared_multiprocessor() / (shared + shared_reserved));
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    if (*blocks > blocks_per_multiprocessor)
        *blocks = blocks_per_multiprocessor;
    return cudaSuccess;
}

cudaError_t emu_check_launch(const emu_launch_shape &launch, bool captured)
{
    dim3 grid = launch.grid, block = launch.block;
    if (emu_device_count() == 0)
        return cudaErrorNoDevice;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 ||
        block.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 ||
        block.x > 1024 || block.y > 1024 || block.z > 64 ||
        (uint64_t)block.x * block.y * block.z > threads_per_block)
        return cudaErrorInvalidConfiguration;
    if (launch.shared > shared_limit(launch.kernel))
        return cudaErrorInvalidValue;
    if (!captured)
        loaded().insert(launch.kernel);
    return loaded().count(launch.kernel) ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
