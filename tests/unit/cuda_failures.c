/* cuda_failures.c - every call of CUDA's runtime behind the operations on rows fails once, on
 * the emulator: the status says so, a sentence names what failed, nothing leaks, and the
 * backend goes on. (A real GPU does not fail on demand; there the test only does what must
 * succeed.)
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "each_backend.h"

enum { N = 4200, OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719 };

static struct {
    void (*fail_at)(long call, int error, bool ever_after);
    long (*calls)(void);
    int (*leaks)(char *text, size_t bytes);
} emulator;

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    CHECK(found, "%s", dlerror());
    return found;
}

/* The plugin is loaded already. */
static void find_emulator(void)
{
    void *library = dlopen(getenv("ESPALIER_CUDA_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
    CHECK(library, "%s", dlerror());
    *(void **)&emulator.fail_at = symbol(library, "emu_fail_at");
    *(void **)&emulator.calls = symbol(library, "emu_calls");
    *(void **)&emulator.leaks = symbol(library, "emu_leaks");
    dlclose(library);
}

/* All operations, as long as they succeed; row 0 becomes probabilities, row 1 holds them. */
static int operate(struct esp_rows *rows)
{
    static float values[N];
    static double mass[2][ESP_RATIO_CLASSES];
    const struct esp_backend_ops *ops = rows->backend->ops;
    const struct esp_sampling sampling = {0.8, 0.9, 50};
    const struct esp_combination f = {1, -0.5, 0, 0};
    const int32_t which = 0, both[2] = {0, 1};
    int32_t ids[200];
    float best[200];
    double number;
    int status;
    for (int i = 0; i < N; i++)
        values[i] = (float)sin(i);
    if ((status = ops->write_row(rows, 0, values)) < 0 ||
        (status = ops->write_row(rows, 1, values)) < 0 ||
        (status = ops->argmax(rows, both, 2, ids)) < 0 ||
        (status = ops->top_k(rows, both, 2, 3, ids, best)) < 0 ||
        (status = ops->top_k(rows, both, 2, 100, ids, best)) < 0 ||
        (status = ops->softmax(rows, both, 2, &sampling)) < 0 ||
        (status = ops->gather(rows, &which, &which, 1, &number)) < 0 ||
        (status = ops->sample(rows, &which, &(double){0.5}, 1, NULL, 0, ids, &number)) < 0 ||
        (status = ops->combine(rows, 0, rows, 1, &f, rows, 2, &number)) < 0 ||
        (status = ops->remove(rows, 2, ids[0], &number)) < 0 ||
        (status = ops->ratio_masses(rows, 0, rows, 1, mass[0], mass[1])) < 0 ||
        (status = ops->ratio_residual(rows, 0, rows, 1, mass[0], rows, 2, &number)) < 0)
        return status;
    return ops->read_row(rows, 2, values);
}

static int open_and_operate(struct esp_backend *backend, char *err, size_t errlen)
{
    struct esp_rows *rows;
    int status = backend->ops->rows_open(&rows, backend, 3, N, err, errlen);
    if (status < 0)
        return status;
    status = operate(rows);
    if (status < 0)
        snprintf(err, errlen, "%s", backend->ops->failure(backend));
    backend->ops->rows_close(rows);
    return status;
}

TEST(each_call_may_fail)
{
    struct esp_backend *cuda = open_cuda();
    char err[300] = "", text[300] = "";
    CHECK(open_and_operate(cuda, err, sizeof err) == 0, "%s", err);
    if (!cuda_is_real()) {
        const int errors[] = {OUT_OF_MEMORY, LAUNCH_FAILED};
        find_emulator();
        emulator.fail_at(0, 0, false);
        CHECK(open_and_operate(cuda, err, sizeof err) == 0);
        const long calls = emulator.calls();
        CHECK(calls > 30);
        const int before = emulator.leaks(text, sizeof text);
        for (long call = 1; call <= calls; call += check_quick() ? 5 : 1) {
            const bool memory = call % 2;
            *err = '\0';
            emulator.fail_at(call, errors[!memory], call % 3 == 0);
            int status = open_and_operate(cuda, err, sizeof err);
            emulator.fail_at(0, 0, false);
            CHECK(emulator.leaks(text, sizeof text) == before, "call %ld: %s", call, text);
            if (status == 0)
                continue; /* what gives memory back does so even if it fails */
            CHECK(status == (memory ? ESP_E_MEMORY : ESP_E_DEVICE), "call %ld: %d (%s)", call,
                  status, err);
            CHECK(strlen(err) > 20, "call %ld: '%s'", call, err);
        }
        CHECK(open_and_operate(cuda, err, sizeof err) == 0, "%s", err);
    }
    cuda->ops->close(cuda);
}

TEST(rows_that_do_not_fit_are_refused)
{
    struct esp_backend *cuda = open_cuda();
    struct esp_rows *rows;
    char err[300] = "";
    CHECK(cuda->ops->rows_open(&rows, cuda, 1, (1 << 20) + 1, err, sizeof err) ==
          ESP_E_ARGUMENT);
    CHECK(strstr(err, "1048576"), "%s", err);
    CHECK(cuda->ops->rows_open(&rows, cuda, 1 << 20, 1 << 20, err, sizeof err) == ESP_E_MEMORY);
    CHECK(strstr(err, "1048576 rows") && strstr(err, "--backend cpu"), "%s", err);
    CHECK(!rows);
    CHECK(open_and_operate(cuda, err, sizeof err) == 0, "%s", err);
    cuda->ops->close(cuda);
}
