/* random_model.h - makes small models with random weights, and computes their correct results
 * with a simple transformer, the reference.
 *
 * The reference computes one token after another, in double precision, directly from the
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
    /* if this is a quantised type, successive matrices have different quantised types */
    enum esp_dtype dtype;
    bool neox;     /* true: LayerNorm, GELU, fused q/k/v; false: RMSNorm, SwiGLU */
    bool parallel; /* attention and MLP read the same input (parallel residual) */
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
/* Makes a draft head like the heads of EAGLE-1. It reads hidden states of `shape->hidden`
 * numbers. */
void random_head_make(struct random_model *model, const struct random_shape *shape,
                      unsigned long long seed);
/* Makes layer `layer` a mixture of RANDOM_EXPERTS experts. A token uses `used` of them. The
 * reference cannot compute such a layer. */
void random_model_mix(struct random_model *model, int layer, int used, int expert_ffn);
/* Adds features of gpt-oss: sink logits and SwiGLU limits to all layers, and biases to all
 * routers. The reference cannot compute such a model. */
void random_model_add_sinks(struct random_model *model);
/* Makes layer `layer` a recurrent layer of kind `mixer`, with 4 state heads for 2 key heads. A
 * state has 12 keys, or desc.key_dim if that is not 0. The reference cannot compute such a
 * layer. */
void random_model_recur(struct random_model *model, int layer, enum esp_mixer mixer);
void random_model_free(struct random_model *model);

/* Computes the logits (n, vocabulary) of n nodes of a forest. parents[i] < i is the parent of
 * node i, or -1 if it has none. A node attends to itself and its ancestors, and its position is
 * its depth. */
void random_model_reference(const struct random_model *model, const int32_t *tokens,
                            const int32_t *parents, int n, double *logits);

/* Does the same as random_model_reference(), but also has inputs and hidden states. `input` (n,
 * desc.input) is what a draft head reads; it is NULL for other models. If `states` is not NULL,
 * writes the hidden states (layers + 2, n, hidden) to it. The last of them are the states after
 * the final norm. */
void random_model_states(const struct random_model *model, const int32_t *tokens,
                         const int32_t *parents, int n, const double *input, double *states,
                         double *logits);

#endif
