/* bpe.h - byte pair encoding of one word (Sennrich et al. 2016, "Neural Machine Translation of
 * Rare Words with Subword Units", section 3.2). The symbols that are merged are bytes or, with
 * byte fallback, characters. */
#ifndef ESP_BPE_H
#define ESP_BPE_H

#include "engine/support/int_map.h"
#include "engine/model/vocabulary.h"

struct esp_bpe {
    const struct esp_vocabulary *vocabulary;
    struct esp_int_map merges; /* left << 32 | right -> rank << 32 | merged token */
    bool ignore_merges;        /* true: a word that is itself a token is not split */
};

/* Holds the memory that is used while encoding. Each thread needs a separate struct, which it
 * initialises with zeros and uses for all words. */
struct esp_bpe_scratch {
    struct esp_bpe_symbol *symbols; /* (capacity) */
    struct esp_bpe_merge *heap;     /* (2 * capacity) */
    int32_t *tokens;                /* (capacity) the tokens of the word */
    size_t capacity;
};

/* Refuses a `model` that is neither byte-level BPE nor BPE with byte fallback. Sets
 * *byte_fallback to true if it is BPE with byte fallback. */
int esp_bpe_check(const cJSON *model, bool *byte_fallback, char *err, size_t errlen);
/* Reads the merges of a checked `model`. The vocabulary must have been read already, and must
 * outlive *bpe. The model has merges or, if it was converted from a GGUF file with byte
 * fallback, `scores`, one number per token. Free *bpe even if reading fails. */
int esp_bpe_read(struct esp_bpe *bpe, const struct esp_vocabulary *vocabulary,
                 const cJSON *model, char *err, size_t errlen);
void esp_bpe_free(struct esp_bpe *bpe);

/* Encodes a word of `length` >= 1 bytes, valid UTF-8, into scratch->tokens; skips bytes
 * without a token. Returns the number of tokens, or ESP_E_MEMORY. Takes O(length log length)
 * time. */
int esp_bpe_encode(const struct esp_bpe *bpe, struct esp_bpe_scratch *scratch, const char *word,
                   int length);
void esp_bpe_scratch_free(struct esp_bpe_scratch *scratch);

#endif
