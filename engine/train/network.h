/* network.h - runs a draft head or a draft model forward and backward.
 *
 * The layers are Llama's: RMSNorm, grouped-query attention with RoPE, SwiGLU (family_llama.c).
 * A draft model reads the embedding of a token. A draft head reads the output of layer fc,
 * which has the input [embedding, feature]. The feature is the hidden state of the target, or
 * of the head itself, at the previous row (Li et al., "EAGLE", 2024, section 4.1). The LM head
 * is in loss.h.
 *
 * A batch has rows of several texts and of trees on these texts. It is computed in passes. Pass
 * 0 has the tokens of the texts. Pass d has the tree nodes at depth d, which read outputs of
 * pass d - 1 as features. A network without features runs all rows in one pass. Row i attends
 * to the first seen[i] rows of its text, and to the rows in `extra`: its ancestors in the tree
 * and itself.
 */
#ifndef ESP_TRAIN_NETWORK_H
#define ESP_TRAIN_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/train/operations.h"
#include "engine/train/parameters.h"

enum { ESP_MAX_PASSES = 16 };

struct esp_network_shape {
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
    bool features; /* true: a draft head. It begins with layer fc. It has no norm before its
                      first layer and no final norm. It uses the target's embedding, which is
                      not trained. */
    bool fc_bias, qkv_bias;
    bool tied;                      /* true: a draft model that uses its embedding as LM head */
    float epsilon;                  /* epsilon of the norms */
    const float *inverse_frequency; /* (head_dim / 2) radians per position */
};

struct esp_training_rows {
    int count, passes;
    int pass_end[ESP_MAX_PASSES]; /* for each pass: the row after its last row */
    int extras;                   /* maximum number of entries in `extra` for a row */
    int32_t *token, *position;
    int32_t *parent;      /* row of an earlier pass whose output is the row's feature; or -1 */
    int32_t *first;       /* the first row, in pass 0, of the text to which the row belongs */
    int32_t *seen;        /* the row attends to this many rows of its text, beginning with row
                             `first` */
    int32_t *extra;       /* (count, extras) rows counted from `first`; -1 means no more */
    const float *feature; /* (pass_end[0], hidden) the target's features for pass 0, or NULL */
};

struct esp_network_linear {
    int weight, bias; /* indices of parameters; -1 if there is none */
};

struct esp_network_layer {
    int norm1, norm2; /* indices of parameters; norm1 = -1: no norm before attention */
    struct esp_network_linear query, key, value, output, gate, up, down;
};

struct esp_network_memory; /* the activations and gradients of one batch */

struct esp_network {
    struct esp_network_shape shape;
    struct esp_workers *workers;
    struct esp_parameters parameters;
    int embedding, head, norm_final; /* indices of parameters, or -1 */
    struct esp_network_linear fc;
    struct esp_network_layer *layer;
    const float *frozen_embedding; /* (vocabulary, hidden) for a draft head; the caller owns
                                      it */
    struct esp_network_memory *memory;
};

/* Makes the network with zero weights. shape->inverse_frequency and `frozen_embedding` must
 * outlive the network. Close the network even if this fails. */
int esp_network_open(struct esp_network *network, const struct esp_network_shape *shape,
                     struct esp_workers *workers, const float *frozen_embedding, char *err,
                     size_t errlen);
void esp_network_close(struct esp_network *network);

/* Runs all rows. Returns the outputs (count, hidden), which are valid until the next call.
 * Returns NULL if there is no memory. */
const float *esp_network_forward(struct esp_network *network,
                                 const struct esp_training_rows *rows);

/* esp_network_output_gradient() returns memory for the gradient of the loss with respect to the
 * outputs of the last forward pass: (count, hidden), filled with zeros. Fill it in, then call
 * esp_network_backward(), which adds to the gradients of all parameters. */
float *esp_network_output_gradient(struct esp_network *network,
                                   const struct esp_training_rows *rows);
void esp_network_backward(struct esp_network *network, const struct esp_training_rows *rows);

#endif
