/* vocabulary.c - see vocabulary.h.
 *
 * The file is untrusted. Ids must be whole numbers below ID_LIMIT and unique. Gaps are
 * allowed, because models pad their vocabulary. An added token may repeat an entry of the
 * vocabulary, but only with the same id and the same bytes. Otherwise the Hugging Face library
 * would silently renumber it, and the model's weights would not match.
 */
#include "engine/model/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "kernels/status.h"

enum {
    TOKEN_LIMIT = 1 << 20,
    ID_LIMIT = 1 << 21,
    ALPHABET_END = 0x144, /* characters of the byte alphabet are below this */
};

/* Returns the byte that a character of the byte alphabet stands for. Returns -1 for any other
 * character. */
static int alphabet_byte(unsigned c)
{
    if ((c >= '!' && c <= '~') || (c >= 0xA1 && c <= 0xFF && c != 0xAD))
        return (int)c;
    if (c < 0x100 || c >= ALPHABET_END)
        return -1;
    int n = (int)c - 0x100; /* index among the bytes 0..32, 127..160, 173 */
    return n < 33 ? n : n < 67 ? n - 33 + 127 : 173;
}

/* Returns the byte that a text like "<0x0A>" stands for. Returns -1 for any other text. */
static int fallback_byte(const char *text, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *high, *low;
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' || !text[3] || !text[4])
        return -1;
    high = strchr(digits, text[3]);
    low = strchr(digits, text[4]);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* Does the same as spell() for a vocabulary with byte fallback, in which U+2581 stands for a
 * space. Returns -1 for a text that contains a real space. */
static int64_t spell_marks(const char *text, size_t length, char *out)
{
    static const size_t mark = sizeof ESP_SPACE_MARK - 1;
    int64_t n = 0;
    for (size_t i = 0; i < length; n++) {
        bool space = length - i >= mark && memcmp(text + i, ESP_SPACE_MARK, mark) == 0;
        if (text[i] == ' ')
            return -1;
        if (out)
            out[n] = space ? ' ' : text[i];
        i += space ? mark : 1;
    }
    return n;
}

/* Translates valid UTF-8 text from the byte alphabet to bytes. Writes the bytes to `out`, which
 * can be NULL or the text itself. Returns the number of bytes, or -1 if a character is not in
 * the alphabet. */
static int64_t spell(const struct esp_vocabulary *v, const char *text, size_t length, char *out)
{
    int64_t n = 0;
    if (v->byte_fallback)
        return spell_marks(text, length, out);
    for (size_t i = 0; i < length; n++) {
        unsigned c = (unsigned char)text[i++];
        if (c >= 0xE0) {
            return -1;
        } else if (c >= 0xC0) {
            c = (c & 0x1f) << 6 | ((unsigned char)text[i++] & 0x3f);
        }
        int byte = alphabet_byte(c);
        if (byte < 0)
            return -1;
        if (out)
            out[n] = (char)byte;
    }
    return n;
}

/* Returns the slot of the hash table that contains this token, or the free slot for it. */
static size_t find_slot(const struct esp_vocabulary *v, bool spelled, const char *bytes,
                        size_t length)
{
    size_t slot = (size_t)(esp_hash(v->key, bytes, length) + spelled) & v->slot_mask;
    for (; v->slots[slot] >= 0; slot = (slot + 1) & v->slot_mask) {
        const struct esp_token *token = &v->tokens[v->slots[slot]];
        if ((size_t)token->length == length &&
            ((token->flags & ESP_TOKEN_SPELLED) != 0) == spelled &&
            memcmp(token->bytes, bytes, length) == 0)
            break;
    }
    return slot;
}

int32_t esp_vocabulary_find(const struct esp_vocabulary *v, bool spelled, const char *bytes,
                            size_t length)
{
    return v->slots[find_slot(v, spelled, bytes, length)];
}

int32_t esp_vocabulary_find_text(const struct esp_vocabulary *v, char *text, size_t length)
{
    int byte = v->byte_fallback ? fallback_byte(text, length) : -1;
    if (byte >= 0)
        return v->byte[byte];
    int64_t spelled = spell(v, text, length, NULL);
    if (spelled >= 0)
        spell(v, text, length, text);
    return esp_vocabulary_find(v, spelled >= 0, text, spelled >= 0 ? (size_t)spelled : length);
}

/* Stores a token under a free id and returns -1; if the same text already has an id, returns
 * that id instead. */
static int32_t insert(struct esp_vocabulary *v, int32_t id, const char *text, size_t length,
                      bool spelled)
{
    struct esp_token *token = &v->tokens[id];
    size_t bytes = spelled ? (size_t)spell(v, text, length, v->text_end) : length;
    if (!spelled)
        memcpy(v->text_end, text, length);
    size_t slot = find_slot(v, spelled, v->text_end, bytes);
    if (v->slots[slot] >= 0)
        return v->slots[slot];
    token->bytes = v->text_end;
    token->length = (int32_t)bytes;
    token->flags = spelled ? ESP_TOKEN_SPELLED : 0;
    v->text_end += bytes;
    v->slots[slot] = id;
    return -1;
}

static int check_id(const cJSON *number, const char *text, char *err, size_t errlen)
{
    double id = cJSON_IsNumber(number) ? number->valuedouble : -1;
    if (!(id >= 0 && id < ID_LIMIT && id == (int32_t)id))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "the id of token \"%.40s\" is not a whole number from 0 to %d", text,
                        ID_LIMIT - 1);
    return (int)id;
}

