/* each_backend.h - tests that run on every backend there is.
 *
 *     EACH_BACKEND(sums_are_right) { ... CHECK(backend->ops->...); }
 *
 * is a TEST of its body with `backend` open: the CPU with each of its instruction sets, and
 * CUDA through the plugin, as the program loads it. ESPALIER_CUDA_PLUGIN names the plugin of a
 * real GPU; without it the one that `make tests` builds on the emulator is used, which lies in
 * emu/ beside the tests. Either must open. ESPALIER_CUDA_PLUGIN=none leaves CUDA out (`make
 * check-arm` has no emulator). What a test ran on is printed.
 *
 *     EACH_ISA(sums_are_right) { ... }
 *
 * is a TEST that runs its body once for each instruction set of this processor and build, among
 * them "tiles", which is AMX with the tile unit emulated. ESPALIER_ISA names it meanwhile, so
 * whatever opens the CPU backend uses it. Where ESPALIER_ISA is set from outside, the body runs
 * with that one alone. The short check takes the best one, and "tiles", which sums in another
 * order than the others.
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

#define EACH_ISA(test_name)                                                                    \
    static void test_name##_with_one(void);                                                    \
    TEST(test_name)                                                                            \
    {                                                                                          \
        each_isa(test_name##_with_one);                                                        \
    }                                                                                          \
    static void test_name##_with_one(void)

/* Name i of these instruction sets; NULL behind the last. */
const char *test_isa(int i);
void each_isa(void (*run)(void));
void each_backend(const char *name, void (*run)(struct esp_backend *backend));

/* Is the CUDA backend tested at all? */
bool has_cuda(void);

/* Is the plugin that of a GPU rather than the emulator's? Chooses it, as open_cuda() does; both
 * skip the test if CUDA is left out. */
bool cuda_is_real(void);

/* Opens the backend on the plugin; one that does not open fails the test. */
struct esp_backend *open_cuda(void);

#endif
