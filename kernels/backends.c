/* backends.c - the list of backends and the choice among them; see backends.h. */
#include "kernels/backends.h"

#include <string.h>

#include "kernels/status.h"

const struct esp_backend_ops *const esp_backends[] = {&esp_backend_cpu, &esp_backend_cuda,
                                                      NULL};

static int open_one(const struct esp_backend_ops *ops, struct esp_backend **backend,
                    int threads, int device, char *err, size_t errlen)
{
    *backend = NULL;
    if (device == 0)
        return ops->open(backend, threads, err, errlen);
    if (!ops->open_device)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "--device %d names a GPU, but --backend %s does not run on one; leave out "
            "one of the two options",
            device, ops->name);
    return ops->open_device(backend, device, err, errlen);
}

/* Opens the last backend in the list that works. If there is a device that cannot be used,
 * `notice` says why. A missing device is not mentioned, unless the user gave its number: then
 * it is an error (ESP_E_ARGUMENT). */
static int open_best(struct esp_backend **backend, int threads, int device, char *notice,
                     size_t size)
{
    int count = 0, status = ESP_E_UNSUPPORTED;
    if (size > 0)
        *notice = '\0';
    while (esp_backends[count])
        count++;
    for (int i = count - 1; i >= 0; i--) {
        char err[300] = "";
        const int which = esp_backends[i]->open_device ? device : 0;
        status = open_one(esp_backends[i], backend, threads, which, err, sizeof err);
        if (status == ESP_OK)
            break;
        if (status != ESP_E_UNSUPPORTED || which > 0)
            esp_fail(notice, size, status, "%s", err);
        if (status == ESP_E_ARGUMENT && which > 0)
            break;
    }
    return status;
}

int esp_backend_open(struct esp_backend **backend, const char *name, int threads, int device,
                     char *err, size_t errlen)
{
    if (!name || strcmp(name, "auto") == 0)
        return open_best(backend, threads, device, err, errlen);
    for (int i = 0; esp_backends[i]; i++)
        if (strcmp(esp_backends[i]->name, name) == 0)
            return open_one(esp_backends[i], backend, threads, device, err, errlen);
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "there is no backend '%s' in this build; see espalier list backends", name);
}
