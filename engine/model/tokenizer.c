/* tokenizer.c - see tokenizer.h.
 *
 * Encoding follows the stages of the Hugging Face library, in its order, and gives the same
 * ids:
 *   1. each byte that is not valid UTF-8 becomes the token of that byte, and each valid part
 *      between such bytes passes through the next stages separately;
 *   2. added tokens that must be found before normalisation become tokens;
 *   3. the text between them is normalised (to NFC, by making spaces visible, or not at all);
 *   4. added tokens that must be found after normalisation become tokens;
 *   5. the text between them is split into words by the patterns of the pre-tokenizer;
 *   6. each word is encoded by BPE.
 *
 * The file's post_processor, truncation and padding are not used here: they add or remove
 * tokens around a text. If the post_processor begins a text with a special token,
 * esp_tokenizer_prefix() returns it, and the caller puts it before a new text.
 *
 * As in the Hugging Face library, some settings lose information. add_prefix_space, Prepend and
 * Metaspace add spaces. With Prepend and Metaspace, a U+2581 in the text is decoded as a space.
 * lstrip and rstrip of added tokens and the Split behaviour Removed drop text. Bytes without a
 * token are dropped: Pythia's vocabulary has no tokens for the bytes that UTF-8 never uses, and
 * SmolLM's has none for some control characters.
 *
 * A tokenizer does not change after it is opened, so encoding is thread-safe. Scratch memory is
 * in struct esp_encoder.
 */
#include "engine/model/tokenizer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/added_tokens.h"
#include "engine/model/bpe.h"
#include "engine/model/gguf_tokenizer.h"
#include "kernels/status.h"
#include "engine/model/json.h"
#include "engine/model/normalize.h"
#include "engine/model/pretokenize.h"
#include "engine/support/utf8_stream.h"

enum {
    FILE_LIMIT = 64 << 20,  /* bytes */
    TEXT_LIMIT = 256 << 20, /* bytes; even after NFC, offsets fit into int32_t */
};

struct esp_tokenizer {
    struct esp_vocabulary vocabulary;
    struct esp_bpe bpe;
    struct esp_added_tokens plain, normalized;
    struct esp_pretokenizer pretokenizer;
    struct esp_normalizer normalizer;
    int32_t prefix; /* the token that begins every text, or -1 */
};

/* ------------------------------------------------------------------ opening */

/* Returns whether the text is valid UTF-8 without NUL characters, escaped or not. This must be
 * checked here, because cJSON does not check UTF-8, and its strings end at a NUL. */
static bool is_plain(const char *text, size_t length)
{
    int n;
    for (size_t i = 0; i < length; i += (size_t)n) {
        n = esp_utf8_sequence(text + i, length - i);
        if (n <= 0 || text[i] == '\0')
            return false;
        /* "\u0000" is an escaped NUL, but in "\\u0000" the backslash itself is escaped. */
        if (text[i] == '\\') {
            if (strncmp(text + i + 1, "u0000", 5) == 0)
                return false;
            n += text[i + 1] == '\\';
        }
    }
    return true;
}

/* Reads and parses tokenizer.json, or converts a GGUF file. Sets `path` even on failure. */
static int read_json(cJSON **json, char path[PATH_MAX], const char *folder, char *err,
                     size_t errlen)
{
    char *text;
    size_t size;
    if (esp_gguf_is(folder)) {
        snprintf(path, PATH_MAX, "%s", folder);
        return esp_gguf_tokenizer(json, folder, err, errlen);
    }
    int status =
        esp_file_read(&text, &size, path, folder, "tokenizer.json", FILE_LIMIT, err, errlen);
    if (status == ESP_OK && !is_plain(text, size))
        status =
            esp_fail(err, errlen, ESP_E_FORMAT,
                     "%s is not UTF-8 text without NUL characters, as JSON should be", path);
    if (status == ESP_OK)
        status = esp_json_parse(json, text, size, path, err, errlen);
    free(text);
    return status;
}

