/* translation.h - lets a draft model with another vocabulary draft for a target.
 *
 * The method is token-level intersection (Timor et al., "Accelerating LLM Inference with
 * Lossless Speculative Decoding Algorithms for Heterogeneous Vocabularies", arXiv 2502.05202,
 * 2025, algorithm 4). Two tokens with the same bytes are one *shared* token. The draft's
 * distribution is restricted to shared tokens and renormalised: its softmax runs over shared
 * tokens only. The result is a distribution over the target's tokens, which is 0 for tokens
 * that are not shared. Therefore every drafter and verifier works as if both models had the
 * same vocabulary, and the output distribution stays the target's.
 *
 * The text is translated in the other direction. The draft reads each token of the target as
 * its own token with the same bytes. If it has no such token, it reads the tokens that its BPE
 * makes of these bytes.
 *
 *  - Bytes are compared, not the spelling in the file. Therefore U+0120 of a byte-level
 *    vocabulary and U+2581 of SentencePiece are both a space. A token that is only a part of a
 *    character is shared only with a token of exactly the same bytes.
 *  - Tokens that end a text are shared whatever their names are. Other special tokens are
 *    shared if they have the same name. Each of the two models has its own token before every
 *    text (BOS), which is never drafted.
 *  - Some tokenizers add a space before a text. Here only the target's tokenizer does so. The
 *    draft reads exactly the bytes of the target's tokens.
 *
 * If too few tokens are shared, drafters/respell.c is used instead. The draft then generates
 * text, and the target's tokenizer encodes this text.
 */
#ifndef ESP_TRANSLATION_H
#define ESP_TRANSLATION_H

#include "engine/model/tokenizer.h"

/* Maximum number of draft tokens that replace one token of the target; if there are more, only
 * the last ones are used. */
enum { ESP_SPELLED_MOST = 16 };

struct esp_translation {
    int tokens;       /* number of the target's tokens, padding included */
    int32_t *begin;   /* (tokens + 1) For token t of the target, the draft reads the tokens
                         spelled[begin[t]] to spelled[begin[t + 1] - 1], at least one. */
    int32_t *spelled; /* (begin[tokens]) tokens of the draft */
    int32_t lead;     /* token that the draft reads before every text, if the target has none;
                       * else -1 */
    int shared;
    int32_t *output_token; /* (shared) the shared tokens, as ids of the target, ascending */
    int32_t *output_row;   /* (shared) the draft's token for each output_token, all different */
    double text_share;     /* fraction of a sample text's tokens that are shared */
};

/* Describes the tokens of one of the two models. */
struct esp_language {
    const struct esp_tokenizer *tokenizer;
    int vocabulary;     /* the model has tokens 0 to vocabulary - 1 */
    const int32_t *end; /* (end_count) tokens that end a text */
    int end_count;
};

/* Compares two vocabularies. All tokens of the tokenizers must be below `vocabulary`. Free the
 * translation even after a failure. Returns 0 or ESP_E_MEMORY. */
int esp_translation_open(struct esp_translation *translation, const struct esp_language *target,
                         const struct esp_language *draft);
void esp_translation_free(struct esp_translation *translation);

/* Sets *spelled to the tokens that the draft reads for a token of the target; returns their
 * number. */
int esp_translation_spell(const struct esp_translation *translation, int32_t token,
                          const int32_t **spelled);

#endif
