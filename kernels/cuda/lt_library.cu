/* lt_library.cu - loads cuBLASLt. The library may be in the plugin's folder, in a folder where
 * the system looks for libraries, or where the CUDA toolkit installs it. The Makefile puts that
 * folder into the plugin's run path. */
#include "kernels/cuda/lt_library.h"

#include <cstdio>

bool esp_lt_load(struct esp_lt_library *library, int version)
{
    char name[40];
    snprintf(name, sizeof name, "libcublasLt.so.%d", version);
    void *found = ESP_LIBRARY_OPEN(name);
    bool all = found;
#define X(function)                                                                            \
    if (all) {                                                                                 \
        library->function = reinterpret_cast<decltype(library->function)>(                     \
            ESP_LIBRARY_SYMBOL(found, "cublasLt" #function));                                  \
        all = library->function;                                                               \
    }
    ESP_LT_FUNCTIONS(X)
#undef X
    return all;
}