/* Returns whether the decoder (or each decoder of a Sequence) only writes the bytes of the
 * tokens. If not, sets *other to the type of the decoder that does something else. */
static bool decodes_bytes(const cJSON *decoder, bool byte_fallback, const char **other)
{
    static const char *const known[] = {"ByteLevel", "ByteFallback", "Fuse",
                                        "Metaspace", "Replace",      "Strip"};
    const char *type = esp_json_text(decoder, "type");
    const cJSON *list = esp_json_item(decoder, "decoders"), *item;
    *other = type ? type : "";
    if (type && strcmp(type, "Sequence") == 0 && cJSON_IsArray(list)) {
        cJSON_ArrayForEach(item, list)
        {
            if (!decodes_bytes(item, byte_fallback, other))
                return false;
        }
        return true;
    }
    size_t first = byte_fallback, end = byte_fallback ? sizeof known / sizeof *known : 1;
    for (size_t i = first; type && i < end; i++)
        if (strcmp(type, known[i]) == 0)
            return true;
    return false;
}

/* Refuses a decoder that does anything other than write the bytes of the tokens. The reason is
 * that this tokenizer always decodes a token to its bytes, even if they are only a part of a
 * character. */
static int check_decoder(const cJSON *decoder, bool byte_fallback, char *err, size_t errlen)
{
    const char *other;
    if (!decoder || cJSON_IsNull(decoder) || decodes_bytes(decoder, byte_fallback, &other))
        return ESP_OK;
    return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                    "decoder \"%.40s\" is not supported: it must be %s", other,
                    byte_fallback ? "Replace, ByteFallback, Fuse, Strip, Metaspace or a "
                                    "Sequence of these"
                                  : "ByteLevel");
}

/* Returns the special token that a post_processor puts before a text, or -1. The post_processor
 * must be a TemplateProcessing, or a Sequence that contains one. */
static int32_t find_prefix(const struct esp_tokenizer *t, const cJSON *processor)
{
    const cJSON *list = esp_json_item(processor, "processors"), *item;
    const cJSON *single = esp_json_item(processor, "single");
    cJSON_ArrayForEach(item, list)
    {
        int32_t token = find_prefix(t, item);
        if (token >= 0)
            return token;
    }
    if (!cJSON_IsArray(single))
        return -1;
    const cJSON *first = esp_json_item(cJSON_GetArrayItem(single, 0), "SpecialToken");
    const char *name = esp_json_text(first, "id");
    return name ? esp_tokenizer_find(t, name, strlen(name)) : -1;
}

static int read_parts(struct esp_tokenizer *t, const cJSON *json, char *err, size_t errlen)
{
    const cJSON *model = esp_json_item(json, "model");
    const cJSON *added = esp_json_item(json, "added_tokens");
    if (!cJSON_IsObject(model))
        return esp_fail(err, errlen, ESP_E_FORMAT, "\"model\" is missing or not an object");
    /* The oldest files of this format have no model.type. Such a model is BPE if it has
     * merges. */
    const cJSON *type = esp_json_item(model, "type");
    if (type && !(cJSON_IsString(type) && strcmp(type->valuestring, "BPE") == 0))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "model.type \"%.40s\" is not supported: only BPE is",
                        cJSON_IsString(type) ? type->valuestring : "");
    bool fallback = false;
    int status =
        esp_normalizer_read(&t->normalizer, esp_json_item(json, "normalizer"), err, errlen);
    if (status == ESP_OK)
        status = esp_bpe_check(model, &fallback, err, errlen);
    if (status == ESP_OK)
        status = esp_pretokenizer_read(&t->pretokenizer, esp_json_item(json, "pre_tokenizer"),
                                       fallback, err, errlen);
    if (status == ESP_OK)
        status = check_decoder(esp_json_item(json, "decoder"), fallback, err, errlen);
    if (status == ESP_OK)
        status = esp_vocabulary_read(&t->vocabulary, esp_json_item(model, "vocab"), added,
                                     fallback, err, errlen);
    if (status == ESP_OK)
        status = esp_bpe_read(&t->bpe, &t->vocabulary, model, err, errlen);
    if (status == ESP_OK)
        status = esp_added_tokens_init(&t->plain, &t->vocabulary, added, NULL, err, errlen);
    if (status == ESP_OK)
        status = esp_added_tokens_init(&t->normalized, &t->vocabulary, added, &t->normalizer,
                                       err, errlen);
    t->prefix = status < 0 ? -1 : find_prefix(t, esp_json_item(json, "post_processor"));
    return status;
}

