/* gguf_tokenizer.h - converts the tokenizer of a GGUF file to the tokenizer.json of a model
 * folder.
 *
 * Two kinds are supported. `gpt2` is byte-level BPE with merges. The file only names the rule
 * that splits text into words (tokenizer.ggml.pre), so the known rules are listed here.
 * `llama` is the BPE of SentencePiece with byte fallback, which has scores instead of merges
 * (bpe.h).
 */
#ifndef ESP_GGUF_TOKENIZER_H
#define ESP_GGUF_TOKENIZER_H

#include <cJSON.h>

#include "engine/model/gguf.h"

/* Lists the values of tokenizer.ggml.token_type. */
enum {
    ESP_GGUF_NORMAL = 1,
    ESP_GGUF_UNKNOWN = 2,
    ESP_GGUF_CONTROL = 3,
    ESP_GGUF_USER_DEFINED = 4,
    ESP_GGUF_UNUSED = 5,
    ESP_GGUF_BYTE = 6,
};

/* Describes a split: the rule by which a tokenizer splits text into words. */
struct esp_gguf_split {
    const char *names[8];    /* names of the split in tokenizer.ggml.pre; ends with NULL */
    const char *patterns[8]; /* each splits the pieces that the previous one made; ends with
                                NULL. An empty pattern means GPT-2's pattern, which ByteLevel
                                includes. */
    bool compose;            /* true: text is first normalised to NFC */
    bool ignore_merges;      /* true: a word that is itself a token is not split */
    bool begins;             /* true: a text begins with the begin-of-text token */
};

/* Returns the split with this name, or NULL. */
const struct esp_gguf_split *esp_gguf_split_named(const char *name);
/* Finds the split that a tokenizer.json uses, by the members pre_tokenizer, normalizer and
 * model.ignore_merges. Returns the name of the split, or NULL if the split is not known. */
const char *esp_gguf_split_name(const cJSON *tokenizer);

/* Makes the tokenizer.json of the file at `path`. The caller deletes *json. */
int esp_gguf_tokenizer(cJSON **json, const char *path, char *err, size_t errlen);

#endif
