/* added_tokens.c - see added_tokens.h.
 *
 * The tokens' texts form a trie of bytes in one hash table: (node, byte) -> child, and (node,
 * END) -> token. At each position the longest token is taken, and the search continues after
 * this token. If the token must be a single word but is not, it is dropped, and the search
 * still continues after it. These rules, and the effect of lstrip and rstrip on overlapping
 * matches, follow the Hugging Face library (AddedVocabulary::find_matches). As in that library,
 * a token that is searched for in normalized text is normalized first. Therefore, if the
 * normalizer prepends a text, the token is found only after that text.
 */
#include "engine/model/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "kernels/status.h"
#include "engine/support/utf8_stream.h"

enum {
    END = 256,
    TEXT_LIMIT = 4 << 20, /* maximum bytes of all added tokens together */
};

static uint64_t edge(uint64_t node, unsigned byte)
{
    return node << 9 | byte;
}

static void insert(struct esp_added_tokens *added, const char *text, size_t length, int32_t id,
                   uint64_t *nodes)
{
    uint64_t node = 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t key = edge(node, (unsigned char)text[i]);
        node = esp_int_map_get(&added->trie, key);
        if (node == ESP_INT_MAP_NONE) {
            node = ++*nodes;
            esp_int_map_put(&added->trie, key, node);
        }
    }
    esp_int_map_put(&added->trie, edge(node, END), (uint64_t)id);
}

/* Visits the added tokens that must be found in the original text or, if `normalizer` is not
 * NULL, in normalized text. Adds an upper bound for the number of trie edges to *edges. Sets
 * *single_word if a token must be a single word. If the trie is already allocated, also stores
 * the tokens in it. */
static int visit(struct esp_added_tokens *added, const cJSON *json,
                 const struct esp_normalizer *normalizer, size_t *edges, bool *single_word)
{
    uint64_t nodes = 0;
    struct esp_normalize_scratch scratch = {0};
    int status = ESP_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        const char *content = esp_json_item(item, "content")->valuestring;
        int32_t id = (int32_t)esp_json_item(item, "id")->valuedouble;
        uint32_t flags = added->vocabulary->tokens[id].flags;
        const char *text = content;
        size_t length = strlen(content);
        if (*edges > TEXT_LIMIT)
            break; /* otherwise a normalizer that lengthens texts could take very long */
        if (length == 0 || !(flags & ESP_TOKEN_NORMALIZED) != !normalizer)
            continue;
        if (normalizer)
            status = esp_normalize(normalizer, &scratch, content, length, &text, &length);
        if (status < 0)
            break;
        *edges += length + 1;
        *single_word |= (flags & ESP_TOKEN_SINGLE_WORD) != 0;
        if (added->trie.entries)
            insert(added, text, length, id, &nodes);
    }
    esp_normalize_scratch_free(&scratch);
    return status;
}

int esp_added_tokens_init(struct esp_added_tokens *added,
                          const struct esp_vocabulary *vocabulary, const cJSON *json,
                          const struct esp_normalizer *normalizer, char *err, size_t errlen)
{
    size_t bytes = 0, again = 0;
    bool single_word = false;
    added->vocabulary = vocabulary;
    int status = visit(added, json, normalizer, &bytes, &single_word);
    if (status == ESP_OK && bytes == 0)
        return ESP_OK;
    if (bytes > TEXT_LIMIT)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "added_tokens hold %zu bytes of text; at most %d are supported", bytes,
                        TEXT_LIMIT);
    if (status == ESP_OK && single_word) {
        status = esp_split_pattern_open(
            &added->word, "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]", false, err,
            errlen);
        if (status < 0)
            return status;
    }
    if (status == ESP_OK)
        status = esp_int_map_init(&added->trie, bytes)
                     ? visit(added, json, normalizer, &again, &single_word)
                     : (int)ESP_E_MEMORY;
    return status < 0 ? esp_fail(err, errlen, status, "not enough memory for added_tokens")
                      : ESP_OK;
}

void esp_added_tokens_free(struct esp_added_tokens *added)
{
    esp_int_map_free(&added->trie);
    esp_split_pattern_close(added->word);
    added->word = NULL;
}

/* ------------------------------------------------------------------ finding */

/* Returns whether it is safe to find this token in text that a user wrote. */
static bool is_harmless(const struct esp_token *token, const char *const *marks)
{
    if (token->flags & ESP_TOKEN_SPECIAL)
        return false;
    for (; marks && *marks; marks++)
        if (strlen(*marks) == (size_t)token->length &&
            memcmp(*marks, token->bytes, (size_t)token->length) == 0)
            return false;
    return true;
}

