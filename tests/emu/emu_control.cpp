/* emu_control.cpp - reports the emulator's errors, makes calls fail, counts live handles, and
 * stores a test's settings. */
#include "tests/emu/emu_control.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>

#include "tests/emu/emu_block.h"
#include "tests/emu/emu_state.h"

struct live {
    const char *kind;
    size_t bytes;
};

struct control_state {
    int devices = 1, driver = CUDART_VERSION, lt = CUDART_VERSION / 1000;
    size_t memory = (size_t)4 << 30;
    int multiprocessors = 4, shared = 227;
    enum emu_heuristic heuristic = EMU_FINDS;
    uint64_t seed = 1, launches = 0;
    long calls = 0, fail_at = 0;
    int fail_with = cudaErrorUnknown;
    bool ever_after = false, nccl = true;
    const char *failed = nullptr;
    std::map<const void *, live> handles;
    std::recursive_mutex mutex;
};

static control_state &control()
{
    /* never freed, because destructors that run after main use it */
    static control_state *all = new control_state;
    return *all;
}

long emu_kernels, emu_waits;
size_t emu_most_shared;
static thread_local cudaError_t last_error = cudaSuccess;

/* ------------------------------------------------------------------ environment variables */

static unsigned long long from_environment(const char *name, unsigned long long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, nullptr, 10) : otherwise;
}

static void say_leaks()
{
    char text[512];
    if (emu_leaks(text, sizeof text) > 0)
        fprintf(stderr, "emulator: never released: %s\n", text);
}

static void say_fault()
{
    char where[256];
    emu_say_where(where, sizeof where);
    if (where[0] && write(2, "emulator: fault in ", 19) > 0 &&
        write(2, where, strlen(where)) > 0 && write(2, "\n", 1) > 0)
        return;
}

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
static void watch_faults()
{
    __sanitizer_set_death_callback(say_fault);
}
#else
/* Reports where a kernel faulted. Then the fault happens again and ends the program. */
static void on_fault(int number, siginfo_t *info, void *)
{
    say_fault();
    if (!emu_where && emu_in_arena(info->si_addr)) {
        static const char text[] = "emulator: the host touched device memory\n";
        if (write(2, text, sizeof text - 1) < 0)
            _exit(1);
    }
    signal(number, SIG_DFL);
}

