/* vocabulary.h - the tokens of a tokenizer.json: ids, bytes, flags, and lookup by bytes.
 *
 * A byte-level vocabulary writes every byte as one printable character (GPT-2's alphabet:
 * '!'..'~' and most of Latin-1 stand for themselves, the other 68 bytes are U+0100..U+0143; a
 * space is U+0120). A token with only such characters is called "spelled" and stands for the
 * bytes that it spells. Any other token is plain: it stands for its own UTF-8 bytes and can
 * only be found as an added token. Spelled and plain tokens may have the same bytes, so every
 * lookup says which kind it is for.
 *
 * A vocabulary with byte fallback (SentencePiece) writes a space as U+2581 and every other
 * character as itself. Tokens written in this way are its spelled tokens. It also has a token
 * for each byte, such as "<0x0A>". These tokens encode the characters that are not tokens.
 */
#ifndef ESP_VOCABULARY_H
#define ESP_VOCABULARY_H

#include <cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/support/hash.h"

enum {
    ESP_TOKEN_SPELLED = 1,
    ESP_TOKEN_ADDED = 2,
    ESP_TOKEN_SPECIAL = 4,
    ESP_TOKEN_NORMALIZED = 8,   /* an added token that is found after normalization */
    ESP_TOKEN_SINGLE_WORD = 16, /* an added token that must not touch a word character */
    ESP_TOKEN_LSTRIP = 32,      /* an added token that includes the white space before it */
    ESP_TOKEN_RSTRIP = 64,      /* an added token that includes the white space after it */
};

struct esp_token {
    const char *bytes; /* NULL means no token has this id */
    int32_t length;
    uint32_t flags;
};

struct esp_vocabulary {
    struct esp_token *tokens; /* (size) indexed by id */
    int size;                 /* highest id + 1 */
    bool byte_fallback;
    int32_t byte[256]; /* the token of each single byte; -1 means the byte has no token */
    int32_t *slots;    /* (slot_mask + 1) hash table of ids; -1 means free */
    size_t slot_mask;
    struct esp_hash_key key; /* key of that hash table */
    char *text, *text_end;   /* all bytes of all tokens */
};

#define ESP_SPACE_MARK "\xE2\x96\x81" /* U+2581 */

/* Reads `model.vocab` and `added_tokens` (may be NULL). Every printable ASCII character must
 * have a token. With byte fallback, every byte must have one. Free the vocabulary even if
 * reading fails. */
int esp_vocabulary_read(struct esp_vocabulary *vocabulary, const cJSON *vocab,
                        const cJSON *added, bool byte_fallback, char *err, size_t errlen);
void esp_vocabulary_free(struct esp_vocabulary *vocabulary);

/* Returns the spelled token with these bytes or, if `spelled` is false, the plain one. Returns
 * -1 if there is none. */
int32_t esp_vocabulary_find(const struct esp_vocabulary *vocabulary, bool spelled,
                            const char *bytes, size_t length);
/* Returns the token that the file writes as `text` (valid UTF-8), or -1 if there is none.
 * Overwrites `text`. */
int32_t esp_vocabulary_find_text(const struct esp_vocabulary *vocabulary, char *text,
                                 size_t length);

#endif
