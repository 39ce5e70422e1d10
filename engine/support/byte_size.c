/* byte_size.c - numbers of bytes; see byte_size.h. */
#include "engine/support/byte_size.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

static const char UNITS[] = "KMGT";

int esp_byte_size_parse(size_t *bytes, const char *name, const char *text, char *err,
                        size_t errlen)
{
    static const double limit = (double)(SIZE_MAX / 4);
    char *end;
    const double number = strtod(text, &end);
    const char *unit = *end ? strchr(UNITS, *end >= 'a' ? *end - 32 : *end) : NULL;
    double value = number;
    for (const char *u = UNITS; unit && u <= unit; u++)
        value *= 1024;
    const bool none = strcmp(text, "0") == 0;
    const bool good = *text >= '0' && *text <= '9' && unit && !end[1] && value >= 1 &&
                      value <= limit && !strpbrk(text, "xX");
    if (!none && !good)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s takes a size such as 600M or 1.5G, or 0 for no limit, not '%.40s'",
                        name, text);
    *bytes = none ? 0 : (size_t)value;
    return ESP_OK;
}

void esp_byte_size_text(size_t bytes, char *text, size_t size)
{
    int unit = -1;
    while (bytes > 0 && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, "%zu%.*s", bytes, unit < 0 ? 0 : 1, UNITS + (unit < 0 ? 0 : unit));
}