/* Returns whether the bytes [start, end) of the text overlap a part that a user wrote. */
static bool touches_literal(const struct esp_literals *literals, int32_t start, int32_t end)
{
    /* This binary search finds the first part that ends after `start`. */
    int32_t low = 0, high = literals->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (literals->items[middle].end > start)
            high = middle;
        else
            low = middle + 1;
    }
    return low < literals->count && literals->items[low].start < end;
}

/* Returns the longest added token at byte `at` of `whole`, and sets *matched to its length in
 * bytes. Returns -1 if there is none. */
static int32_t longest(const struct esp_added_tokens *added, const char *whole, int32_t at,
                       int32_t whole_length, const struct esp_literals *literals,
                       int32_t offset, int32_t *matched)
{
    const char *text = whole + at;
    const int32_t length = whole_length - at;
    uint64_t node = 0, token = ESP_INT_MAP_NONE;
    for (int32_t i = 0; i <= length; i++) {
        uint64_t end =
            i > 0 ? esp_int_map_get(&added->trie, edge(node, END)) : ESP_INT_MAP_NONE;
        if (end != ESP_INT_MAP_NONE &&
            (!literals || is_harmless(&added->vocabulary->tokens[end], literals->marks) ||
             !touches_literal(literals, offset + at, offset + at + i))) {
            token = end;
            *matched = i;
        }
        node = i < length ? esp_int_map_get(&added->trie, edge(node, (unsigned char)text[i]))
                          : ESP_INT_MAP_NONE;
        if (node == ESP_INT_MAP_NONE)
            break;
    }
    return token == ESP_INT_MAP_NONE ? -1 : (int32_t)token;
}

/* Returns the start of the character that ends before `end`. */
static int32_t character_before(const char *text, int32_t end)
{
    do
        end--;
    while (end > 0 && (text[end] & 0xC0) == 0x80);
    return end;
}

/* Returns 1 if text[0, length) starts with a word character, 0 if it does not or is empty, or a
 * negative status. */
static int word_at(const struct esp_added_tokens *added, struct esp_matcher *matcher,
                   const char *text, int32_t length)
{
    size_t start, end;
    if (length <= 0)
        return 0;
    int size = esp_utf8_sequence(text, (size_t)length);
    return esp_matcher_find(matcher, added->word, text, (size_t)size, 0, &start, &end);
}

static int touches_word(const struct esp_added_tokens *added, struct esp_matcher *matcher,
                        const char *text, int32_t length, int32_t start, int32_t end)
{
    int after = word_at(added, matcher, text + end, length - end);
    if (after != 0 || start == 0)
        return after;
    int32_t before = character_before(text, start);
    return word_at(added, matcher, text + before, start - before);
}

int esp_added_tokens_find(const struct esp_added_tokens *added, struct esp_matcher *matcher,
                          const char *text, int32_t length, const struct esp_literals *literals,
                          int32_t offset, struct esp_spans *spans)
{
    int32_t done = 0; /* all text before this byte is already in spans */
    spans->count = 0;
    for (int32_t i = 0; added->trie.entries && i < length;) {
        int32_t matched = 0, id = longest(added, text, i, length, literals, offset, &matched);
        if (id < 0) {
            i++;
            continue;
        }
        const struct esp_token *token = &added->vocabulary->tokens[id];
        int32_t start = i, end = i + matched;
        i = end;
        if (token->flags & ESP_TOKEN_SINGLE_WORD) {
            int touches = touches_word(added, matcher, text, length, start, end);
            if (touches < 0)
                return touches;
            if (touches)
                continue;
        }
        if (token->flags & ESP_TOKEN_LSTRIP) {
            int32_t before = start;
            for (int32_t at; before > 0; before = at) {
                at = character_before(text, before);
                if (!esp_white_space(text + at, (size_t)(before - at)))
                    break;
            }
            start = before > done ? before : done;
        }
        if (token->flags & ESP_TOKEN_RSTRIP)
            for (size_t n; (n = esp_white_space(text + end, (size_t)(length - end))) > 0;)
                end += (int32_t)n;
        if ((done < start && !esp_spans_add(spans, done, start, -1)) ||
            !esp_spans_add(spans, start, end, id))
            return ESP_E_MEMORY;
        done = end;
    }
    if (done != length && !esp_spans_add(spans, done, length, -1))
        return ESP_E_MEMORY;
    return ESP_OK;
}