/* Checks the ids and the texts, and allocates memory for all tokens. */
static int allocate(struct esp_vocabulary *v, const cJSON *vocab, const cJSON *added, char *err,
                    size_t errlen)
{
    const cJSON *lists[] = {vocab, added}, *item;
    size_t bytes = 1, count = 0;
    for (int list = 0; list < 2; list++)
        cJSON_ArrayForEach(item, lists[list])
        {
            const char *text = list == 0 ? item->string : esp_json_text(item, "content");
            if (!text)
                return esp_fail(err, errlen, ESP_E_FORMAT,
                                "entry %zu of added_tokens has no text \"content\"",
                                count - (size_t)cJSON_GetArraySize(vocab));
            int id = check_id(list == 0 ? item : esp_json_item(item, "id"), text, err, errlen);
            if (id < 0)
                return id;
            v->size = id >= v->size ? id + 1 : v->size;
            bytes += strlen(text);
            count++;
        }
    if (count > TOKEN_LIMIT)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "there are %zu tokens; at most %d are supported", count, TOKEN_LIMIT);
    v->slot_mask = 1023;
    while (v->slot_mask < 2 * count)
        v->slot_mask = 2 * v->slot_mask + 1;
    v->key = esp_hash_key();
    v->slots = malloc((v->slot_mask + 1) * sizeof *v->slots);
    v->tokens = calloc((size_t)v->size + 1, sizeof *v->tokens);
    v->text = v->text_end = malloc(bytes);
    if (!v->slots || !v->tokens || !v->text)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %zu tokens", count);
    memset(v->slots, 0xff, (v->slot_mask + 1) * sizeof *v->slots);
    return ESP_OK;
}

static int read_flags(const cJSON *item, const char *text, uint32_t *flags, char *err,
                      size_t errlen)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } fields[] = {
        {"special", ESP_TOKEN_SPECIAL},         {"normalized", ESP_TOKEN_NORMALIZED},
        {"single_word", ESP_TOKEN_SINGLE_WORD}, {"lstrip", ESP_TOKEN_LSTRIP},
        {"rstrip", ESP_TOKEN_RSTRIP},
    };
    *flags = ESP_TOKEN_ADDED;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const cJSON *field = esp_json_item(item, fields[i].name);
        if (!cJSON_IsBool(field))
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "\"%s\" of the added token \"%.40s\" is not true or false",
                            fields[i].name, text);
        if (cJSON_IsTrue(field))
            *flags |= fields[i].flag;
    }
    return ESP_OK;
}