int esp_tokenizer_open(struct esp_tokenizer **tokenizer, const char *folder, char *err,
                       size_t errlen)
{
    char path[PATH_MAX], why[512] = "";
    *tokenizer = NULL;
    cJSON *json = NULL;
    struct esp_tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a tokenizer");
    int status = read_json(&json, path, folder, err, errlen);
    if (status == ESP_OK) {
        status = read_parts(t, json, why, sizeof why);
        if (status < 0)
            esp_fail(err, errlen, status, "%s: %s", path, why);
    }
    cJSON_Delete(json);
    if (status < 0) {
        esp_tokenizer_close(t);
        return status;
    }
    *tokenizer = t;
    return ESP_OK;
}

void esp_tokenizer_close(struct esp_tokenizer *t)
{
    if (!t)
        return;
    esp_added_tokens_free(&t->plain);
    esp_added_tokens_free(&t->normalized);
    esp_pretokenizer_free(&t->pretokenizer);
    esp_normalizer_free(&t->normalizer);
    esp_bpe_free(&t->bpe);
    esp_vocabulary_free(&t->vocabulary);
    free(t);
}

/* ------------------------------------------------------------------ tokens */

int esp_tokenizer_size(const struct esp_tokenizer *t)
{
    return t->vocabulary.size;
}

const char *esp_tokenizer_bytes(const struct esp_tokenizer *t, int32_t token, size_t *length)
{
    if (token < 0 || token >= t->vocabulary.size || !t->vocabulary.tokens[token].bytes)
        return NULL;
    *length = (size_t)t->vocabulary.tokens[token].length;
    return t->vocabulary.tokens[token].bytes;
}

int32_t esp_tokenizer_find(const struct esp_tokenizer *t, const char *bytes, size_t length)
{
    int32_t token = esp_vocabulary_find(&t->vocabulary, false, bytes, length);
    return token >= 0 ? token : esp_vocabulary_find(&t->vocabulary, true, bytes, length);
}

int32_t esp_tokenizer_find_plain(const struct esp_tokenizer *t, const char *bytes,
                                 size_t length)
{
    const struct esp_vocabulary *v = &t->vocabulary;
    int32_t token = esp_vocabulary_find(v, true, bytes, length);
    if (token < 0 || esp_tokenizer_is_special(t, token))
        token = esp_vocabulary_find(v, false, bytes, length);
    if ((token < 0 || esp_tokenizer_is_special(t, token)) && length == 1)
        token = v->byte[(unsigned char)*bytes];
    return token >= 0 && !esp_tokenizer_is_special(t, token) ? token : -1;
}

bool esp_tokenizer_is_special(const struct esp_tokenizer *t, int32_t token)
{
    return token >= 0 && token < t->vocabulary.size &&
           t->vocabulary.tokens[token].flags & ESP_TOKEN_SPECIAL;
}

int32_t esp_tokenizer_prefix(const struct esp_tokenizer *t)
{
    return t->prefix;
}

