/* tokenizer.h - converts text to tokens and back, as a Hugging Face tokenizer.json or a GGUF
 * file describes it.
 *
 * Two kinds of BPE are supported:
 * - Byte-level, as in GPT-2, GPT-NeoX, Llama 3, Qwen and the built-in pair. Added tokens are
 *   found first. The text between them is normalised (to NFC, or not at all) and split into
 *   words by GPT-2's pattern or the file's `Split` patterns. The bytes of each word are mapped
 *   to the byte alphabet and merged.
 * - With byte fallback, as in the SentencePiece tokenizers of Llama 2, TinyLlama and Mistral.
 *   A space becomes U+2581, characters are merged, and characters that are not tokens become
 *   their bytes.
 *
 * Any bytes can be encoded. Decoding returns the same bytes (after NFC, if the file requires
 * it). tokenizer.c lists the exceptions: settings of the file that lose information.
 */
#ifndef ESP_TOKENIZER_H
#define ESP_TOKENIZER_H

#include "engine/model/spans.h"

struct esp_tokenizer;

/* Reads `folder`/tokenizer.json, or the GGUF file `folder`. The file is untrusted; if it has
 * anything unexpected, this fails with one sentence in err. */
int esp_tokenizer_open(struct esp_tokenizer **tokenizer, const char *folder, char *err,
                       size_t errlen);
void esp_tokenizer_close(struct esp_tokenizer *tokenizer);

/* Returns the highest token id + 1. */
int esp_tokenizer_size(const struct esp_tokenizer *tokenizer);

/* Encodes `length` bytes and writes at most `capacity` tokens. Returns the number of tokens in
 * the text, or a negative status: ESP_E_ARGUMENT for a text of more than 256 MiB,
 * ESP_E_UNSUPPORTED if a pattern of the file takes too long on this text, or ESP_E_MEMORY.
 * Bytes that are not UTF-8 are encoded byte by byte. No tokens are added around the text (no
 * begin-of-text token). Thread-safe. */
int esp_tokenizer_encode(const struct esp_tokenizer *tokenizer, const char *text, size_t length,
                         int32_t *tokens, int capacity);
/* Like esp_tokenizer_encode(), but does not find special tokens in `literals`, the parts of the
 * text that users wrote (see spans.h). */
int esp_tokenizer_encode_literal(const struct esp_tokenizer *tokenizer, const char *text,
                                 size_t length, const struct esp_literals *literals,
                                 int32_t *tokens, int capacity);

/* Encodes bytes as if they were inside a text: without added tokens, normalisation, a space
 * before them, or division into words. Otherwise works like esp_tokenizer_encode(). */
int esp_tokenizer_spell(const struct esp_tokenizer *tokenizer, const char *bytes, size_t length,
                        int32_t *tokens, int capacity);

/* An encoder keeps the memory for encoding from one call to the next. After an encoder has
 * encoded a text, it allocates nothing for texts of at most that length. It works with any
 * tokenizer, but only one thread may use it at a time. esp_encoder_encode() and
 * esp_encoder_spell() do the same as esp_tokenizer_encode() and esp_tokenizer_spell().
 * esp_encoder_open() returns NULL if there is no memory. */
struct esp_encoder;
struct esp_encoder *esp_encoder_open(void);
void esp_encoder_close(struct esp_encoder *encoder);
int esp_encoder_encode(struct esp_encoder *encoder, const struct esp_tokenizer *tokenizer,
                       const char *text, size_t length, int32_t *tokens, int capacity);
int esp_encoder_spell(struct esp_encoder *encoder, const struct esp_tokenizer *tokenizer,
                      const char *bytes, size_t length, int32_t *tokens, int capacity);

/* Returns the bytes of a token (not NUL-terminated, owned by the tokenizer), or NULL if
 * there is no such token. An added token, special or not, has the bytes of its content. */
const char *esp_tokenizer_bytes(const struct esp_tokenizer *tokenizer, int32_t token,
                                size_t *length);
/* Returns the id of an added token or vocabulary entry with exactly these bytes, or -1. */
int32_t esp_tokenizer_find(const struct esp_tokenizer *tokenizer, const char *bytes,
                           size_t length);
/* Returns the token that stands for exactly these bytes in a text, or -1. If there are several,
 * prefers an entry of the vocabulary, then an added token, then the token of a single byte.
 * Never returns a special token. */
int32_t esp_tokenizer_find_plain(const struct esp_tokenizer *tokenizer, const char *bytes,
                                 size_t length);
bool esp_tokenizer_is_special(const struct esp_tokenizer *tokenizer, int32_t token);
/* Returns the special token that begins every text (Llama 3: <|begin_of_text|>), or -1. */
int32_t esp_tokenizer_prefix(const struct esp_tokenizer *tokenizer);
/* Returns a hash (FNV-1a, 64 bit) of all (id, bytes) pairs. Two tokenizers with equal hashes
 * have the same tokens, so the model of one can draft for the model of the other. */
uint64_t esp_tokenizer_hash(const struct esp_tokenizer *tokenizer);

#endif
