/* emu_stream.cpp - implements lazy streams, events and graphs.
 *
 * Work waits in its stream until the host waits for the stream. Before a stream runs, all work
 * that it depends on runs: work of other streams before an event that the stream waits for, and
 * work of the default stream. (The default stream and blocking streams wait for each other's
 * earlier work.) The seed decides whether other streams run earlier than they must. So a
 * missing dependency gives a wrong result with some seeds.
 */
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "tests/emu/emu_block.h"
#include "tests/emu/emu_control.h"
#include "tests/emu/emu_state.h"

typedef std::chrono::steady_clock::time_point time_point;

struct work {
    uint64_t number; /* the work of all streams is numbered in the order of queueing */
    std::function<void()> run;
};

struct CUgraph_st {
    std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st {
    std::shared_ptr<const CUgraph_st> graph;
    size_t bytes = 0; /* device memory that the driver uses for the graph */
};
static size_t node_bytes;

struct CUstream_st {
    bool blocking = true; /* true: this stream and the default stream wait for each other */
    int device = emu_current_device();
    std::deque<work> queue;
    std::unique_ptr<CUgraph_st> capture; /* the graph that is being captured, or NULL */
    bool spoiled = false;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};

struct record { /* a call of cudaEventRecord() */
    cudaStream_t stream;
    bool done = false, captured = false;
    time_point when;
};
struct CUevent_st {
    unsigned flags;
    std::shared_ptr<record> last; /* NULL if the event was never recorded */
};

struct stream_table {
    CUstream_st standard;
    std::set<cudaStream_t> all = {&standard};
    uint64_t number = 0, choices = 0;
};

static stream_table &streams()
{
    static stream_table *all = new stream_table;
    return *all;
}

static cudaStream_t resolve(cudaStream_t stream)
{
    cudaStream_t s = stream ? stream : &streams().standard;
    return streams().all.count(s) ? s : nullptr;
}

/* ------------------------------------------------------------------ running */

static void run_until(cudaStream_t stream, uint64_t number);

static void run_one(cudaStream_t stream)
{
    work first = std::move(stream->queue.front());
    stream->queue.pop_front();
    bool standard = stream == &streams().standard;
    for (cudaStream_t other : streams().all)
        if (other != stream && other->blocking && stream->blocking &&
            (standard || other == &streams().standard))
            run_until(other, first.number);
    emu_memory_open();
    first.run();
    emu_memory_close();
}

bool emu_run_next(cudaStream_t stream)
{
    if (!resolve(stream) || stream->queue.empty())
        return false;
    run_one(stream);
    return true;
}

bool emu_captures(cudaStream_t stream)
{
    cudaStream_t s = resolve(stream);
    return s && s->capture;
}

static void run_until(cudaStream_t stream, uint64_t number)
{
    while (!stream->queue.empty() && stream->queue.front().number <= number)
        run_one(stream);
}

static void run_stream(cudaStream_t stream)
{
    emu_memory_open();
    emu_waits += !stream->queue.empty();
    uint64_t seed = emu_next_seed();
    for (cudaStream_t other : streams().all)
        if (seed && other != stream && (seed >> (++streams().choices % 60) & 1))
            run_until(other, streams().number);
    run_until(stream, streams().number);
    emu_memory_close();
}

cudaError_t emu_run_all()
{
    for (cudaStream_t stream : streams().all)
        run_until(stream, streams().number);
    return cudaSuccess;
}

cudaError_t emu_refuse_in_capture()
{
    cudaError_t result = cudaSuccess;
    for (cudaStream_t stream : streams().all)
        if (stream->capture && stream->mode != cudaStreamCaptureModeRelaxed) {
            stream->spoiled = true;
            result = cudaErrorStreamCaptureUnsupported;
        }
    return result;
}

cudaError_t emu_enqueue(cudaStream_t stream, std::function<void()> run)
{
    cudaStream_t s = resolve(stream);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (s == &streams().standard)
        for (cudaStream_t other : streams().all)
            if (other->capture && other->blocking) {
                other->spoiled = true;
                return cudaErrorStreamCaptureImplicit;
            }
    if (s->capture) {
        if (s->spoiled)
            return cudaErrorStreamCaptureInvalidated;
        s->capture->nodes.push_back(std::move(run));
    } else {
        s->queue.push_back(work{++streams().number, std::move(run)});
    }
    return cudaSuccess;
}

void emu_enqueue_kernel(const emu_launch_shape &launch, cudaStream_t stream,
                        const emu_body *body)
{
    std::shared_ptr<const emu_body> owned(body);
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t result = emu_count_call(__func__);
    cudaStream_t s = resolve(stream);
    const bool captured = s && s->capture;
    if (!result)
        result = emu_check_launch(launch, captured);
    if (result == cudaErrorStreamCaptureUnsupported)
        s->spoiled = true;
    if (!result && stream && streams().all.count(stream) &&
        stream->device != emu_current_device())
        result = cudaErrorInvalidResourceHandle; /* a GPU refuses a stream of another device */
    if (!result)
        result = emu_enqueue(stream, [launch, owned] {
            emu_kernels++;
            emu_most_shared = launch.shared > emu_most_shared ? launch.shared : emu_most_shared;
            emu_run_kernel(launch, *owned, emu_next_seed());
        });
    emu_result(result);
}

/* ------------------------------------------------------------------ streams */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    EMU_CALL();
    if (emu_device_count() == 0)
        return emu_result(cudaErrorNoDevice);
    if (!stream || flags > cudaStreamNonBlocking)
        return emu_result(cudaErrorInvalidValue);
    *stream = new CUstream_st;
    (*stream)->blocking = flags != cudaStreamNonBlocking;
    streams().all.insert(*stream);
    emu_live_add(*stream, "streams", 0);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t planted = emu_count_call(__func__);
    if (!emu_live_remove(stream, "streams"))
        return emu_result(cudaErrorInvalidResourceHandle);
    run_until(stream, streams().number);
    streams().all.erase(stream);
    delete stream;
    return emu_result(planted);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    EMU_CALL();
    cudaStream_t s = resolve(stream);
    if (!s)
        return emu_result(cudaErrorInvalidResourceHandle);
    if (s->capture) {
        s->spoiled = true;
        return emu_result(cudaErrorStreamCaptureUnsupported);
    }
    run_stream(s);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    EMU_CALL();
    cudaStream_t s = resolve(stream);
    if (!s)
        return emu_result(cudaErrorInvalidResourceHandle);
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    if (s->queue.empty())
        return cudaSuccess;
    run_one(s);
    return cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize()
{
    EMU_CALL();
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    emu_waits++;
    return emu_run_all();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user)
{
    EMU_CALL();
    return emu_result(emu_enqueue(stream, [function, user] { function(user); }));
}

/* ------------------------------------------------------------------ events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    EMU_CALL();
    if (emu_device_count() == 0)
        return emu_result(cudaErrorNoDevice);
    *event = new CUevent_st{flags, nullptr};
    emu_live_add(*event, "events", 0);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t planted = emu_count_call(__func__);
    if (!emu_live_remove(event, "events"))
        return emu_result(cudaErrorInvalidResourceHandle);
    delete event;
    return emu_result(planted);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    EMU_CALL();
    cudaStream_t s = resolve(stream);
    if (!s || !emu_live(event, "events"))
        return emu_result(cudaErrorInvalidResourceHandle);
    std::shared_ptr<record> made = std::make_shared<record>();
    made->stream = s;
    made->captured = s->capture != nullptr;
    cudaError_t result = cudaSuccess;
    if (!made->captured)
        result = emu_enqueue(stream, [made] {
            made->done = true;
            made->when = std::chrono::steady_clock::now();
        });
    if (!result)
        event->last = made;
    return emu_result(result);
}

/* Runs the work of the event's stream that precedes the event. */
static void await(record &r)
{
    while (!r.done)
        run_one(r.stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    EMU_CALL();
    cudaStream_t s = resolve(stream);
    if (!s || !emu_live(event, "events"))
        return emu_result(cudaErrorInvalidResourceHandle);
    std::shared_ptr<record> last = event->last;
    if (!last)
        return cudaSuccess;
    if (last->captured) /* only the stream of the event can wait, and its work is in order */
        return emu_result(last->stream == s ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
    return emu_result(emu_enqueue(stream, [last] { await(*last); }));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    EMU_CALL();
    if (!emu_live(event, "events"))
        return emu_result(cudaErrorInvalidResourceHandle);
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    if (!event->last)
        return cudaSuccess;
    if (event->last->captured)
        return emu_result(cudaErrorCapturedEvent);
    emu_memory_open();
    emu_waits += !event->last->done;
    await(*event->last);
    emu_memory_close();
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    EMU_CALL();
    if (!emu_live(event, "events"))
        return emu_result(cudaErrorInvalidResourceHandle);
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    if (!event->last || event->last->done)
        return cudaSuccess;
    if (event->last->captured)
        return emu_result(cudaErrorCapturedEvent);
    run_one(event->last->stream);
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    EMU_CALL();
    if (!emu_live(from, "events") || !emu_live(to, "events") || !from->last || !to->last ||
        (from->flags | to->flags) & cudaEventDisableTiming)
        return emu_result(cudaErrorInvalidResourceHandle);
    if (from->last->captured || to->last->captured)
        return emu_result(cudaErrorCapturedEvent);
    if (!from->last->done || !to->last->done)
        return cudaErrorNotReady;
    std::chrono::duration<float, std::milli> passed = to->last->when - from->last->when;
    *milliseconds = passed.count();
    return cudaSuccess;
}

/* ------------------------------------------------------------------ graphs */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    EMU_CALL();
    cudaStream_t s = resolve(stream);
    if (!s)
        return emu_result(cudaErrorInvalidResourceHandle);
    if (s == &streams().standard || s->capture)
        return emu_result(cudaErrorStreamCaptureUnsupported);
    s->capture.reset(new CUgraph_st);
    s->spoiled = false;
    s->mode = mode;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t result = emu_count_call(__func__);
    cudaStream_t s = resolve(stream);
    *graph = nullptr;
    if (!s || !s->capture)
        return emu_result(cudaErrorInvalidValue);
    std::unique_ptr<CUgraph_st> captured = std::move(s->capture);
    if (!result && s->spoiled)
        result = cudaErrorStreamCaptureInvalidated;
    if (result)
        return emu_result(result);
    *graph = captured.release();
    emu_live_add(*graph, "graphs", 0);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    EMU_CALL();
    cudaStream_t s = resolve(stream);
    if (!s)
        return emu_result(cudaErrorInvalidResourceHandle);
    *status = !s->capture  ? cudaStreamCaptureStatusNone
              : s->spoiled ? cudaStreamCaptureStatusInvalidated
                           : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

void emu_set_node_bytes(size_t bytes)
{
    node_bytes = bytes;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long)
{
    EMU_CALL();
    if (!emu_live(graph, "graphs"))
        return emu_result(cudaErrorInvalidValue);
    const size_t bytes = graph->nodes.size() * node_bytes;
    if (!emu_memory_take(bytes))
        return emu_result(cudaErrorMemoryAllocation);
    *executable = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph), bytes};
    emu_live_add(*executable, "executable graphs", 0);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t)
{
    EMU_CALL();
    return emu_result(emu_live(executable, "executable graphs") ? cudaSuccess
                                                                : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    EMU_CALL();
    if (!emu_live(executable, "executable graphs"))
        return emu_result(cudaErrorInvalidValue);
    std::shared_ptr<const CUgraph_st> graph = executable->graph;
    cudaError_t result = cudaSuccess;
    for (size_t i = 0; i < graph->nodes.size() && !result; i++)
        result = emu_enqueue(stream, [graph, i] { graph->nodes[i](); });
    return emu_result(result);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t planted = emu_count_call(__func__);
    if (!emu_live_remove(executable, "executable graphs"))
        return emu_result(cudaErrorInvalidValue);
    emu_memory_give_back(executable->bytes);
    delete executable;
    return emu_result(planted);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t planted = emu_count_call(__func__);
    if (!emu_live_remove(graph, "graphs"))
        return emu_result(cudaErrorInvalidValue);
    delete graph;
    return emu_result(planted);
}
