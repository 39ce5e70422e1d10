/* backends.c - the list of backends and the choice among them; see backends.h. */
#include "backends.h"

#include <string.h>

#include "error.h"

const struct esp_backend_ops *const esp_backends[] = {&esp_backend_cpu, &esp_backend_cuda,
                                                      NULL};

/* What is not there is no news; what is there and fails is told. */
static int open_best(struct esp_backend **backend, int threads, char *notice, size_t size)
{
    int count = 0, status = ESP_E_UNSUPPORTED;
    if (size > 0)
        *notice = '\0';
    while (esp_backends[count])
        count++;
    for (int i = count - 1; i >= 0; i--) {
        char err[300] = "";
        status = esp_backends[i]->open(backend, threads, err, sizeof err);
        if (status == ESP_OK)
            break;
        if (status != ESP_E_UNSUPPORTED)
            esp_fail(notice, size, status, "%s", err);
    }
    return status;
}

int esp_backend_open(struct esp_backend **backend, const char *name, int threads, char *err,
                     size_t errlen)
{
    if (!name || strcmp(name, "auto") == 0)
        return open_best(backend, threads, err, errlen);
    for (int i = 0; esp_backends[i]; i++)
        if (strcmp(esp_backends[i]->name, name) == 0)
            return esp_backends[i]->open(backend, threads, err, errlen);
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "there is no backend '%s' in this build; see espalier list backends", name);
}
