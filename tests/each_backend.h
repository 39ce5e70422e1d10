/* each_backend.h - tests that run on every backend there is.
 *
 *     EACH_BACKEND(sums_are_right) { ... CHECK(backend->ops->...); }
 *
 * is a TEST of its body with `backend` open: the CPU, and CUDA through the plugin, as the
 * program loads it. ESPALIER_CUDA_PLUGIN names the plugin of a real GPU; without it the one
 * that `make tests` builds on the emulator is used, which lies in emu/ beside the tests. Either
 * must open. What a test ran on is printed.
 */
#ifndef ESP_EACH_BACKEND_H
#define ESP_EACH_BACKEND_H

#include "tests/check.h"
#include "kernels/kernels.h"

#define EACH_BACKEND(test_name)                                                                \
    static void test_name##_on(struct esp_backend *backend);                                   \
    TEST(test_name)                                                                            \
    {                                                                                          \
        each_backend(#test_name, test_name##_on);                                              \
    }                                                                                          \
    static void test_name##_on(struct esp_backend *backend)

void each_backend(const char *name, void (*run)(struct esp_backend *backend));

/* Is the plugin that of a GPU rather than the emulator's? Chooses it, as open_cuda() does. */
bool cuda_is_real(void);

/* Opens the backend on the plugin; one that does not open fails the test. */
struct esp_backend *open_cuda(void);

#endif
