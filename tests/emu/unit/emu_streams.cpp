/* emu_streams.cpp - tests the emulated CUDA runtime: memory, lazy streams, events, graphs,
 * launches that a GPU refuses, and calls that a test makes fail.
 */
#include "tests/emu/unit/emu_test.h"

#include <cmath>

static __global__ void add_to(float *x, int n, float what)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += (int)(gridDim.x * blockDim.x))
        x[i] += what;
}

static __global__ void take_from(float *x, int n, float what)
{
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        x[i] -= what;
}

static __global__ void touch(float *x, int at)
{
    x[at] = 1.0f;
}

static __global__ void look(const float *x, int at, float *out)
{
    *out = x[at];
}

struct with_address {
    int n;
    const float *data;
};

static __global__ void take_struct(struct with_address a, float *out)
{
    *out = a.data ? a.data[a.n] : 0.0f;
}

/* Holds two streams, pinned memory and a device array of 64 floats for a test. The destructor
 * releases all of them. */
struct scene {
    cudaStream_t a = nullptr, b = nullptr;
    float *host = nullptr, *device = nullptr;
    scene()
    {
        if (cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking) ||
            cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking) ||
            cudaMallocHost(&host, 64 * sizeof(float)) ||
            cudaMalloc(&device, 64 * sizeof(float)) ||
            cudaMemset(device, 0, 64 * sizeof(float)) || cudaDeviceSynchronize())
            abort();
        for (int i = 0; i < 64; i++)
            host[i] = (float)i;
    }
    ~scene()
    {
        cudaFree(device);
        cudaFreeHost(host);
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
    }
    cudaError_t send(cudaStream_t stream)
    {
        return cudaMemcpyAsync(device, host, 64 * sizeof(float), cudaMemcpyHostToDevice,
                               stream);
    }
    cudaError_t fetch(cudaStream_t stream)
    {
        return cudaMemcpyAsync(host, device, 64 * sizeof(float), cudaMemcpyDeviceToHost,
                               stream);
    }
};

/* ------------------------------------------------------------------ memory */

TEST(device_memory_is_poisoned_exact_and_closed_to_the_host)
{
    device_array<float> x(25);
    for (float got : x.read())
        CHECK(std::isnan(got), "%g", got);
    size_t used = emu_memory_used();
    {
        device_array<float> more(1000);
        CHECK(emu_memory_used() >= used + 4000, "%zu", emu_memory_used());
    }
    CHECK(emu_memory_used() == used, "%zu", emu_memory_used());
    const char *caught = emu_sanitized ? "AddressSanitizer" : "outside an allocation of 100";
    DIES(caught, float *y; cudaMalloc(&y, 100); ESP_LAUNCH(touch, 1, 1, 0, nullptr, y, 25);
         cudaFree(y));
    DIES(caught, float *y; cudaMalloc(&y, 100); ESP_LAUNCH(touch, 1, 1, 0, nullptr, y, -1);
         cudaFree(y));
    if (emu_sanitized) {
        DIES("kernel look", ESP_LAUNCH(look, 1, 1, 0, nullptr, x.data, 25, x.data);
             cudaDeviceSynchronize());
        DIES("misaligned address", struct with_address a = {1, (float *)((char *)x.data + 2)};
             ESP_LAUNCH(take_struct, 1, 1, 0, nullptr, a, x.data); cudaDeviceSynchronize());
    }
    DIES(emu_sanitized ? "SEGV" : "the host touched device memory", x.data[0] = 1.0f);
    DIES(emu_sanitized ? "null pointer" : "fault in kernel touch",
         ESP_LAUNCH(touch, 1, 1, 0, nullptr, (float *)nullptr, 0);
         cudaDeviceSynchronize());
}

TEST(fences_inside_allocations_detect_writes)
{
    const char *caught = emu_sanitized ? "AddressSanitizer" : "between two pieces";
    std::vector<float> host(64, 2.0f);
    for (int at = 9; at < 13; at++) {
        auto job = [&] {
            float *x;
            cudaMalloc(&x, 256);
            emu_put_fence(x + 10, 8);
            cudaMemset(x, 0, 256); /* does not remove the fence */
            cudaMemcpy(x, host.data(), 256, cudaMemcpyHostToDevice);
            ESP_LAUNCH(touch, 1, 1, 0, nullptr, x, at);
            cudaMemcpy(host.data(), x, 256, cudaMemcpyDeviceToHost);
            cudaFree(x);
        };
        if (at == 10 || at == 11)
            DIES(caught, job());
        else
            job();
        CHECK(at == 10 || at == 11 || (host[(size_t)at] == 1.0f && std::isnan(host[10])), "%d",
              at);
    }
}

