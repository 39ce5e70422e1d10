/* backends.h - choosing a backend by name. */
#ifndef ESP_BACKENDS_H
#define ESP_BACKENDS_H

#include "kernels.h"

/* In the order in which "auto" tries them last to first. NULL-terminated. */
extern const struct esp_backend_ops *const esp_backends[];

/* name: "auto" or NULL (the last of the list that opens; err then says what was there but
 * failed, or ""), or one backend's name. */
int esp_backend_open(struct esp_backend **backend, const char *name, int threads, char *err,
                     size_t errlen);

#endif
