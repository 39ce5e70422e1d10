/* inflate.h - a model made larger without changing what it says. */
#ifndef ESP_INFLATE_H
#define ESP_INFLATE_H

#include "engine/espalier.h"

/* Writes the model in folder `from` to the new folder `to`, `width` times as wide (a power of
 * two) and with `layers` layers (at least as many as it has). Takes F32 and BF16. Nothing is
 * left behind on failure. */
int esp_model_inflate(const char *from, const char *to, int width, int layers, char *err,
                      size_t errlen);

#endif