TEST(kernels_with_host_addresses_are_detected)
{
    static float in_program;
    std::vector<float> heap(4);
    float on_stack = 0;
    scene s;
    for (float *address : {&in_program, heap.data(), &on_stack}) {
        DIES("parameter 1 of kernel touch (byte 0) holds the address of host memory",
             ESP_LAUNCH(touch, 1, 1, 0, nullptr, address, 0));
#ifdef EMU_CLEARS_PADDING
        struct with_address a = {0, address};
        DIES("parameter 1 of kernel take_struct (byte 8)",
             ESP_LAUNCH(take_struct, 1, 1, 0, nullptr, a, s.device));
#endif
    }
    DIES("is not the address of an allocation", cudaFree(s.device);
         ESP_LAUNCH(touch, 1, 1, 0, nullptr, s.device, 0));
    ESP_LAUNCH(touch, 1, 1, 0, nullptr, s.host, 3); /* pinned memory is allowed */
    OK(cudaDeviceSynchronize());
    CHECK(s.host[3] == 1.0f, "%g", s.host[3]);
}

TEST(allocations_fail_when_memory_runs_out)
{
    size_t before, total, after;
    OK(cudaMemGetInfo(&before, &total));
    emu_set_memory(emu_memory_used() + (1 << 20));
    void *x = &x;
    cudaError_t result = cudaMalloc(&x, 2 << 20);
    cudaError_t last = cudaGetLastError(), none = cudaGetLastError();
    OK(cudaMalloc(&x, 1 << 19));
    OK(cudaMemGetInfo(&after, &total));
    OK(cudaFree(x));
    emu_set_memory((size_t)4 << 30);
    CHECK(result == cudaErrorMemoryAllocation && last == result && none == cudaSuccess, "%d %d",
          (int)result, (int)last);
    CHECK(after < 1 << 19 && after > 1 << 18, "%zu", after);
}

TEST(copies_are_checked)
{
    scene s;
    std::vector<float> host(64);
    CHECK(cudaMemcpy(s.device, host.data(), 256, cudaMemcpyDeviceToHost) ==
              cudaErrorInvalidValue,
          "the wrong way");
    CHECK(cudaMemcpy(s.device, host.data(), 257, cudaMemcpyHostToDevice) ==
              cudaErrorInvalidValue,
          "too much");
    CHECK(cudaMemsetAsync(host.data(), 0, 8, s.a) == cudaErrorInvalidValue, "host memory");
    CHECK(cudaFree((char *)s.device + 4) == cudaErrorInvalidValue, "no beginning");
    for (size_t i = 0; i < 64; i++)
        host[i] = (float)i;
    CHECK(cudaMemcpy2D((char *)s.device - 32, 32, host.data(), 64, 16, 4,
                       cudaMemcpyHostToDevice) == cudaErrorInvalidValue,
          "the first line");
    CHECK(cudaMemcpy2D(s.device, 64, host.data(), 64, 16, 5, cudaMemcpyHostToDevice) ==
              cudaErrorInvalidValue,
          "the last line");
    OK(cudaMemcpy2D(s.device, 32, host.data(), 64, 16, 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(s.host, s.device, 256, cudaMemcpyDeviceToHost));
    CHECK(s.host[0] == 0 && s.host[3] == 3 && s.host[8] == 16 && s.host[27] == 51, "%g %g",
          s.host[8], s.host[27]);
    cudaGetLastError();
}

/* ------------------------------------------------------------------ streams */

TEST(streams_are_lazy_and_read_memory_late)
{
    scene s;
    OK(s.send(s.a));
    s.host[5] = 500.0f; /* the copy must read this value, because it has not run yet */
    ESP_LAUNCH(add_to, 2, 32, 0, s.a, s.device, 64, 1.0f);
    OK(s.fetch(s.a));
    CHECK(s.host[6] == 6.0f,
          "the result was copied before the host waited: %g is the new value", s.host[6]);
    CHECK(cudaStreamQuery(s.a) == cudaErrorNotReady, "a stream with work is not ready");
    OK(cudaStreamSynchronize(s.a));
    CHECK(s.host[6] == 7.0f && s.host[5] == 501.0f, "%g %g", s.host[6], s.host[5]);
    CHECK(cudaStreamQuery(s.a) == cudaSuccess, "a stream without work is ready");
}

TEST(destroying_a_stream_runs_its_work_first)
{
    scene s;
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ESP_LAUNCH(add_to, 1, 32, 0, stream, s.device, 64, 6.0f);
    OK(s.fetch(stream));
    OK(cudaStreamDestroy(stream));
    CHECK(s.host[2] == 6.0f, "%g", (double)s.host[2]);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle, "it is gone");
    cudaGetLastError();
}

