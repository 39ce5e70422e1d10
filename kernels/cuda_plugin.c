/* cuda_plugin.c - loads the CUDA backend, a library of its own, when it is asked for.
 *
 * So one build of the program runs on machines with and without a GPU. The plugin
 * libespalier-cuda.so lies beside the program or the library, or where the system looks for
 * libraries; ESPALIER_CUDA_PLUGIN names another one. It stays loaded, because the CUDA runtime
 * does not support being unloaded.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cuda/plugin.h"
#include "kernels/status.h"

#define PLUGIN "libespalier-cuda.so"

/* Writes the path of the plugin in the folder of `file`. False if it cannot be read there. */
static bool beside(const char *file, const char *folder, char *path, size_t size)
{
    const char *slash = strrchr(file, '/');
    int length = slash ? (int)(slash - file) : 1;
    int n = snprintf(path, size, "%.*s%s/%s", length, slash ? file : ".", folder, PLUGIN);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

static void find_plugin(char *path, size_t size)
{
    const char *named = getenv("ESPALIER_CUDA_PLUGIN");
    char program[PATH_MAX];
    Dl_info self;
    if (named && *named) {
        snprintf(path, size, "%s", named);
        return;
    }
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    if (n > 0 && (beside(program, "", path, size) || beside(program, "/../lib", path, size)))
        return;
    if (dladdr((const void *)&esp_backend_cuda, &self) && self.dli_fname &&
        beside(self.dli_fname, "", path, size))
        return;
    snprintf(path, size, "%s", PLUGIN);
}

static int open_device(struct esp_backend **backend, int device, char *err, size_t errlen)
{
    char path[PATH_MAX];
    struct stat about;
    *backend = NULL;
    find_plugin(path, sizeof path);
    /* If the path led to a pipe, dlopen() would wait for its other end. */
    if (strchr(path, '/') && stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the CUDA backend could not be loaded: %s is not a regular file", path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the CUDA backend could not be loaded (%s); it is built by make where "
                        "nvcc is installed",
                        dlerror());
    const struct esp_cuda_plugin *plugin = dlsym(library, ESP_CUDA_PLUGIN_SYMBOL);
    if (!plugin || strcmp(plugin->version, ESP_VERSION) != 0 ||
        plugin->ops_size != sizeof(struct esp_backend_ops)) {
        dlclose(library);
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "%s belongs to another version of espalier, not " ESP_VERSION
                        "; build and install both together",
                        path);
    }
    return plugin->ops->open_device(backend, device, err, errlen);
}

static int open_first(struct esp_backend **backend, int threads, char *err, size_t errlen)
{
    (void)threads;
    return open_device(backend, 0, err, errlen);
}

const struct esp_backend_ops esp_backend_cuda = {
    .name = "cuda",
    .summary = "an NVIDIA GPU (compute capability 8.0 or newer)",
    .open = open_first,
    .open_device = open_device,
};