static int add_entry(struct esp_vocabulary *v, const cJSON *item, uint32_t flags,
                     const char *text, size_t length, char *err, size_t errlen)
{
    int32_t id = (int32_t)item->valuedouble, other = -1;
    bool spelled = spell(v, text, length, NULL) >= 0;
    char *copy = v->text_end; /* free memory, which insert() overwrites later */
    if (flags) {
        memcpy(copy, text, length);
        other = esp_vocabulary_find_text(v, copy, length);
        /* A text that is not in the vocabulary is taken literally, even if it could be read in
         * the byte alphabet. */
        spelled = false;
        if (other < 0)
            other = esp_vocabulary_find(v, false, text, length);
    }
    if (other >= 0 && other == id) {
        struct esp_token *token = &v->tokens[id];
        if (token->flags & ESP_TOKEN_ADDED)
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "added_tokens has the token \"%.40s\" twice", text);
        if (!v->byte_fallback &&
            ((size_t)token->length != length || memcmp(token->bytes, text, length) != 0))
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "the added token \"%.40s\" is spelled differently in the "
                            "vocabulary; that is not supported",
                            text);
        token->flags |= flags;
        return ESP_OK;
    }
    if (other < 0 && v->tokens[id].bytes)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "two tokens have the id %d; one of them is \"%.40s\"", (int)id, text);
    if (other < 0)
        other = insert(v, id, text, length, spelled);
    if (other >= 0)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "the token \"%.40s\" is listed with the ids %d and %d", text,
                        (int)other, (int)id);
    v->tokens[id].flags |= flags;
    return ESP_OK;
}

static int add_added(struct esp_vocabulary *v, const cJSON *item, char *err, size_t errlen)
{
    const char *content = esp_json_item(item, "content")->valuestring;
    uint32_t flags;
    int status = read_flags(item, content, &flags, err, errlen);
    if (status < 0 || !*content)
        return status; /* an empty token matches nothing; the Hugging Face library drops it, too
                        */
    return add_entry(v, esp_json_item(item, "id"), flags, content, strlen(content), err,
                     errlen);
}

/* Stores an entry of model.vocab as the token of a byte and returns 1. Returns 0 if it is not
 * the token of a byte. */
static int add_byte(struct esp_vocabulary *v, const cJSON *item, char *err, size_t errlen)
{
    int byte = fallback_byte(item->string, strlen(item->string));
    int32_t id = (int32_t)item->valuedouble;
    if (byte < 0)
        return 0;
    if (v->byte[byte] >= 0 || v->tokens[id].bytes)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "two tokens have the id %d; one of them is \"%s\"", (int)id,
                        item->string);
    *v->text_end = (char)byte;
    v->tokens[id] = (struct esp_token){.bytes = v->text_end++, .length = 1};
    v->byte[byte] = id;
    return 1;
}

/* Finds the token of each byte. With byte fallback, add_byte() has already found them. */
static int find_bytes(struct esp_vocabulary *v, char *err, size_t errlen)
{
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        if (!v->byte_fallback)
            v->byte[i] = esp_vocabulary_find(v, true, &byte, 1);
        if (v->byte[i] < 0 && v->byte_fallback)
            return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                            "model.byte_fallback is set, but model.vocab has no token <0x%02X>",
                            (unsigned)i);
        if (v->byte[i] < 0 && i >= ' ' && i <= '~')
            return esp_fail(
                err, errlen, ESP_E_UNSUPPORTED,
                "model.vocab has no token for the byte 0x%02X (\"%c\"): it is not a "
                "byte-level vocabulary",
                (unsigned)i, i);
    }
    return ESP_OK;
}

int esp_vocabulary_read(struct esp_vocabulary *v, const cJSON *vocab, const cJSON *added,
                        bool byte_fallback, char *err, size_t errlen)
{
    v->byte_fallback = byte_fallback;
    memset(v->byte, 0xff, sizeof v->byte);
    if (!cJSON_IsObject(vocab))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "model.vocab is not an object of tokens and ids");
    if (added && !cJSON_IsNull(added) && !cJSON_IsArray(added))
        return esp_fail(err, errlen, ESP_E_FORMAT, "added_tokens is not a list");
    int status = allocate(v, vocab, added, err, errlen);
    const cJSON *item = status == ESP_OK ? vocab->child : NULL;
    for (; item && status >= 0; item = item->next) {
        if (!*item->string)
            return esp_fail(err, errlen, ESP_E_FORMAT, "model.vocab has a token without text");
        status = byte_fallback ? add_byte(v, item, err, errlen) : 0;
        if (status == 0)
            status = add_entry(v, item, 0, item->string, strlen(item->string), err, errlen);
    }
    for (item = added ? added->child : NULL; item && status >= 0; item = item->next)
        status = add_added(v, item, err, errlen);
    return status < 0 ? status : find_bytes(v, err, errlen);
}

void esp_vocabulary_free(struct esp_vocabulary *v)
{
    free(v->tokens);
    free(v->slots);
    free(v->text);
}