uint64_t esp_tokenizer_hash(const struct esp_tokenizer *t)
{
    uint64_t hash = ESP_FNV_START;
    for (int32_t id = 0; id < t->vocabulary.size; id++) {
        const struct esp_token *token = &t->vocabulary.tokens[id];
        if (!token->bytes)
            continue;
        hash = esp_fnv(hash, &id, sizeof id);
        hash = esp_fnv(hash, &token->length, sizeof token->length);
        hash = esp_fnv(hash, token->bytes, (size_t)token->length);
    }
    return hash;
}

/* ------------------------------------------------------------------ encoding */

struct esp_encoder {
    /* These members describe the current call. */
    const struct esp_tokenizer *tokenizer;
    int32_t *tokens; /* (capacity) */
    int capacity, count;
    const struct esp_literals *literals; /* positions in the whole text; NULL: there are none */
    /* These members are scratch memory, which later calls reuse. */
    struct esp_matcher *matcher;
    struct esp_spans plain, normalized;
    struct esp_normalize_scratch piece; /* for normalizing a piece */
    struct esp_normalize_scratch part;  /* for normalizing only the start of a piece */
    struct esp_pretokenize_scratch words;
    struct esp_bpe_scratch bpe;
    char *marked; /* (marked_size) a text with its spaces as U+2581 */
    size_t marked_size;
};

static void free_encoder(struct esp_encoder *e)
{
    esp_matcher_close(e->matcher);
    esp_spans_free(&e->plain);
    esp_spans_free(&e->normalized);
    esp_normalize_scratch_free(&e->piece);
    esp_normalize_scratch_free(&e->part);
    esp_pretokenize_scratch_free(&e->words);
    esp_bpe_scratch_free(&e->bpe);
    free(e->marked);
}

static void put(struct esp_encoder *e, int32_t token)
{
    if (e->count < e->capacity)
        e->tokens[e->count] = token;
    e->count++;
}

/* Runs stages 5 and 6 (see the top of this file) on a part of the text. Here and below, `first`
 * means that the part is at the beginning of the whole text. */
static int encode_rest(struct esp_encoder *e, const char *text, int32_t length, bool first)
{
    const struct esp_tokenizer *t = e->tokenizer;
    int status = esp_pretokenize(&t->pretokenizer, e->matcher, &text, length, first, &e->words);
    for (int32_t i = 0; status == ESP_OK && i < e->words.words.count; i++) {
        struct esp_span word = e->words.words.items[i];
        int n = esp_bpe_encode(&t->bpe, &e->bpe, text + word.start, word.end - word.start);
        for (int k = 0; k < n; k++)
            put(e, e->bpe.tokens[k]);
        status = n < 0 ? n : ESP_OK;
    }
    return status;
}

/* Returns the position in a piece's normalized text that corresponds to byte `at` of the piece.
 * If normalizing combines the characters before and after that byte, the result is wrong by a
 * few bytes, which is less than the length of any token. */
static int normalized_at(struct esp_encoder *e, const char *piece, int32_t at)
{
    const char *text;
    size_t length = (size_t)at;
    if (at > 0 && esp_normalize(&e->tokenizer->normalizer, &e->part, piece, (size_t)at, &text,
                                &length) < 0)
        return ESP_E_MEMORY;
    return (int)length;
}

/* Adds to `spans` the literal parts of a piece, as positions in the piece's normalized text.
 * The piece begins at byte `offset` of the whole text. */
static int normalize_literals(struct esp_encoder *e, const char *piece, int32_t piece_length,
                              int32_t offset, struct esp_spans *spans)
{
    for (int32_t i = 0; i < e->literals->count; i++) {
        int32_t start = e->literals->items[i].start - offset;
        int32_t end = e->literals->items[i].end - offset;
        if (end <= 0 || start >= piece_length)
            continue;
        start = normalized_at(e, piece, start > 0 ? start : 0);
        end = normalized_at(e, piece, end < piece_length ? end : piece_length);
        if (start < 0 || end < 0 || !esp_spans_add(spans, start, end, 0))
            return ESP_E_MEMORY;
    }
    return ESP_OK;
}

