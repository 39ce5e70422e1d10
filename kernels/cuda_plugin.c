/* cuda_plugin.c - loads the CUDA backend, which is a separate library, when it is needed.
 *
 * This lets one build run on machines with and without a GPU. There may be two plugins, made
 * with different CUDA toolkits: a driver runs plugins made for its own major version of CUDA or
 * for an older one, but not for a newer one. libespalier-cuda.so is made with the newest
 * toolkit, and libespalier-cuda12.so is made with CUDA 12, for older drivers. The driver is
 * asked for its version, and the first plugin that it can run is used. If it can run none, the
 * plugin for the oldest drivers is loaded, and its error message says so.
 *
 * Plugins are in the folder of the program or of the library, or where the system looks for
 * libraries. ESPALIER_CUDA_PLUGIN names another plugin, or a folder of plugins. A
 * plugin stays loaded, because the CUDA runtime cannot be unloaded.
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
#include "kernels/system.h"

/* Names of the plugins; the first one needs the newest driver. */
static const char *const names[] = {"libespalier-cuda.so", "libespalier-cuda12.so"};
enum { NAMES = sizeof names / sizeof *names };

/* Writes the path of a plugin that is in the folder of `file`, or in `folder`, which is
 * relative to that folder. Returns false if there is no readable file. */
static bool beside(const char *file, const char *folder, const char *name, char *path,
                   size_t size)
{
    const char *slash = strrchr(file, '/');
    int length = slash ? (int)(slash - file) : 1;
    int n = snprintf(path, size, "%.*s%s/%s", length, slash ? file : ".", folder, name);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/* Writes the path of the plugin, or only its name if the system has to look for it. */
static void find_plugin(const char *name, char *path, size_t size)
{
    char program[PATH_MAX];
    Dl_info self;
    if (esp_program_path(program, sizeof program) &&
        (beside(program, "", name, path, size) || beside(program, "/../lib", name, path, size)))
        return;
    if (dladdr((const void *)&esp_backend_cuda, &self) && self.dli_fname &&
        beside(self.dli_fname, "", name, path, size))
        return;
    snprintf(path, size, "%s", name);
}

/* Returns the newest version of CUDA that the driver runs, e.g. 12040 for 12.4, or 0 if there
 * is no driver. */
static int driver_version(void)
{
    int (*get)(int *) = NULL;
    int version = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver)
        *(void **)&get = dlsym(driver, "cuDriverGetVersion");
    return get && get(&version) == 0 ? version : 0;
}

/* Loads the plugin at `path`. If it cannot be loaded, *found does not change. */
static int load(const char *path, const struct esp_cuda_plugin **found, char *err,
                size_t errlen)
{
    struct stat about;
    /* dlopen() of a named pipe would wait until a program writes to it. */
    if (strchr(path, '/') && stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the CUDA backend could not be loaded: %s is not a regular file", path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "the CUDA backend could not be loaded (%s); make builds it where "
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
    *found = plugin;
    return ESP_OK;
}

/* Loads the first plugin that the driver can run. If it can run none, loads the last plugin
 * that exists. Without a driver, loads the first plugin, which reports the missing driver. The
 * plugins are in `folder`. If `folder` is NULL, they are where find_plugin() searches. */
static int choose(const char *folder, const struct esp_cuda_plugin **plugin, char *err,
                  size_t errlen)
{
    const int driver = driver_version();
    char path[PATH_MAX], why[400] = "";
    int status = ESP_OK;
    for (int i = 0; i < NAMES; i++) {
        if (folder)
            snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        else
            find_plugin(names[i], path, sizeof path);
        const int loaded = load(path, plugin, why, sizeof why);
        if (i == 0 && loaded < 0)
            status = esp_fail(err, errlen, loaded, "%s", why);
        if (loaded == ESP_OK && (driver == 0 || (*plugin)->cuda / 1000 <= driver / 1000))
            break;
    }
    return *plugin ? ESP_OK : status;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static int open_device(struct esp_backend **backend, int device, char *err, size_t errlen)
{
    const char *named = getenv("ESPALIER_CUDA_PLUGIN");
    const struct esp_cuda_plugin *plugin = NULL;
    *backend = NULL;
    const int status = named && *named && !is_folder(named)
                           ? load(named, &plugin, err, errlen)
                           : choose(named && *named ? named : NULL, &plugin, err, errlen);
    return status < 0 ? status : plugin->ops->open_device(backend, device, err, errlen);
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
