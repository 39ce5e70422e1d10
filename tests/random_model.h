/* random_model.h - small models with random weights, and a simple reference transformer.
 *
 * The reference computes one token after the other, in double precision, directly from the
 * formulas. It shares no code with any backend, not even for reading weights. It does not
 * support quantised weights.
 */
#ifndef ESP_RANDOM_MODEL_H
#define ESP_RANDOM_MODEL_H

#include "kernels/kernels.h"

enum { RANDOM_LAYERS = 4, RANDOM_TENSORS = 200, RANDOM_EXPERTS = 8 };

struct random_shape {
    const char *name;
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, rotary;
    /* if it is a quantised type, matrices use all quantised types in turn */
    enum esp_dtype dtype;
    bool neox;     /* true: LayerNorm, GELU, fused q/k/v; false: RMSNorm, SwiGLU */
    bool parallel; /* residual */
    bool bias, tied;
    bool head_norm; /* the queries and keys of each head are normalised */
};

struct random_model {
    struct random_shape shape;
    struct esp_model_desc desc;
    struct esp_layer layers[RANDOM_LAYERS];
    struct esp_expert experts[RANDOM_EXPERTS];
    float inverse_frequency[128];
    void *memory[RANDOM_TENSORS];
    int count;
    unsigned long long state;
};

void random_model_make(struct random_model *model, const struct random_shape *shape,
                       unsigned long long seed);
/* Makes a draft head in the form of EAGLE-1. The hidden states that it reads have
 * `shape->hidden` numbers. */
void random_head_make(struct random_model *model, const struct random_shape *shape,
                      unsigned long long seed);
/* Makes layer `layer` a mixture of RANDOM_EXPERTS experts, of which a token uses `used`. The
 * reference does not compute it. */
void random_model_mix(struct random_model *model, int layer, int used, int expert_ffn);
/* As in gpt-oss, gives all layers sink logits and SwiGLU limits, and all routers biases. The
 * reference does not compute these. */
void random_model_add_sinks(struct random_model *model);
/* Makes layer `layer` a recurrent layer of this kind, with 4 state heads for 2 key heads. A
 * state has 12 keys, unless desc.key_dim is another number. The reference transformer does not
 * compute it. */
void random_model_recur(struct random_model *model, int layer, enum esp_mixer mixer);
void random_model_free(struct random_model *model);

/* Computes the logits of n nodes of a forest: node i sees itself and its ancestors
 * (parents[i] < i, -1 if none), and its position is its depth. logits: (n, vocabulary). */
void random_model_reference(const struct random_model *model, const int32_t *tokens,
                            const int32_t *parents, int n, double *logits);

/* Does the same as random_model_reference(), with inputs and hidden states. input: (n,
 * desc.input), read by a draft head; NULL for other models. If `states` is not NULL, it
 * receives the hidden states (layers + 2, n, hidden). The last states are those after the
 * final norm. */
void random_model_states(const struct random_model *model, const int32_t *tokens,
                         const int32_t *parents, int n, const double *input, double *states,
                         double *logits);

#endif
