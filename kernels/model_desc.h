/* model_desc.h - checks a model description and reads its tensors, for every backend. */
#ifndef ESP_MODEL_DESC_H
#define ESP_MODEL_DESC_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that the dimensions fit together and that every tensor exists in its shape. If not:
 * ESP_E_FORMAT and one sentence in err. */
int esp_model_desc_check(const struct esp_model_desc *desc, char *err, size_t errlen);

/* A feature of the model that only some backends compute ("norms of what attention adds"), or
 * NULL. Attention windows of single layers are not such a feature. */
const char *esp_model_desc_special(const struct esp_model_desc *desc);
#define ESP_SPECIAL_MIXTURE "a mixture of experts"

/* Are two tensors stored in the same place and form? */
bool esp_tensor_same(const struct esp_tensor *a, const struct esp_tensor *b);

/* Does the model share `tensor`, its embedding or its head, with its lender? */
bool esp_model_desc_lent(const struct esp_model_desc *desc, const struct esp_tensor *tensor);

/* Bytes that the memory limit leaves for the weights; SIZE_MAX without a limit. */
size_t esp_memory_limit_left(const struct esp_memory_limit *limit);

/* Of `layers` layers, `count` are streamed, spread evenly: is this one? */
bool esp_layer_is_streamed(int layer, int layers, int count);

/* Width of the inputs that a draft head joins for a product, or 0. */
int esp_model_desc_joined(const struct esp_model_desc *desc);

/* Columns of the widest matrix. */
int esp_model_desc_widest(const struct esp_model_desc *desc);

/* Does some layer change the output of attention or MLP before it is added? */
bool esp_model_desc_has_branch(const struct esp_model_desc *desc);

/* Reads bytes offset..offset+size-1; see struct esp_tensor_file. */
void esp_tensor_file_read(struct esp_tensor_file *file, size_t offset, void *to, size_t size);

/* Copies rows row..row+count-1 in stored form: (count, columns) of the tensor's dtype. A read
 * failure is noted in tensor->source. */
void esp_tensor_copy_rows(const struct esp_tensor *tensor, int row, int count, void *to);

/* The same, converted to float: (count, columns), or one row of (columns). */
void esp_tensor_read_rows(const struct esp_tensor *tensor, int row, int count, float *out);
void esp_tensor_read_row(const struct esp_tensor *tensor, int row, float *out);

#ifdef __cplusplus
}
#endif
#endif
