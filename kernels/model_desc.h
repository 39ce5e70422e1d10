/* model_desc.h - checking a described model and reading its tensors, for every backend. */
#ifndef ESP_MODEL_DESC_H
#define ESP_MODEL_DESC_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Do the dimensions fit together and is every tensor there in its shape? One sentence to err
 * and ESP_E_FORMAT if not. */
int esp_model_desc_check(const struct esp_model_desc *desc, char *err, size_t errlen);

size_t esp_dtype_size(enum esp_dtype dtype); /* bytes */

/* Where row `row` begins in the file. */
const char *esp_tensor_row(const struct esp_tensor *tensor, int row);

/* The same as floats: (columns). */
void esp_tensor_read_row(const struct esp_tensor *tensor, int row, float *out);

#ifdef __cplusplus
}
#endif
#endif
