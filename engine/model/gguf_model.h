/* gguf_model.h - interprets the keys and tensors of a GGUF file as a model.
 *
 * A GGUF file is read like a model folder: its keys become the config.json that the tables of
 * the architectures expect, and its tensors get the names that they have in a folder. Therefore
 * the same code checks both.
 */
#ifndef ESP_GGUF_MODEL_H
#define ESP_GGUF_MODEL_H

#include "engine/model/architecture.h"
#include "engine/model/gguf.h"

enum { ESP_GGUF_PARTS = 1000 };  /* maximum number of parts of a split file */
enum { ESP_GGUF_LAYERS = 1000 }; /* maximum number of values of a key that has one per layer */

/* These keys may have one value per layer. */
#define ESP_GGUF_KV_HEADS "attention.head_count_kv"
#define ESP_GGUF_FFN "feed_forward_length"
#define ESP_GGUF_RECURRENT "attention.recurrent_layers"
/* In a model with state space layers, this key says whether attention uses RoPE. */
#define ESP_GGUF_ROTATED "rope.scaling.finetuned"

/* Describes what GGUF files call an architecture, and in which order they store the rows of its
 * matrices. */
struct esp_gguf_architecture {
    const char *name, *model_type;
    bool paired; /* true: rows of query and key are stored in pairs (struct esp_tensor) */
    bool tiled;  /* true: state heads are tiled (heads_tiled of struct esp_model_desc) */
};

/* The first function finds an architecture by its name in GGUF files. The second function finds
 * it by its model_type. Both return NULL if there is no such architecture. */
const struct esp_gguf_architecture *esp_gguf_architecture_named(const char *name);
const struct esp_gguf_architecture *esp_gguf_architecture_of(const char *model_type);
/* Returns the architecture whose name is written to a GGUF file of this model. Nemotron-H with
 * experts has a name different from Nemotron-H without experts. */
const struct esp_gguf_architecture *esp_gguf_architecture_for(const struct esp_model *model);

/* Returns whether GGUF files store the rows of this tensor in pairs. `architecture` may be
 * NULL; `layer` is -1 outside the layers. */
bool esp_gguf_is_paired(const struct esp_gguf_architecture *architecture,
                        const struct esp_tensor_rule *rule, int layer);

/* Writes the name that the tensor of a rule has in GGUF files. `layer` is -1 outside the
 * layers. `experts` is true if the tensor has the matrices, or biases, of all experts of a
 * layer. Returns false if GGUF has no name for this tensor. */
bool esp_gguf_tensor_name(char *name, size_t size, const struct esp_family *family,
                          const struct esp_tensor_rule *rule, int layer, bool experts);

/* These are special values of `neutral` in struct esp_gguf_key. */
enum { ESP_GGUF_ALWAYS = -1, ESP_GGUF_IF_KNOWN = -2 };
/* Says which key of config.json and which field of struct esp_config belong to a GGUF key. */
struct esp_gguf_key {
    const char *gguf;            /* name of the GGUF key, without "ARCHITECTURE." */
    const char *config;          /* key of config.json; NULL: the GGUF key is never read */
    bool required;               /* true: a file without the key is refused */
    enum esp_gguf_kind kind;     /* type of the written value */
    enum esp_config_field field; /* FIELD_COUNT: the key is not written from a field */
    double neutral; /* a field with this value is not written. ESP_GGUF_ALWAYS: every value is
                       written. ESP_GGUF_IF_KNOWN: every value is written if the architecture
                       has the field */
};
extern const struct esp_gguf_key esp_gguf_keys[];
extern const int esp_gguf_key_count;

/* Makes the config.json of the file. The caller deletes *config. */
int esp_gguf_config(cJSON **config, const struct esp_gguf *gguf, char *err, size_t errlen);

/* Adds the tensors of the file to `set`. If the file is the first part of a split file, adds
 * the tensors of all parts. The set owns the files. */
int esp_gguf_tensors(struct esp_stored_set *set, const struct esp_gguf *gguf,
                     const struct esp_architecture *architecture, char *err, size_t errlen);

/* If the file has factors of the rotary frequencies (Llama 3), divides the frequencies by them.
 * Checks the number of rotated dimensions that the file gives. */
int esp_gguf_rotary(float *inverse_frequency, int rotary, const struct esp_gguf *gguf,
                    struct esp_stored_set *set, char *err, size_t errlen);

#endif