TEST(arguments_are_copied_at_the_launch)
{
    scene s;
    float what = 2.0f;
    ESP_LAUNCH(add_to, 1, 32, 0, s.a, s.device, 64, what);
    what = 1000.0f;
    OK(s.fetch(s.a));
    OK(cudaStreamSynchronize(s.a));
    CHECK(s.host[1] == 2.0f && what == 1000.0f, "%g", s.host[1]);
}

/* Returns in how many of 16 runs stream b sees the result of stream a. If `wait` is set, stream
 * b waits for an event that stream a records after its result. */
static int times_seen(bool wait)
{
    int seen = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        emu_set_seed(seed);
        scene s;
        cudaEvent_t event;
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        ESP_LAUNCH(add_to, 1, 32, 0, s.a, s.device, 64, 3.0f);
        cudaEventRecord(event, s.a);
        if (wait)
            cudaStreamWaitEvent(s.b, event);
        s.fetch(s.b);
        cudaStreamSynchronize(s.b);
        seen += s.host[9] == 3.0f;
        cudaEventDestroy(event);
    }
    emu_set_seed(1);
    return seen;
}

TEST(only_events_order_streams)
{
    int with = times_seen(true), without = times_seen(false);
    CHECK(with == 16, "with an event, the result is seen in %d of 16 runs", with);
    CHECK(without > 0 && without < 16, "without an event, the result is seen in %d of 16 runs",
          without);
}

TEST(the_default_stream_waits_for_blocking_streams)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        emu_set_seed(seed);
        scene s;
        cudaStream_t blocking;
        OK(cudaStreamCreate(&blocking));
        ESP_LAUNCH(add_to, 1, 32, 0, blocking, s.device, 64, 4.0f);
        float got;
        OK(cudaMemcpy(&got, s.device, sizeof got, cudaMemcpyDeviceToHost));
        CHECK(got == 4.0f, "%g", (double)got);
        ESP_LAUNCH(add_to, 1, 32, 0, nullptr, s.device, 64, 1.0f);
        OK(cudaMemcpyAsync(s.host, s.device, 4, cudaMemcpyDeviceToHost, blocking));
        OK(cudaStreamSynchronize(blocking));
        CHECK(s.host[0] == 5.0f, "%g", (double)s.host[0]);
        OK(cudaStreamDestroy(blocking));
    }
    emu_set_seed(1);
}

TEST(events_are_recorded_and_timed)
{
    scene s;
    cudaEvent_t first, second, untimed;
    OK(cudaEventCreate(&first));
    OK(cudaEventCreate(&second));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    float ms = -1.0f;
    CHECK(cudaEventQuery(first) == cudaSuccess, "never recorded");
    CHECK(cudaEventElapsedTime(&ms, first, second) == cudaErrorInvalidResourceHandle,
          "unrecorded");
    OK(cudaEventRecord(first, s.a));
    ESP_LAUNCH(add_to, 1, 32, 0, s.a, s.device, 64, 1.0f);
    OK(cudaEventRecord(second, s.a));
    OK(s.fetch(s.a));
    CHECK(cudaEventElapsedTime(&ms, first, second) == cudaErrorNotReady, "not run");
    int polls = 0;
    while (cudaEventQuery(second) == cudaErrorNotReady && polls < 100)
        polls++;
    CHECK(polls > 0 && polls < 100, "%d polls", polls);
    OK(cudaEventSynchronize(second));
    CHECK(s.host[3] == 3.0f, "work after an event has run: %g", s.host[3]);
    OK(cudaEventElapsedTime(&ms, first, second));
    CHECK(ms >= 0.0f && ms < 60000.0f, "%g ms", (double)ms);
    CHECK(cudaEventElapsedTime(&ms, first, untimed) == cudaErrorInvalidResourceHandle,
          "untimed");
    OK(cudaStreamSynchronize(s.a));
    OK(cudaEventDestroy(first));
    OK(cudaEventDestroy(second));
    OK(cudaEventDestroy(untimed));
    CHECK(cudaEventDestroy(untimed) == cudaErrorInvalidResourceHandle, "given back twice");
    cudaGetLastError();
}

