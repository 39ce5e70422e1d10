/* backends.h - opens a backend by name. */
#ifndef ESP_BACKENDS_H
#define ESP_BACKENDS_H

#include "kernels/kernels.h"

/* All backends, NULL-terminated. "auto" tries them from the last to the first. */
extern const struct esp_backend_ops *const esp_backends[];

/* Opens the backend `name`. "auto" or NULL opens the last one in the list that can be opened.
 * If there is a device that could not be used, err then says why; otherwise err is "". threads:
 * see esp_backend_ops.open. device: number of the backend's device, counted from 0. */
int esp_backend_open(struct esp_backend **backend, const char *name, int threads, int device,
                     char *err, size_t errlen);

#endif