static void watch_faults()
{
    struct sigaction old, action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    if (sigaction(SIGSEGV, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGSEGV, &action, nullptr);
}
#endif

__attribute__((constructor)) static void emu_begin()
{
    control_state &c = control();
    c.devices = (int)from_environment("ESPALIER_EMU_DEVICES", 1);
    c.driver = (int)from_environment("ESPALIER_EMU_DRIVER", c.driver);
    c.lt = (int)from_environment("ESPALIER_EMU_LT", c.lt);
    c.nccl = from_environment("ESPALIER_EMU_NCCL", 1) > 0;
    c.memory = from_environment("ESPALIER_EMU_MEMORY", c.memory);
    c.multiprocessors = (int)from_environment("ESPALIER_EMU_SMS", c.multiprocessors);
    emu_set_node_bytes(from_environment("ESPALIER_EMU_NODE", 0));
    c.shared = (int)from_environment("ESPALIER_EMU_SHARED", c.shared);
    c.seed = from_environment("ESPALIER_EMU_SEED", c.seed);
    c.fail_at = (long)from_environment("ESPALIER_EMU_FAIL", 0);
    if (from_environment("ESPALIER_EMU_LEAKS", 0))
        atexit(say_leaks);
    watch_faults();
}

/* ------------------------------------------------------------------ functions for the tests */

void emu_set_devices(int count)
{
    control().devices = count;
}

void emu_set_driver(int version)
{
    control().driver = version;
}

void emu_set_lt(int version)
{
    control().lt = version;
}

void emu_set_heuristic(enum emu_heuristic answer)
{
    control().heuristic = answer;
}

void emu_set_memory(size_t bytes)
{
    control().memory = bytes;
}

void emu_set_multiprocessors(int count)
{
    control().multiprocessors = count;
}

void emu_set_shared(int kilobytes)
{
    control().shared = kilobytes;
}

size_t emu_shared_peak(void)
{
    const size_t most = emu_most_shared;
    emu_most_shared = 0;
    return most;
}

void emu_set_seed(uint64_t seed)
{
    control().seed = seed;
    control().launches = 0;
}

void emu_fail_at(long call, int error, bool ever_after)
{
    control_state &c = control();
    c.calls = 0;
    c.fail_at = call;
    c.fail_with = error;
    c.ever_after = ever_after;
    c.failed = nullptr;
}

long emu_calls(void)
{
    return control().calls;
}

const char *emu_failed_call(void)
{
    return control().failed ? control().failed : "";
}

int emu_leaks(char *text, size_t bytes)
{
    std::map<std::string, live> sums;  /* how many bytes the objects of each kind have */
    std::map<std::string, int> counts; /* how many objects of each kind there are */
    for (const auto &entry : control().handles) {
        counts[entry.second.kind]++;
        sums[entry.second.kind].bytes += entry.second.bytes;
    }
    int total = 0;
    std::string said;
    for (const auto &entry : counts) {
        total += entry.second;
        said += (said.empty() ? "" : ", ") + std::to_string(entry.second) + " " + entry.first;
        if (sums[entry.first].bytes > 0)
            said += " (" + std::to_string(sums[entry.first].bytes) + " bytes)";
    }
    if (bytes > 0)
        snprintf(text, bytes, "%s", said.c_str());
    return total;
}

long emu_kernels_run(void)
{
    return emu_kernels;
}

long emu_waits_made(void)
{
    return emu_waits;
}

/* --------------------------------------------------------------- functions for the emulator */

std::recursive_mutex &emu_mutex()
{
    return control().mutex;
}

cudaError_t emu_count_call(const char *name)
{
    control_state &c = control();
    c.calls++;
    bool fails =
        c.fail_at > 0 && (c.calls == c.fail_at || (c.ever_after && c.calls > c.fail_at));
    if (!fails)
        return cudaSuccess;
    if (!c.failed)
        c.failed = name;
    return (cudaError_t)c.fail_with;
}

cudaError_t emu_result(cudaError_t error)
{
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

uint64_t emu_next_seed()
{
    control_state &c = control();
    return c.seed ? c.seed + 0x9e3779b97f4a7c15ull * ++c.launches : 0;
}

int emu_device_count()
{
    return control().devices;
}

int emu_driver_version()
{
    return control().driver;
}

int emu_lt_version()
{
    return control().lt;
}

bool emu_has_nccl()
{
    return control().nccl;
}

enum emu_heuristic emu_heuristic_answer()
{
    return control().heuristic;
}

size_t emu_memory_size()
{
    return control().memory;
}

int emu_multiprocessors()
{
    return control().multiprocessors;
}

int emu_shared_kilobytes()
{
    return control().shared;
}

void emu_live_add(const void *handle, const char *kind, size_t bytes)
{
    control().handles[handle] = live{kind, bytes};
}

bool emu_live(const void *handle, const char *kind)
{
    auto found = control().handles.find(handle);
    return found != control().handles.end() && strcmp(found->second.kind, kind) == 0;
}

bool emu_live_remove(const void *handle, const char *kind)
{
    return emu_live(handle, kind) && control().handles.erase(handle) > 0;
}

/* ------------------------------------------------------------------ errors of the runtime */

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define X(name, number, text)                                                                  \
    case name:                                                                                 \
        return #name;
        EMU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define X(name, number, text)                                                                  \
    case name:                                                                                 \
        return text;
        EMU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

cudaError_t cudaPeekAtLastError()
{
    return last_error;
}

cudaError_t cudaGetLastError()
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
