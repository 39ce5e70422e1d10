/* each_backend.c - see each_backend.h. */
#include "tests/each_backend.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backends.h"
#include "kernels/cpu/cpu.h"

bool has_cuda(void)
{
    const char *named = getenv("ESPALIER_CUDA_PLUGIN");
    return !named || strcmp(named, "none") != 0;
}

/* If ESPALIER_CUDA_PLUGIN is not set, sets it to the plugin in BUILD/emu. Takes BUILD from the
 * path of the test, BUILD/tests/unit/x. */
bool cuda_is_real(void)
{
    char program[PATH_MAX], path[PATH_MAX + 40];
    const char *named = getenv("ESPALIER_CUDA_PLUGIN");
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!has_cuda())
        check_skip();
    if ((named && *named) || n < 0)
        return !named || !strstr(named, "/emu/");
    program[n] = '\0';
    snprintf(path, sizeof path, "%s/emu/libespalier-cuda.so",
             dirname(dirname(dirname(program))));
    setenv("ESPALIER_CUDA_PLUGIN", path, 1);
    return false;
}

static struct esp_backend *open_one(const struct esp_backend_ops *ops)
{
    struct esp_backend *backend;
    char err[300] = "";
    if (ops == &esp_backend_cuda)
        cuda_is_real();
    CHECK(ops->open(&backend, 2, err, sizeof err) == ESP_OK, "%s: %s", ops->name, err);
    return backend;
}

struct esp_backend *open_cuda(void)
{
    return open_one(&esp_backend_cuda);
}

/* Returns the value that ESPALIER_ISA had when the program began. The value is stored, because
 * a failing test leaves the variable changed. */
static const char *isa_from_outside(void)
{
    static char *isa;
    if (!isa)
        isa = strdup(getenv("ESPALIER_ISA") ? getenv("ESPALIER_ISA") : "");
    return isa;
}

const char *test_isa(int i)
{
    int last = 0;
    if (*isa_from_outside())
        return i == 0 ? isa_from_outside() : NULL;
    while (esp_cpu_isa_name(last + 1))
        last++;
    if (check_quick() && i > 0)
        return i == 1 && last > 0 ? esp_cpu_isa_name(last) : NULL;
    return esp_cpu_isa_name(i);
}

void each_isa(void (*run)(void))
{
    for (int i = 0; test_isa(i); i++) {
        setenv("ESPALIER_ISA", test_isa(i), 1);
        run();
    }
    if (!*isa_from_outside())
        unsetenv("ESPALIER_ISA");
}

static struct {
    const char *name;
    const struct esp_backend_ops *ops;
    void (*run)(struct esp_backend *backend);
} test;

static void run_test(void)
{
    struct esp_backend *backend = open_one(test.ops);
    printf("    %s on %s: %s\n", test.name, test.ops->name, backend->ops->device(backend));
    test.run(backend);
    backend->ops->close(backend);
}

void each_backend(const char *name, void (*run)(struct esp_backend *backend))
{
    test.name = name;
    test.run = run;
    for (int i = 0; esp_backends[i]; i++) {
        test.ops = esp_backends[i];
        if (test.ops == &esp_backend_cpu)
            each_isa(run_test);
        else if (test.ops != &esp_backend_cuda || has_cuda())
            run_test();
    }
}
