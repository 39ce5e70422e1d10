/* backends.c - the list of backends and the choice among them; see backends.h. */
#include "backends.h"

#include <string.h>

#include "error.h"

const struct esp_backend_ops *const esp_backends[] = {&esp_backend_cpu, NULL};

int esp_backend_open(struct esp_backend **backend, const char *name, int threads, char *err,
                     size_t errlen)
{
    if (!name || strcmp(name, "auto") == 0)
        return esp_backend_cpu.open(backend, threads, err, errlen);
    for (int i = 0; esp_backends[i]; i++)
        if (strcmp(esp_backends[i]->name, name) == 0)
            return esp_backends[i]->open(backend, threads, err, errlen);
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "there is no backend '%s' in this build; see espalier list backends", name);
}