/* ------------------------------------------------------------------ graphs */

TEST(graphs_replay_what_was_captured)
{
    scene s;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, add_to));
    OK(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    ESP_LAUNCH(add_to, 1, 32, 0, s.a, s.device, 64, 1.0f);
    OK(s.fetch(s.a));
    OK(cudaStreamEndCapture(s.a, &graph));
    OK(cudaStreamSynchronize(s.a));
    CHECK(s.host[8] == 8.0f, "capturing runs nothing: %g", s.host[8]);
    OK(cudaGraphInstantiate(&executable, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(executable, s.a));
    CHECK(s.host[8] == 8.0f, "launching waits: %g", s.host[8]);
    OK(cudaStreamSynchronize(s.a));
    CHECK(s.host[8] == 3.0f, "%g", s.host[8]);
    OK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphLaunch(executable, s.a) == cudaErrorInvalidValue, "given back");
    cudaGetLastError();
}

/* CUDA loads the code of a kernel when the kernel is first used, but cannot load it in a
 * capture. */
TEST(a_kernel_is_loaded_before_it_is_captured)
{
    scene s;
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    ESP_LAUNCH(take_from, 1, 32, 0, s.a, s.device, 64, 1.0f);
    CHECK(cudaGetLastError() == cudaErrorStreamCaptureUnsupported, "not yet loaded");
    CHECK(cudaStreamEndCapture(s.a, &graph) == cudaErrorStreamCaptureInvalidated, "spoiled");
    cudaGetLastError();
    esp_loading_kernels = true;
    ESP_LAUNCH(take_from, 1, 32, 0, s.a, s.device, 64, 1.0f);
    esp_loading_kernels = false;
    OK(s.fetch(s.a));
    OK(cudaStreamSynchronize(s.a));
    CHECK(s.host[8] == 0.0f, "loading runs nothing: %g", s.host[8]);
    OK(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    ESP_LAUNCH(take_from, 1, 32, 0, s.a, s.device, 64, 1.0f);
    OK(cudaGetLastError());
    OK(cudaStreamEndCapture(s.a, &graph));
    OK(cudaGraphDestroy(graph));
}

TEST(waiting_and_allocating_invalidate_a_capture)
{
    scene s;
    for (int what = 0; what < 4; what++) {
        cudaGraph_t graph = nullptr;
        void *memory = nullptr;
        OK(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
        cudaError_t result = what == 0   ? cudaStreamSynchronize(s.a)
                             : what == 1 ? cudaMalloc(&memory, 16)
                             : what == 2
                                 ? cudaDeviceSynchronize()
                                 : cudaMemcpy(s.host, s.device, 4, cudaMemcpyDeviceToHost);
        CHECK(result == cudaErrorStreamCaptureUnsupported, "%d: %s", what,
              cudaGetErrorName(result));
        result = cudaStreamEndCapture(s.a, &graph);
        CHECK(result == cudaErrorStreamCaptureInvalidated && !graph, "%d: %s", what,
              cudaGetErrorName(result));
    }
    ESP_LAUNCH(add_to, 1, 32, 0, s.a, s.device, 64, 1.0f);
    OK(cudaStreamSynchronize(s.a));
    cudaGetLastError();
}

/* ------------------------------------------------------------------ launches */

static cudaError_t launch(dim3 grid, dim3 block, size_t shared)
{
    device_array<float> x(1);
    ESP_LAUNCH(touch, grid, block, shared, nullptr, x.data, 0);
    return cudaGetLastError();
}

TEST(launches_that_a_GPU_refuses_return_an_error)
{
    CHECK(launch(1, 1025, 0) == cudaErrorInvalidConfiguration, "too many threads");
    CHECK(launch(1, dim3(64, 2, 16), 0) == cudaErrorInvalidConfiguration,
          "in three dimensions");
    CHECK(launch(0, 32, 0) == cudaErrorInvalidConfiguration, "no blocks");
    CHECK(launch(1, 0, 0) == cudaErrorInvalidConfiguration, "no threads");
    CHECK(launch(dim3(1, 65536), 32, 0) == cudaErrorInvalidConfiguration, "too high");
    CHECK(launch(1, 32, 49153) == cudaErrorInvalidValue,
          "a launch cannot use more shared memory than the default limit");
    OK(cudaFuncSetAttribute(touch, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    CHECK(launch(1, 32, 100000) == cudaSuccess,
          "a launch can use the shared memory that was requested");
    CHECK(launch(1, 32, 100001) == cudaErrorInvalidValue, "more than requested");
    CHECK(cudaFuncSetAttribute(touch, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000) ==
              cudaErrorInvalidValue,
          "a kernel cannot request more shared memory than the device has");
    cudaGetLastError();
}

TEST(devices_are_counted_and_described)
{
    int count = -1, blocks = 0;
    cudaDeviceProp properties;
    OK(cudaGetDeviceCount(&count));
    OK(cudaGetDeviceProperties(&properties, 0));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, touch, 256, 0));
    CHECK(count == 1 && std::string(properties.name) == "emulated GPU" && blocks == 8,
          "%d %s %d", count, properties.name, blocks);
    emu_set_devices(0);
    cudaError_t none = cudaGetDeviceCount(&count);
    void *x;
    cudaError_t no_memory = cudaMalloc(&x, 4);
    emu_set_devices(1);
    CHECK(none == cudaErrorNoDevice && count == 0 && no_memory == cudaErrorNoDevice, "%d",
          count);
    cudaGetLastError();
}

/* ------------------------------------------------------------------ failures and leaks */

/* Adds 1 to an array, and releases everything that it has created. Returns the first error, or
 * cudaSuccess. */
static cudaError_t small_job(float *result)
{
    cudaStream_t stream = nullptr;
    float *x = nullptr, *host = nullptr;
    cudaError_t e = cudaStreamCreate(&stream);
    if (!e)
        e = cudaMalloc(&x, 4);
    if (!e)
        e = cudaMallocHost(&host, 4);
    if (!e)
        e = cudaMemsetAsync(x, 0, 4, stream);
    if (!e) {
        ESP_LAUNCH(add_to, 1, 1, 0, stream, x, 1, 1.0f);
        e = cudaGetLastError();
    }
    if (!e)
        e = cudaMemcpyAsync(host, x, 4, cudaMemcpyDeviceToHost, stream);
    if (!e)
        e = cudaStreamSynchronize(stream);
    if (!e)
        *result = *host;
    cudaError_t back[] = {cudaFreeHost(host), cudaFree(x),
                          stream ? cudaStreamDestroy(stream) : cudaSuccess};
    for (cudaError_t b : back)
        e = e ? e : b;
    cudaGetLastError();
    return e;
}

TEST(every_call_can_be_made_to_fail)
{
    float result = 0;
    char text[200];
    emu_fail_at(0, 0, false);
    OK(small_job(&result));
    long calls = emu_calls();
    CHECK(result == 1.0f && calls == 10, "%g after %ld calls", (double)result, calls);
    int leaks = emu_leaks(text, sizeof text);
    for (int ever_after = 0; ever_after < 2; ever_after++)
        for (long call = 1; call <= calls; call++) {
            emu_fail_at(call, cudaErrorLaunchFailure, ever_after);
            cudaError_t e = small_job(&result);
            CHECK(e == cudaErrorLaunchFailure, "call %ld: %s", call, cudaGetErrorName(e));
            CHECK(emu_leaks(text, sizeof text) == leaks, "call %ld: %s", call, text);
        }
    emu_fail_at(0, 0, false);
    OK(small_job(&result));
}

TEST(objects_that_are_never_released_are_named)
{
    char before[200], text[200];
    int leaks = emu_leaks(before, sizeof before);
    float *x;
    cudaEvent_t event;
    OK(cudaMalloc(&x, 1234));
    OK(cudaEventCreate(&event));
    int more = emu_leaks(text, sizeof text);
    OK(cudaFree(x));
    OK(cudaEventDestroy(event));
    CHECK(more == leaks + 2 && strstr(text, "1 device allocations (1234 bytes)") &&
              strstr(text, "1 events"),
          "%d: %s", more, text);
    CHECK(emu_leaks(text, sizeof text) == leaks, "%s", text);
}
