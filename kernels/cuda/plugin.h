/* plugin.h - the one symbol of a plugin (libespalier-cuda.so), for the program and for the
 * plugin. */
#ifndef ESP_CUDA_PLUGIN_H
#define ESP_CUDA_PLUGIN_H

#include "kernels/kernels.h"
#include "kernels/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A library of another version, or built against another kernels.h, is not used. */
struct esp_cuda_plugin {
    const char *version; /* ESP_VERSION */
    size_t ops_size;     /* of struct esp_backend_ops */
    const struct esp_backend_ops *ops;
    int cuda; /* CUDA of its runtime, 12040 for 12.4; it needs a driver of that major version */
};

extern const struct esp_cuda_plugin esp_cuda_plugin;

#define ESP_CUDA_PLUGIN_SYMBOL "esp_cuda_plugin"

#ifdef __cplusplus
}
#endif
#endif