/* Runs stages 3 to 6 on a piece that begins at byte `offset` of the whole text. */
static int encode_piece(struct esp_encoder *e, const char *piece, int32_t piece_length,
                        int32_t offset, bool first)
{
    const char *text;
    size_t length = (size_t)piece_length;
    struct esp_spans spans = {.items = NULL};
    struct esp_literals moved;
    const struct esp_literals *literals = e->literals;
    int status =
        esp_normalize(&e->tokenizer->normalizer, &e->piece, piece, length, &text, &length);
    if (status == ESP_OK && literals && text != piece) {
        status = normalize_literals(e, piece, piece_length, offset, &spans);
        moved = (struct esp_literals){spans.items, spans.count, literals->marks};
        literals = &moved;
        offset = 0;
    }
    if (status == ESP_OK)
        status = esp_added_tokens_find(&e->tokenizer->normalized, e->matcher, text,
                                       (int32_t)length, literals, offset, &e->normalized);
    for (int32_t i = 0; status == ESP_OK && i < e->normalized.count; i++) {
        struct esp_span span = e->normalized.items[i];
        if (span.tag >= 0)
            put(e, span.tag);
        else
            status = encode_rest(e, text + span.start, span.end - span.start,
                                 first && span.start == 0);
    }
    esp_spans_free(&spans);
    return status;
}

/* Runs stages 2 to 6 on valid UTF-8 that begins at byte `offset` of the whole text. */
static int encode_valid(struct esp_encoder *e, const char *text, size_t length, int32_t offset)
{
    const bool first = offset == 0;
    int status = esp_added_tokens_find(&e->tokenizer->plain, e->matcher, text, (int32_t)length,
                                       e->literals, offset, &e->plain);
    for (int32_t i = 0; status == ESP_OK && i < e->plain.count; i++) {
        struct esp_span span = e->plain.items[i];
        if (span.tag >= 0)
            put(e, span.tag);
        else
            status = encode_piece(e, text + span.start, span.end - span.start,
                                  offset + span.start, first && span.start == 0);
    }
    return status;
}

/* Prepares an encoder for one call. The arguments are the same as in
 * esp_tokenizer_encode_literal(). */
static int begin(struct esp_encoder *e, const struct esp_tokenizer *t, size_t length,
                 const struct esp_literals *literals, int32_t *tokens, int capacity)
{
    e->tokenizer = t;
    e->literals = literals;
    e->tokens = tokens;
    e->capacity = capacity;
    e->count = 0;
    return length > TEXT_LIMIT ? ESP_E_ARGUMENT : ESP_OK;
}

static int begin_matching(struct esp_encoder *e, size_t length)
{
    if (e->matcher)
        esp_matcher_restart(e->matcher, length);
    else
        e->matcher = esp_matcher_open(length);
    return e->matcher ? ESP_OK : ESP_E_MEMORY;
}

static int encode(struct esp_encoder *e, const char *text, size_t length)
{
    int status = begin_matching(e, length);
    for (size_t i = 0; status == ESP_OK && i < length;) {
        size_t valid = i;
        int n = 0;
        while (valid < length && (n = esp_utf8_sequence(text + valid, length - valid)) > 0)
            valid += (size_t)n;
        if (valid > i)
            status = encode_valid(e, text + i, valid - i, (int32_t)i);
        i = valid;
        if (i < length) {
            int32_t token = e->tokenizer->vocabulary.byte[(unsigned char)text[i++]];
            if (token >= 0)
                put(e, token);
        }
    }
    return status < 0 ? status : e->count;
}

/* Enlarges e->marked to at least `size` bytes and returns it. Returns NULL if there is no
 * memory. */
static char *reserve_marked(struct esp_encoder *e, size_t size)
{
    if (size <= e->marked_size)
        return e->marked;
    free(e->marked);
    e->marked = malloc(2 * size);
    e->marked_size = e->marked ? 2 * size : 0;
    return e->marked;
}

