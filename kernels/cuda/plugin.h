/* plugin.h - declares the only symbol that a plugin (libespalier-cuda.so) exports. Both the
 * program and the plugin include this file. */
#ifndef ESP_CUDA_PLUGIN_H
#define ESP_CUDA_PLUGIN_H

#include "kernels/kernels.h"
#include "kernels/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Holds the data that a plugin passes to the program. The program refuses a plugin of a
 * different version of espalier, and a plugin that was built with a different kernels.h. */
struct esp_cuda_plugin {
    const char *version; /* ESP_VERSION */
    size_t ops_size;     /* size of struct esp_backend_ops */
    const struct esp_backend_ops *ops;
    int cuda; /* CUDA version of the plugin, e.g. 12040; the driver must not be older */
};

extern const struct esp_cuda_plugin esp_cuda_plugin;

#define ESP_CUDA_PLUGIN_SYMBOL "esp_cuda_plugin"

#ifdef __cplusplus
}
#endif
#endif
