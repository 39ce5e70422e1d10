/* model_desc.h - checks a model description and reads its tensors, for every backend. */
#ifndef ESP_MODEL_DESC_H
#define ESP_MODEL_DESC_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that the dimensions fit together, and that every tensor exists and has the right
 * shape. Otherwise returns ESP_E_FORMAT with one sentence in err. */
int esp_model_desc_check(const struct esp_model_desc *desc, char *err, size_t errlen);

/* X(name, text): features that only some parts of the program support. Attention windows of
 * single layers are not in this list. */
#define ESP_SPECIALS(X)                                                                        \
    X(RECURRENT, "recurrent layers")                                                           \
    X(MTP, "an MTP layer")                                                                     \
    X(POSITIONS, "learned positions")                                                          \
    X(GELU, "GELU by tanh")                                                                    \
    X(CLAMPED, "SwiGLU with limits")                                                           \
    X(CAPPED, "capped scores")                                                                 \
    X(SCALED, "scaled embeddings, scores or logits")                                           \
    X(SCALED_ROTATION, "a scaled rotation")                                                    \
    X(OUTPUT_NORMS, "norms after attention and MLP")                                           \
    X(ROTATIONS, "a rotation that differs from layer to layer")                                \
    X(WIDE_NORMS, "norms of all heads together")                                               \
    X(MIXTURE, "a mixture of experts")                                                         \
    X(SINKS, "logits of sinks")                                                                \
    X(TRANSPOSED, "transposed weights")

enum esp_special_number {
#define X(name, text) ESP_SPECIAL_NUMBER_##name,
    ESP_SPECIALS(X)
#undef X
};
enum esp_special {
#define X(name, text) ESP_SPECIAL_##name = 1 << ESP_SPECIAL_NUMBER_##name,
    ESP_SPECIALS(X)
#undef X
};

/* Returns the features that the model has: a sum of ESP_SPECIAL_*. */
unsigned esp_model_desc_specials(const struct esp_model_desc *desc);
/* Returns the name of the first of these features, or NULL if `specials` is 0. */
const char *esp_special_name(unsigned specials);

/* These functions return whether the model has recurrent layers, how many of its layers have
 * attention, and how many are recurrent. */
bool esp_model_desc_recurrent(const struct esp_model_desc *desc);
int esp_model_desc_attentions(const struct esp_model_desc *desc);
int esp_model_desc_recurrents(const struct esp_model_desc *desc);
/* Returns whether the layer has an MLP or a mixture of experts. */
bool esp_layer_has_mlp(const struct esp_layer *layer);
/* These functions return how many values per token a recurrent layer convolves, and how many it
 * outputs. */
int esp_conv_width(const struct esp_model_desc *desc, enum esp_mixer mixer);
int esp_mixed_width(const struct esp_model_desc *desc, enum esp_mixer mixer);
/* These functions return the largest esp_conv_width() and the largest esp_mixed_width() among
 * the model's layers, or 0 if no layer is recurrent. */
int esp_model_desc_conv_width(const struct esp_model_desc *desc);
int esp_model_desc_mixed_width(const struct esp_model_desc *desc);
/* Returns a matrix that every layer with the same mixer has. */
const struct esp_tensor *esp_layer_matrix(const struct esp_layer *layer);

/* Returns a tensor that consists of rows first..first+count-1 of this tensor. */
struct esp_tensor esp_tensor_slice(const struct esp_tensor *tensor, int first, int count);

/* Returns whether two tensors are stored in the same place and form. */
bool esp_tensor_same(const struct esp_tensor *a, const struct esp_tensor *b);

/* Returns whether the model shares `tensor` with its lender. `tensor` is the model's embedding
 * or its head. */
bool esp_model_desc_lent(const struct esp_model_desc *desc, const struct esp_tensor *tensor);

/* Returns how many bytes the memory limit leaves for weights, or SIZE_MAX if there is no
 * limit. */
size_t esp_memory_limit_left(const struct esp_memory_limit *limit);

/* Returns whether this layer is streamed if `count` of `layers` layers are streamed at even
 * distances. */
bool esp_layer_is_streamed(int layer, int layers, int count);

/* Some draft heads join two inputs of a product into one vector. Returns the width of this
 * vector, or 0 if the model joins no inputs. */
int esp_model_desc_joined(const struct esp_model_desc *desc);

/* Returns whether the attention of this layer reads a token's embedding and the residual
 * stream side by side (ESP_READS_EAGLE3). */
static inline bool esp_layer_reads_both(const struct esp_model_desc *desc, int layer)
{
    return desc->reads == ESP_READS_EAGLE3 && layer == 0;
}

/* Returns the width of a row of logits. Tokens that the head does not know get -1e30. */
int esp_model_desc_tokens(const struct esp_model_desc *desc);

/* Returns the number of columns of the widest matrix. */
int esp_model_desc_widest(const struct esp_model_desc *desc);

/* Returns whether some layer changes the output of attention or MLP before adding it to the
 * residual stream. */
bool esp_model_desc_has_branch(const struct esp_model_desc *desc);

/* Reads bytes offset..offset+size-1; see struct esp_tensor_file. */
void esp_tensor_file_read(struct esp_tensor_file *file, size_t offset, void *to, size_t size);

/* Copies rows row..row+count-1 as stored: (count, columns) of the tensor's dtype. A read
 * failure sets tensor->source->failed. */
void esp_tensor_copy_rows(const struct esp_tensor *tensor, int row, int count, void *to);

/* These functions read rows as floats: (count, columns), or one row (columns). */
void esp_tensor_read_rows(const struct esp_tensor *tensor, int row, int count, float *out);
void esp_tensor_read_row(const struct esp_tensor *tensor, int row, float *out);

#ifdef __cplusplus
}
#endif
#endif
