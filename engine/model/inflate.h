/* inflate.h - makes a model larger without changing its output. */
#ifndef ESP_INFLATE_H
#define ESP_INFLATE_H

#include "engine/espalier.h"

/* Writes the model in folder `from` to the new folder `to`, `width` times as wide (a power of
 * two) and with `layers` layers (at least the original number). Its weights must be F32 or
 * BF16. On failure it leaves nothing behind. */
int esp_model_inflate(const char *from, const char *to, int width, int layers, char *err,
                      size_t errlen);

struct esp_model;

/* Makes an open model larger in the same way, without a file: its tensors are enlarged when
 * they are read. layers = 0: the original number. After a failure the model can only be
 * closed. */
int esp_model_enlarge(struct esp_model *model, int width, int layers, char *err, size_t errlen);

#endif
