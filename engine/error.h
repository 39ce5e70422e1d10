/* error.h - how functions inside the library report failures. */
#ifndef ESP_ERROR_H
#define ESP_ERROR_H

#include "espalier.h"

/* Writes one sentence to err (if errlen > 0) and returns `status`:
 *     return esp_fail(err, errlen, ESP_E_FILE, "cannot open %s: %s", path, strerror(errno));
 * Text from a file that ends up in the sentence is made safe for a terminal here: control
 * characters and invalid UTF-8 become '?'. */
int esp_fail(char *err, size_t errlen, int status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
