/* emu_memory.cpp - manages device memory and pinned memory.
 *
 * Device memory is a separate range of addresses, which this file calls the arena. Its pages
 * are accessible only while kernels and copies run. So host code that dereferences a device
 * pointer faults, as it would with a GPU. An allocation is aligned to 256 bytes and has exactly
 * the requested size. It is filled with 0xff, which is NaN in every float format. (If it has
 * more than 8 MB, only its first and last 4 MB are filled.) Addresses are reused as late as
 * possible.
 */
#include <cstdlib>
#include <iterator>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/emu/emu_block.h"
#include "tests/emu/emu_control.h"
#include "tests/emu/emu_poison.h"
#include "tests/emu/emu_state.h"

static const size_t arena_bytes = (size_t)16 << 30, alignment = 256;
static const size_t huge_page = (size_t)2 << 20;

struct arena_state {
    unsigned char *base;
    size_t high = 0, cursor = 0, used = 0, peak = 0;
    int open = 0;
    std::map<size_t, size_t> live;   /* offsets of allocations -> their sizes in bytes */
    std::map<size_t, size_t> fences; /* offsets of fences inside allocations -> their sizes */

    arena_state()
    {
        void *mapped = mmap(nullptr, arena_bytes + huge_page, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED)
            emu_fail("no address space for device memory");
        uintptr_t at = reinterpret_cast<uintptr_t>(mapped), past = at % huge_page;
        base = static_cast<unsigned char *>(mapped) + (past ? huge_page - past : 0);
        madvise(base, arena_bytes, MADV_HUGEPAGE); /* mprotect() is faster with large pages */
    }
};

static arena_state &arena()
{
    static arena_state *all = new arena_state;
    return *all;
}

static size_t room_of(size_t bytes)
{
    return (bytes + alignment - 1) / alignment * alignment + 2 * alignment;
}

static void protect(int how)
{
    if (arena().high > 0 && mprotect(arena().base, arena().high, how) != 0)
        emu_fail("cannot protect device memory");
}

void emu_memory_open()
{
    if (arena().open++ == 0)
        protect(PROT_READ | PROT_WRITE);
}

void emu_memory_close()
{
    if (--arena().open == 0)
        protect(PROT_NONE);
}

bool emu_in_arena(const void *address)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(address);
    uintptr_t base = reinterpret_cast<uintptr_t>(arena().base);
    return at >= base && at < base + arena_bytes;
}

/* Returns the allocation that contains `offset` or ends there. If there is none, returns
 * live.end(). */
static std::map<size_t, size_t>::iterator holder(size_t offset)
{
    std::map<size_t, size_t> &live = arena().live;
    auto after = live.upper_bound(offset);
    if (after == live.begin())
        return live.end();
    --after;
    return offset <= after->first + after->second ? after : live.end();
}

emu_where_is emu_find(const void *address, size_t bytes)
{
    if (!emu_in_arena(address))
        return emu_on_host;
    size_t offset = (size_t)(static_cast<const unsigned char *>(address) - arena().base);
    auto found = holder(offset);
    if (found == arena().live.end() || bytes > found->first + found->second - offset)
        return emu_nowhere;
    return emu_on_device;
}

/* Returns the offset of `room` free bytes: the first at or after the cursor, or else the first
 * in the arena. Returns arena_bytes if no free range is large enough. The cursor goes back to 0
 * long before the end of the arena, because a page that was used once continues to take memory.
 */
static size_t find_room(size_t room)
{
    if (arena().cursor + room > 2 * arena().peak + 8 * huge_page)
        arena().cursor = 0;
    for (size_t start : {arena().cursor, (size_t)0}) {
        size_t at = start;
        for (const auto &entry : arena().live) {
            size_t begin = entry.first - alignment, end = begin + room_of(entry.second);
            if (end <= at)
                continue;
            if (at + room <= begin)
                break;
            at = end;
        }
        if (at + room <= arena_bytes)
            return at;
    }
    return arena_bytes;
}

/* ------------------------------------------------------------------ fences */

template <typename F> static void each_fence(const void *address, size_t bytes, F f)
{
    if (!emu_in_arena(address))
        return;
    size_t first = (size_t)(static_cast<const unsigned char *>(address) - arena().base);
    std::map<size_t, size_t> &fences = arena().fences;
    auto fence = fences.lower_bound(first);
    if (fence != fences.begin() && std::prev(fence)->first + std::prev(fence)->second > first)
        --fence;
    for (; fence != fences.end() && fence->first < first + bytes; ++fence)
        f(arena().base + fence->first, fence->second);
}

void emu_put_fence(void *address, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    if (emu_find(address, bytes) != emu_on_device)
        emu_fail("a fence of %zu bytes is not in an allocation on the device", bytes);
    if (bytes == 0)
        return;
    arena().fences[(size_t)(static_cast<unsigned char *>(address) - arena().base)] = bytes;
    emu_memory_open();
    emu_restore_fences(address, bytes);
    emu_memory_close();
}

void emu_lift_fences(const void *address, size_t bytes)
{
    each_fence(address, bytes, [](unsigned char *at, size_t n) {
        if (!emu_guards_hold(at, 0, 0, n))
            emu_fail("something wrote between two pieces of an allocation on the device");
        emu_unpoison(at, n);
    });
}

void emu_restore_fences(const void *address, size_t bytes)
{
    each_fence(address, bytes, [](unsigned char *at, size_t n) { emu_guard(at, 0, 0, n); });
}

/* ------------------------------------------------------------------ allocations */

/* Fills an allocation with 0xff. A very large allocation, which can only be cuBLASLt's
 * workspace, is filled only at both ends. */
