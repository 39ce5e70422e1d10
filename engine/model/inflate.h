/* inflate.h - a model made larger without changing what it says. */
#ifndef ESP_INFLATE_H
#define ESP_INFLATE_H

#include "engine/espalier.h"

/* Writes the model in folder `from` to the new folder `to`, `width` times as wide (a power of
 * two) and with `layers` layers (at least as many as it has). Takes F32 and BF16. Nothing is
 * left behind on failure. */
int esp_model_inflate(const char *from, const char *to, int width, int layers, char *err,
                      size_t errlen);

struct esp_model;

/* Makes an open model larger in the same way, without a file: its tensors are made so when they
 * are read. layers = 0: as many as it has. After a failure the model can only be closed. */
int esp_model_enlarge(struct esp_model *model, int width, int layers, char *err, size_t errlen);

#endif