/* Encodes valid UTF-8 by BPE alone (stage 6). With byte fallback, a space becomes U+2581. */
static int spell_valid(struct esp_encoder *e, const char *text, size_t length)
{
    static const size_t mark = sizeof ESP_SPACE_MARK - 1;
    const struct esp_tokenizer *t = e->tokenizer;
    size_t used = 0;
    char *word = reserve_marked(e, mark * length);
    if (!word)
        return ESP_E_MEMORY;
    for (size_t i = 0; i < length; i++) {
        const bool space = text[i] == ' ' && t->vocabulary.byte_fallback;
        memcpy(word + used, space ? ESP_SPACE_MARK : text + i, space ? mark : 1);
        used += space ? mark : 1;
    }
    const int n = esp_bpe_encode(&t->bpe, &e->bpe, word, (int)used);
    for (int i = 0; i < n; i++)
        put(e, e->bpe.tokens[i]);
    return n < 0 ? n : (int)ESP_OK;
}

/* Returns how many bytes can be encoded together: with byte fallback, only the bytes before the
 * next invalid UTF-8. A byte-level vocabulary can encode any bytes, so all bytes are encoded
 * together. */
static size_t piece_of(const struct esp_tokenizer *t, const char *bytes, size_t length)
{
    size_t valid = 0;
    int n = 0;
    if (!t->vocabulary.byte_fallback)
        return length;
    while (valid < length && (n = esp_utf8_sequence(bytes + valid, length - valid)) > 0)
        valid += (size_t)n;
    return valid;
}

static int spell(struct esp_encoder *e, const char *bytes, size_t length)
{
    const struct esp_tokenizer *t = e->tokenizer;
    int status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < length;) {
        const size_t piece = piece_of(t, bytes + i, length - i);
        if (piece > 0)
            status = spell_valid(e, bytes + i, piece);
        i += piece;
        if (i < length)
            put(e, t->vocabulary.byte[(unsigned char)bytes[i++]]);
    }
    return status < 0 ? status : e->count;
}

int esp_encoder_encode(struct esp_encoder *e, const struct esp_tokenizer *t, const char *text,
                       size_t length, int32_t *tokens, int capacity)
{
    const int status = begin(e, t, length, NULL, tokens, capacity);
    return status < 0 ? status : encode(e, text, length);
}

int esp_encoder_spell(struct esp_encoder *e, const struct esp_tokenizer *t, const char *bytes,
                      size_t length, int32_t *tokens, int capacity)
{
    const int status = begin(e, t, length, NULL, tokens, capacity);
    return status < 0 ? status : spell(e, bytes, length);
}

struct esp_encoder *esp_encoder_open(void)
{
    return calloc(1, sizeof(struct esp_encoder));
}

void esp_encoder_close(struct esp_encoder *e)
{
    if (e)
        free_encoder(e);
    free(e);
}

int esp_tokenizer_encode_literal(const struct esp_tokenizer *t, const char *text, size_t length,
                                 const struct esp_literals *literals, int32_t *tokens,
                                 int capacity)
{
    struct esp_encoder e = {0};
    int status = begin(&e, t, length, literals, tokens, capacity);
    if (status == ESP_OK)
        status = encode(&e, text, length);
    free_encoder(&e);
    return status;
}

int esp_tokenizer_spell(const struct esp_tokenizer *t, const char *bytes, size_t length,
                        int32_t *tokens, int capacity)
{
    struct esp_encoder e = {0};
    const int status = esp_encoder_spell(&e, t, bytes, length, tokens, capacity);
    free_encoder(&e);
    return status;
}

int esp_tokenizer_encode(const struct esp_tokenizer *t, const char *text, size_t length,
                         int32_t *tokens, int capacity)
{
    return esp_tokenizer_encode_literal(t, text, length, NULL, tokens, capacity);
}
