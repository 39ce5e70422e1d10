/* no_plugin.c - replaces the CUDA backend in the static program, which cannot load a plugin. */
#include "kernels/cuda/plugin.h"
#include "kernels/status.h"

static int open_device(struct esp_backend **backend, int device, char *err, size_t errlen)
{
    (void)device;
    *backend = NULL;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "this program is static (make static) and has no CUDA backend; build it "
                    "with `make`");
}

static int open_first(struct esp_backend **backend, int threads, char *err, size_t errlen)
{
    return open_device(backend, threads, err, errlen);
}

const struct esp_backend_ops esp_backend_cuda = {
    .name = "cuda",
    .summary = "an NVIDIA GPU (not available in a static program)",
    .open = open_first,
    .open_device = open_device,
};
