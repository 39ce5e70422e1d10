/* architecture.h - what one table must say so that models of an architecture can be opened.
 *
 * An architecture is one file arch_NAME.c that fills a struct esp_architecture, and one line
 * X(NAME) in architectures.def, where NAME is the model_type of config.json. The table has
 * three parts: which config keys give which field of struct esp_config, which tensors the model
 * has as a whole, and which each layer has. Reading, range checks, shapes, errors and the
 * rotary embedding are shared.
 */
#ifndef ESP_ARCHITECTURE_H
#define ESP_ARCHITECTURE_H

#include "json.h"
#include "model.h"

/* ------------------------------------------------------------------ config.json */

/* type, field, smallest and largest value allowed in a file */
#define ESP_CONFIG_FIELDS(X)                                                                   \
    X(int, layers, 1, 1000)                                                                    \
    X(int, hidden, 1, 65536)                                                                   \
    X(int, heads, 1, 4096)                                                                     \
    X(int, kv_heads, 1, 4096)                                                                  \
    X(int, head_dim, 2, 4096)                                                                  \
    X(int, ffn, 1, 1 << 20)                                                                    \
    X(int, vocabulary, 1, 2 << 20)                                                             \
    X(int, context, 1, 16 << 20)                                                               \
    X(int, window, 1, 16 << 20) /* positions that attention reaches back, itself included */   \
    X(double, norm_epsilon, 0, 1)                                                              \
    X(double, rope_theta, 1, 1e15)                                                             \
    X(double, rotary_fraction, 0, 1) /* of head_dim that is rotated */                         \
    X(bool, parallel_residual, 0, 1)                                                           \
    X(bool, windowed, 0, 1)                                                                    \
    X(bool, attention_bias, 0, 1) /* of query, key and value */                                \
    X(bool, output_bias, 0, 1)    /* of the attention's output */                              \
    X(bool, mlp_bias, 0, 1)                                                                    \
    X(bool, head_norm, 0, 1) /* of each head of query and key */                               \
    X(bool, tied, 0, 1)      /* the head may be the embedding */

struct esp_config {
#define X(type, name, smallest, largest) type name;
    ESP_CONFIG_FIELDS(X)
#undef X
};

enum esp_config_field {
#define X(type, name, smallest, largest) ESP_CONFIG_##name,
    ESP_CONFIG_FIELDS(X)
#undef X
};

#define ESP_REQUIRED (-1.0) /* as a fallback: the key must be there */

/* A field without a rule is 0; kv_heads = 0 then becomes heads, head_dim = 0 hidden / heads.
 * Attention in a window is that to everything as long as the context is no longer than the
 * window, so with `windowed` that is the limit of the context. */
struct esp_config_rule {
    enum esp_config_field field;
    const char *keys; /* "a|b.c": the first in the file counts; "": none; NULL: end of table */
    double fallback;  /* if none is there */
};

/* ------------------------------------------------------------------ tensors */

enum esp_size { ESP_ONE, ESP_HIDDEN, ESP_HEAD, ESP_QUERIES, ESP_KEYS, ESP_FFN, ESP_VOCABULARY };
enum esp_presence {
    ESP_ALWAYS,
    ESP_IF_ATTENTION_BIAS,
    ESP_IF_OUTPUT_BIAS,
    ESP_IF_MLP_BIAS,
    ESP_IF_HEAD_NORM,
    ESP_UNLESS_TIED
};

/* One slot of struct esp_layer or struct esp_model_desc and the tensor that fills it. */
struct esp_tensor_rule {
    size_t slot;            /* offset of the struct esp_tensor */
    const char *name;       /* NULL ends the table */
    enum esp_size rows;     /* HEAD is head_dim, QUERIES heads and KEYS kv_heads times that */
    enum esp_size columns;  /* ESP_ONE: a vector */
    enum esp_presence when; /* it is in the file */
    int part, parts; /* if parts > 0: of each head, part `part` of `parts` is this slot */
};

#define ESP_MODEL(field, name, rows, columns, when)                                            \
    {                                                                                          \
        offsetof(struct esp_model_desc, field), name, ESP_##rows, ESP_##columns, ESP_##when,   \
            0, 0                                                                               \
    }
#define ESP_LAYER_PART(field, name, rows, columns, when, part, parts)                          \
    {                                                                                          \
        offsetof(struct esp_layer, field), name, ESP_##rows, ESP_##columns, ESP_##when, part,  \
            parts                                                                              \
    }
#define ESP_LAYER(field, name, rows, columns, when)                                            \
    ESP_LAYER_PART(field, name, rows, columns, when, 0, 0)

struct esp_architecture {
    const char *name;       /* model_type in config.json */
    const char *prefix;     /* of names, in a file that holds more than the bare model */
    const char *layer_name; /* what precedes the layer's number */
    const char *hidden_act; /* the only one it is computed with, and what it means */
    enum esp_activation activation;
    enum esp_norm norm;
    const struct esp_config_rule *config;
    const struct esp_tensor_rule *tensors;       /* of struct esp_model_desc */
    const struct esp_tensor_rule *layer_tensors; /* of struct esp_layer; names follow "N." */
};

#define X(name) extern const struct esp_architecture esp_architecture_##name;
#include "architectures.def"
#undef X

/* The tensors of Llama, which others have too. */
extern const struct esp_tensor_rule esp_llama_tensors[], esp_llama_layer_tensors[];

/* ------------------------------------------------------------------ config.c */

/* Reads and checks what the rules ask for; derives kv_heads and head_dim. */
int esp_config_read(struct esp_config *config, const struct esp_architecture *architecture,
                    const struct esp_json *json, char *err, size_t errlen);

/* Radians per position of each of the `rotary` / 2 pairs, rope scaling included; malloc'd. */
int esp_config_rotary(float **inverse_frequency, int *rotary, const struct esp_config *config,
                      const struct esp_json *json, char *err, size_t errlen);

#endif
