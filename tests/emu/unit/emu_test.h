/* emu_test.h - helpers for the tests of the emulator.
 *
 * A faulty kernel must end the program. So a test runs it in a child process, and checks that
 * the child fails and what it prints.
 */
#ifndef EMU_TEST_H
#define EMU_TEST_H

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/check.h"
#include "kernels/cuda/device.h"
#include "tests/emu/emu_control.h"

/* True if AddressSanitizer checks the test. Its messages about some faults differ from the
 * emulator's messages, and it also reports faulty reads. */
#ifdef __SANITIZE_ADDRESS__
__attribute__((unused)) static const bool emu_sanitized = true;
#else
__attribute__((unused)) static const bool emu_sanitized = false;
#endif

/* Runs f() in a child process. Returns what the child wrote to stderr if it failed, or "lived"
 * if it exited with status 0. */
template <typename F> static std::string last_words(F f)
{
    int ends[2];
    fflush(nullptr);
    if (pipe(ends) != 0)
        return "no pipe";
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], 2);
        alarm(60);
        f();
        _exit(0);
    }
    close(ends[1]);
    std::string text;
    char piece[512];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;)
        text.append(piece, (size_t)n);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "lived" : text;
}

#define DIES(text, ...)                                                                        \
    do {                                                                                       \
        std::string said = last_words([&] { __VA_ARGS__; });                                   \
        CHECK(said.find(text) != std::string::npos, "'%s' is not in: %.600s", text,            \
              said.c_str());                                                                   \
    } while (0)

#define OK(call)                                                                               \
    do {                                                                                       \
        cudaError_t ok_result = (call);                                                        \
        CHECK(ok_result == cudaSuccess, "%s: %s", #call, cudaGetErrorString(ok_result));       \
    } while (0)

/* An array on the device. read() copies it to the host. */
template <typename T> struct device_array {
    T *data = nullptr;
    size_t count;
    explicit device_array(size_t n) : count(n)
    {
        if (cudaMalloc(&data, n * sizeof(T)) != cudaSuccess)
            abort();
    }
    explicit device_array(const std::vector<T> &from) : device_array(from.size())
    {
        cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~device_array()
    {
        cudaFree(data);
    }
    device_array(const device_array &) = delete;
    std::vector<T> read() const
    {
        std::vector<T> host(count);
        cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost);
        return host;
    }
};

#endif
