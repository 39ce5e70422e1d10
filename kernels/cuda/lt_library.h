/* lt_library.h - loads cuBLASLt at run time, because it may be missing.
 *
 * The library takes half a gigabyte, and comes with the CUDA toolkit but not with the driver.
 * So the plugin is not linked with the library; lt.cu looks for the library at its first use.
 * If it is missing, matmul.cu computes all products. The functions listed here have not changed
 * since CUDA 11. */
#ifndef ESP_CUDA_LT_LIBRARY_H
#define ESP_CUDA_LT_LIBRARY_H

#include "kernels/cuda/device.h"

#define ESP_LT_FUNCTIONS(X)                                                                    \
    X(Create)                                                                                  \
    X(Destroy)                                                                                 \
    X(MatmulDescCreate)                                                                        \
    X(MatmulDescSetAttribute)                                                                  \
    X(MatmulDescDestroy)                                                                       \
    X(MatrixLayoutCreate)                                                                      \
    X(MatrixLayoutDestroy)                                                                     \
    X(MatmulPreferenceCreate)                                                                  \
    X(MatmulPreferenceSetAttribute)                                                            \
    X(MatmulPreferenceDestroy)                                                                 \
    X(MatmulAlgoGetHeuristic)                                                                  \
    X(Matmul)

struct esp_lt_library {
#define X(name) decltype(&cublasLt##name) name;
    ESP_LT_FUNCTIONS(X)
#undef X
};

/* esp_lt_load() loads one version of the library. Callers try ESP_LT_NEWEST first, then older
 * versions. It returns false if this version is missing or lacks one of the functions. The
 * library stays loaded, because it cannot be unloaded. */
enum { ESP_LT_NEWEST = 13, ESP_LT_OLDEST = 11 };
bool esp_lt_load(struct esp_lt_library *library, int version);

#endif
