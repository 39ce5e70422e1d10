/* each_backend.h - declares tests that run on every available backend.
 *
 *     EACH_BACKEND(sums_are_right) { ... CHECK(backend->ops->...); }
 *
 * EACH_BACKEND is a TEST that runs its body with each `backend`: the CPU with each of its
 * instruction sets, and CUDA. The CUDA plugin is loaded in the same way as in the program.
 * ESPALIER_CUDA_PLUGIN names the plugin for a real GPU. Without this variable, the test uses
 * the plugin for the emulator, which `make tests` builds in emu/ next to the tests. If the
 * plugin does not open, the test fails. ESPALIER_CUDA_PLUGIN=none leaves CUDA out, as in `make
 * check-arm`, which does not build the emulator. The test prints on which backends it ran.
 *
 *     EACH_ISA(sums_are_right) { ... }
 *
 * EACH_ISA is a TEST that runs its body once for each instruction set of this processor and
 * build, including "tiles", which is AMX with the tile unit emulated. During a run,
 * ESPALIER_ISA names the set. Then all code that opens the CPU backend uses this set. If
 * ESPALIER_ISA is already set, the body runs only with the set that it names. The short form of
 * the test runs only the best set and "tiles". "tiles" is included because it sums in a
 * different order.
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

/* Returns the name of the i-th instruction set on which EACH_ISA runs, or NULL after the
 * last. */
const char *test_isa(int i);
void each_isa(void (*run)(void));
void each_backend(const char *name, void (*run)(struct esp_backend *backend));

/* Returns whether the CUDA backend is tested, on a GPU or on the emulator. */
bool has_cuda(void);

/* Returns whether the CUDA plugin is for a real GPU, not for the emulator. Like open_cuda(), it
 * first chooses the plugin. Skips the test if CUDA is left out. */
bool cuda_is_real(void);

/* Opens the CUDA backend with the plugin. If this fails, the test fails. */
struct esp_backend *open_cuda(void);

#endif
