/* inflate.h - makes a model larger without changing its output. */
#ifndef ESP_INFLATE_H
#define ESP_INFLATE_H

#include "engine/espalier.h"

/* Writes a larger copy of the model in folder `from` to the new folder `to`. The copy is
 * `width` times as wide (a power of two) and has `layers` layers (at least the original
 * number). The model's weights must be F32 or BF16. A failure leaves no files behind. */
int esp_model_inflate(const char *from, const char *to, int width, int layers, char *err,
                      size_t errlen);

struct esp_model;

/* Makes an open model larger, like esp_model_inflate(), but writes no file: its tensors are
 * enlarged when they are read. If `layers` is 0, the number of layers does not change. After a
 * failure the model can only be closed. */
int esp_model_enlarge(struct esp_model *model, int width, int layers, char *err, size_t errlen);

#endif