static void fill(unsigned char *block, size_t bytes)
{
    const size_t end = (size_t)4 << 20;
    memset(block, 0xff, bytes < 2 * end ? bytes : end);
    if (bytes > 2 * end)
        memset(block + bytes - end, 0xff, end);
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    EMU_CALL();
    if (!address)
        return emu_result(cudaErrorInvalidValue);
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    if (emu_device_count() == 0)
        return emu_result(cudaErrorNoDevice);
    *address = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    size_t room = room_of(bytes);
    if (bytes > arena_bytes || arena().used + room > emu_memory_size())
        return emu_result(cudaErrorMemoryAllocation);
    size_t at = find_room(room);
    if (at == arena_bytes)
        return emu_result(cudaErrorMemoryAllocation);
    arena().cursor = at + room;
    size_t end = (at + room + huge_page - 1) / huge_page * huge_page;
    arena().high = arena().high > end ? arena().high : end;
    arena().used += room;
    arena().peak = arena().peak > arena().used ? arena().peak : arena().used;
    arena().live[at + alignment] = bytes;
    unsigned char *block = arena().base + at + alignment;
    emu_memory_open();
    emu_guard(block, bytes, alignment, room - alignment - bytes);
    fill(block, bytes);
    emu_memory_close();
    emu_live_add(block, "device allocations", bytes);
    *address = block;
    return cudaSuccess;
}

cudaError_t cudaFree(void *address)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t planted = emu_count_call(__func__);
    if (!address)
        return emu_result(planted);
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    emu_run_all();
    if (!emu_live_remove(address, "device allocations"))
        return emu_result(cudaErrorInvalidValue);
    unsigned char *block = static_cast<unsigned char *>(address);
    auto found = arena().live.find((size_t)(block - arena().base));
    size_t bytes = found->second, room = room_of(bytes);
    emu_memory_open();
    if (!emu_guards_hold(block, bytes, alignment, room - alignment - bytes))
        emu_fail("something wrote outside an allocation of %zu bytes on the device", bytes);
    emu_lift_fences(block, bytes);
    arena().fences.erase(arena().fences.lower_bound(found->first),
                         arena().fences.lower_bound(found->first + bytes));
    memset(block, 0xff, bytes < huge_page ? bytes : huge_page);
    emu_poison(block, bytes);
    arena().live.erase(found);
    arena().used -= room;
    emu_memory_close();
    return emu_result(planted);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    EMU_CALL();
    if (emu_device_count() == 0)
        return emu_result(cudaErrorNoDevice);
    size_t total = emu_memory_size();
    *total_bytes = total;
    *free_bytes = arena().used < total ? total - arena().used : 0;
    return cudaSuccess;
}

bool emu_memory_take(size_t bytes)
{
    if (arena().used + bytes > emu_memory_size())
        return false;
    arena().used += bytes;
    arena().peak = arena().peak > arena().used ? arena().peak : arena().used;
    return true;
}

void emu_memory_give_back(size_t bytes)
{
    arena().used -= bytes;
}

size_t emu_memory_used(void)
{
    return arena().used;
}

size_t emu_memory_peak(void)
{
    size_t peak = arena().peak;
    arena().peak = arena().used;
    return peak;
}

/* ------------------------------------------------------------------ pinned memory */

static std::map<uintptr_t, size_t> &pinned()
{
    static auto *all = new std::map<uintptr_t, size_t>;
    return *all;
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned)
{
    EMU_CALL();
    if (!address)
        return emu_result(cudaErrorInvalidValue);
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    if (emu_device_count() == 0)
        return emu_result(cudaErrorNoDevice);
    *address = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    void *block = nullptr;
    if (posix_memalign(&block, alignment, bytes) != 0)
        return emu_result(cudaErrorMemoryAllocation);
    memset(block, 0xff, bytes);
    pinned()[reinterpret_cast<uintptr_t>(block)] = bytes;
    emu_live_add(block, "pinned allocations", bytes);
    *address = block;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **address, size_t bytes, unsigned flags)
{
    return cudaHostAlloc(address, bytes, flags);
}

cudaError_t cudaFreeHost(void *address)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    cudaError_t planted = emu_count_call(__func__);
    if (!address)
        return emu_result(planted);
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    emu_run_all();
    if (!emu_live_remove(address, "pinned allocations"))
        return emu_result(cudaErrorInvalidValue);
    pinned().erase(reinterpret_cast<uintptr_t>(address));
    free(address);
    return emu_result(planted);
}

/* ------------------------------------------------------------------ parameters of kernels */

static bool is_pinned(uintptr_t at)
{
    auto after = pinned().upper_bound(at);
    if (after == pinned().begin())
        return false;
    --after;
    return at <= after->first + after->second;
}

/* Returns whether a page of the host is mapped at this address. Returns false for low
 * addresses: they are small integers, or belong to the sanitizer's shadow memory. */
static bool is_mapped(uintptr_t at)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    if (at < 0x100080000000ull || at >> 48 != 0)
        return false;
    return mincore(reinterpret_cast<void *>(at & ~(page - 1)), 1, &resident) == 0;
}

void emu_check_parameter(const char *kernel, int index, const void *value, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> locked(emu_mutex());
    for (size_t offset = 0; offset + sizeof(uintptr_t) <= bytes; offset += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, static_cast<const char *>(value) + offset, sizeof word);
        void *address = reinterpret_cast<void *>(word);
        if (emu_find(address, 0) == emu_nowhere)
            emu_fail("parameter %d of kernel %s (byte %zu) is not the address of an allocation "
                     "on the device",
                     index + 1, kernel, offset);
        if (!emu_in_arena(address) && is_mapped(word) && !is_pinned(word))
            emu_fail("parameter %d of kernel %s (byte %zu) holds the address of host memory",
                     index + 1, kernel, offset);
    }
}
