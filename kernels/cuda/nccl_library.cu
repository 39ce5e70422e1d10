/* nccl_library.cu - loads NCCL when the program runs; see nccl_library.h. */
#include "kernels/cuda/nccl_library.h"

#include <cstdlib>

bool esp_nccl_load(struct esp_nccl_library *library)
{
    const char *named = getenv("ESPALIER_NCCL");
    void *found = ESP_LIBRARY_OPEN(named && *named ? named : "libnccl.so.2");
    bool all = found;
#define X(result, function, ...)                                                               \
    if (all) {                                                                                 \
        library->function = reinterpret_cast<decltype(library->function)>(                     \
            ESP_LIBRARY_SYMBOL(found, "nccl" #function));                                      \
        all = library->function;                                                               \
    }
    ESP_NCCL_FUNCTIONS(X)
#undef X
    return all;
}
