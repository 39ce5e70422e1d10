/* emu_nccl.cpp - all-gathers between emulated GPUs; see emu_nccl.h.
 *
 * When an all-gather runs on a stream, it first runs the streams of the other GPUs up to the
 * same all-gather. The stream that reaches the all-gather last copies the parts of all ranks.
 */
#include "tests/emu/emu_nccl.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/emu/emu_state.h"

struct part { /* the data that a rank sends in an all-gather, and the address for the result */
    const char *from;
    char *to;
    size_t bytes;
    cudaStream_t stream;
};
struct clique {
    std::vector<part> now;     /* (ranks) each rank's part of its latest all-gather */
    std::vector<long> arrived; /* (ranks) how many all-gathers each rank has reached */
};
struct ncclComm {
    int rank;
    std::shared_ptr<clique> all;
};

static thread_local int depth; /* how many nested groups the thread has begun */
static thread_local std::vector<std::pair<ncclComm_t, part>> grouped;

#define NCCL_CALL()                                                                            \
    std::lock_guard<std::recursive_mutex> emu_locked(emu_mutex());                             \
    if (emu_count_call(__func__))                                                              \
    return ncclUnhandledCudaError

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess              ? "no error"
           : result == ncclUnhandledCudaError ? "unhandled cuda error"
           : result == ncclInvalidUsage       ? "invalid usage"
                                              : "invalid argument";
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int count, const int *devices)
{
    NCCL_CALL();
    std::set<int> used;
    for (int i = 0; i < count; i++)
        if (devices[i] < 0 || devices[i] >= emu_device_count() ||
            !used.insert(devices[i]).second)
            return ncclInvalidArgument;
    auto all = std::make_shared<clique>();
    all->now.resize((size_t)count);
    all->arrived.resize((size_t)count);
    for (int i = 0; i < count; i++) {
        comm[i] = new ncclComm{i, all};
        emu_live_add(comm[i], "communicators", 0);
    }
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    const cudaError_t planted = emu_count_call(__func__);
    if (!emu_live_remove(comm, "communicators"))
        return ncclInvalidArgument;
    delete comm;
    return planted ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    NCCL_CALL();
    if (!emu_live(comm, "communicators") || type > ncclUint8)
        return ncclInvalidArgument;
    const size_t ranks = comm->all->now.size();
    if (emu_find(from, count) != emu_on_device || emu_find(to, count * ranks) != emu_on_device)
        return ncclInvalidArgument;
    if (depth == 0 && ranks > 1)
        return ncclInvalidUsage; /* outside a group, the thread would wait forever */
    grouped.push_back({comm, {(const char *)from, (char *)to, count, stream}});
    return ncclSuccess;
}

ncclResult_t ncclGroupStart()
{
    NCCL_CALL();
    depth++;
    return ncclSuccess;
}

static void copy_all(const clique &all)
{
    for (const part &to : all.now)
        for (size_t i = 0; i < all.now.size(); i++) {
            const part &from = all.now[i];
            if (from.bytes != to.bytes) {
                fprintf(stderr, "emulator: ranks gather different numbers of bytes\n");
                abort();
            }
            memmove(to.to + i * to.bytes, from.from, from.bytes);
        }
}

/* Records that a rank has reached an all-gather. Runs the other ranks until they have reached
 * the same all-gather. The last rank that arrives copies the parts of all ranks. */
static void come(clique &all, const std::vector<cudaStream_t> &streams, int rank, const part &p)
{
    const long number = ++all.arrived[(size_t)rank];
    all.now[(size_t)rank] = p;
    bool last = true;
    for (long arrived : all.arrived)
        last = last && arrived >= number;
    if (last)
        copy_all(all);
    for (size_t i = 0; i < all.arrived.size(); i++)
        while (all.arrived[i] < number)
            if (!emu_run_next(streams[i])) {
                fprintf(stderr, "emulator: rank %zu does not reach an all-gather\n", i);
                abort();
            }
}

ncclResult_t ncclGroupEnd()
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    const cudaError_t planted = emu_count_call(__func__);
    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth > 0)
        return planted ? ncclUnhandledCudaError : ncclSuccess;
    std::vector<std::pair<ncclComm_t, part>> begun;
    begun.swap(grouped);
    if (planted)
        return ncclUnhandledCudaError;
    size_t captured = 0;
    std::vector<cudaStream_t> streams(begun.size());
    for (const auto &one : begun) {
        captured += emu_captures(one.second.stream);
        if (one.first->all != begun[0].first->all ||
            begun.size() != one.first->all->now.size() || streams[(size_t)one.first->rank])
            return ncclInvalidUsage; /* the emulator allows only one all-gather in a group */
        streams[(size_t)one.first->rank] = one.second.stream;
    }
    if (captured > 0 && captured < begun.size())
        return ncclInvalidUsage;
    for (const auto &one : begun) {
        std::shared_ptr<clique> all = one.first->all;
        const int rank = one.first->rank;
        const part p = one.second;
        if (emu_enqueue(p.stream, [all, streams, rank, p] { come(*all, streams, rank, p); }))
            return ncclUnhandledCudaError;
    }
    return ncclSuccess;
}
