/* bpe.c - see bpe.h.
 *
 * A word starts as one symbol per byte. With byte fallback it starts as one symbol per
 * character; a character that is not a token becomes one symbol per byte. The adjacent pair
 * with the lowest merge rank (ties: the leftmost) becomes one symbol, until no pair has a
 * merge. Candidate pairs are in a heap ordered by rank, then position. A merge adds at most two
 * candidates and consumes one, so a word of n bytes never has more than 2n candidates. When a
 * neighbour changes, candidates stay in the heap. When a candidate is popped, it is dropped
 * unless the pair now at its position still makes the same token. The Hugging Face library
 * merges in the same order, even if two merges make the same token. As in that library, bytes
 * without a token are left out.
 */
#include "engine/model/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "kernels/status.h"
#include "engine/support/utf8_stream.h"

enum { LONGEST_SCORED = 1024 /* maximum bytes of a token, see add_pairs() */ };

struct esp_bpe_symbol {
    int32_t token;          /* -1 means merged into its left neighbour */
    int32_t previous, next; /* -1 if none */
};

struct esp_bpe_merge {
    int32_t rank, position, token;
};

/* ------------------------------------------------------------------ reading */

/* Adds the merge of two tokens to the table of merges. `text` is scratch memory. */
static int add_merge(struct esp_bpe *bpe, int rank, const char *left, size_t left_length,
                     const char *right, size_t right_length, char *text, char *err,
                     size_t errlen)
{
    int32_t ids[3];
    memcpy(text, left, left_length);
    ids[0] = esp_vocabulary_find_text(bpe->vocabulary, text, left_length);
    memcpy(text, right, right_length);
    ids[1] = esp_vocabulary_find_text(bpe->vocabulary, text, right_length);
    memcpy(text, left, left_length);
    memcpy(text + left_length, right, right_length);
    ids[2] = esp_vocabulary_find_text(bpe->vocabulary, text, left_length + right_length);
    for (int i = 0; i < 3; i++)
        if (ids[i] < 0)
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "merge %d (\"%.*s\" with \"%.*s\") needs a token that model.vocab "
                            "does not have",
                            rank, left_length < 40 ? (int)left_length : 40, left,
                            right_length < 40 ? (int)right_length : 40, right);
    esp_int_map_put(&bpe->merges, (uint64_t)ids[0] << 32 | (uint32_t)ids[1],
                    (uint64_t)rank << 32 | (uint32_t)ids[2]);
    return ESP_OK;
}

/* Reads one entry of model.merges: "left right" or ["left", "right"]. *rank is the number of
 * entries so far that are not comments. */
static int read_merge(struct esp_bpe *bpe, const cJSON *item, int *rank, char *text, char *err,
                      size_t errlen)
{
    const char *left, *right;
    size_t left_length;
    if (cJSON_IsString(item)) {
        left = item->valuestring;
        if (strncmp(left, "#version", 8) == 0)
            return ESP_OK;
        left_length = strcspn(left, " ");
        right = left[left_length] ? left + left_length + 1 : "";
    } else {
        left = cJSON_GetStringValue(cJSON_GetArrayItem(item, 0));
        right = cJSON_GetStringValue(cJSON_GetArrayItem(item, 1));
        if (!cJSON_IsArray(item) || !left || !right || cJSON_GetArraySize(item) != 2)
            return esp_fail(err, errlen, ESP_E_FORMAT,
                            "merge %d of model.merges is neither \"left right\" nor a pair of "
                            "texts",
                            *rank);
        left_length = strlen(left);
    }
    if (left_length == 0 || !*right || (cJSON_IsString(item) && strchr(right, ' ')))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "merge %d of model.merges must be two tokens", *rank);
    return add_merge(bpe, (*rank)++, left, left_length, right, strlen(right), text, err,
                     errlen);
}

/* Returns the length of the longest entry of model.merges. */
static size_t longest_merge(const cJSON *merges)
{
    size_t longest = 0;
    const cJSON *item, *part;
    cJSON_ArrayForEach(item, merges)
    {
        size_t length = cJSON_IsString(item) ? strlen(item->valuestring) : 0;
        cJSON_ArrayForEach(part, item) length +=
            cJSON_IsString(part) ? strlen(part->valuestring) : 0;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* In older files, a member that is not set has an empty string. With byte fallback, the unknown
 * token may be set, because it is never needed. */
int esp_bpe_check(const cJSON *model, bool *byte_fallback, char *err, size_t errlen)
{
    static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix",
                                        "unk_token"};
    const cJSON *item = esp_json_find(model, "byte_fallback", NULL, NULL);
    if (item && !cJSON_IsBool(item))
        return esp_fail(err, errlen, ESP_E_FORMAT, "model.byte_fallback is not true or false");
    *byte_fallback = cJSON_IsTrue(item);
    for (int i = 0; i < (*byte_fallback ? 2 : 3); i++) {
        item = esp_json_find(model, texts[i], NULL, NULL);
        if (item && !(cJSON_IsString(item) && !*item->valuestring))
            return esp_fail(
                err, errlen, ESP_E_UNSUPPORTED,
                "model.%s is set, but the supported kinds of BPE (byte-level, or with byte "
                "fallback) do not use it",
                texts[i]);
    }
    item = esp_json_find(model, "dropout", NULL, NULL);
    if (item && !(cJSON_IsNumber(item) && item->valuedouble == 0))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "model.dropout is set: it would make tokens random; set it to null");
    if (*byte_fallback && esp_json_true(model, "ignore_merges"))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "model.byte_fallback and model.ignore_merges are both set, which is "
                        "not supported");
    return ESP_OK;
}

/* ------------------------------------------------------------------ scores instead of merges
 */

struct scored {
    double score;
    int32_t token;
};

static int by_score(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

/* Returns the number of positions at which `id` can be split. If the table of merges is already
 * allocated, also adds every pair of tokens that makes `id`. Each position costs a hash of the
 * whole token, so a very long token could take minutes. Therefore tokens of more than
 * LONGEST_SCORED bytes are left out. No known vocabulary has such tokens. */
static size_t add_pairs(struct esp_bpe *bpe, int32_t id, int32_t rank)
{
    const struct esp_token *token = &bpe->vocabulary->tokens[id];
    size_t places = 0;
    for (int32_t i = 1; i < token->length && token->length <= LONGEST_SCORED; i++) {
        if ((token->bytes[i] & 0xC0) == 0x80)
            continue;
        places++;
        if (!bpe->merges.entries)
            continue;
        int32_t left = esp_vocabulary_find(bpe->vocabulary, true, token->bytes, (size_t)i);
        int32_t right = esp_vocabulary_find(bpe->vocabulary, true, token->bytes + i,
                                            (size_t)(token->length - i));
        if (left >= 0 && right >= 0)
            esp_int_map_put(&bpe->merges, (uint64_t)left << 32 | (uint32_t)right,
                            (uint64_t)rank << 32 | (uint32_t)id);
    }
    return places;
}

/* Reads the list of scores, one per token. SentencePiece first merges the pair that makes the
 * token with the highest score (ties: the leftmost). Therefore the rank of a merge is the rank
 * of its token's score, and tokens with equal scores share a rank. */
static int read_scores(struct esp_bpe *bpe, const cJSON *scores, char *err, size_t errlen)
{
    const struct esp_vocabulary *v = bpe->vocabulary;
    struct scored *order = malloc(((size_t)v->size + 1) * sizeof *order);
    size_t count = 0, places = 0;
    int32_t id = 0, rank = 0;
    const cJSON *item;
    if (!order)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for model.scores");
    cJSON_ArrayForEach(item, scores)
    {
        if (id < v->size && v->tokens[id].flags & ESP_TOKEN_SPELLED) {
            order[count++] = (struct scored){item->valuedouble, id};
            places += add_pairs(bpe, id, 0);
        }
        id++;
    }
    if (!esp_int_map_init(&bpe->merges, places)) {
        free(order);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for model.scores");
    }
    qsort(order, count, sizeof *order, by_score);
    for (size_t i = 0; i < count; i++) {
        rank += i > 0 && order[i].score != order[i - 1].score;
        add_pairs(bpe, order[i].token, rank);
    }
    free(order);
    return ESP_OK;
}

int esp_bpe_read(struct esp_bpe *bpe, const struct esp_vocabulary *vocabulary,
                 const cJSON *model, char *err, size_t errlen)
{
    const cJSON *scores = esp_json_item(model, "scores");
    if (cJSON_IsArray(scores)) {
        bpe->vocabulary = vocabulary;
        return read_scores(bpe, scores, err, errlen);
    }
    int status = ESP_OK;
    const cJSON *ignore = esp_json_find(model, "ignore_merges", NULL, NULL);
    if (ignore && !cJSON_IsBool(ignore))
        return esp_fail(err, errlen, ESP_E_FORMAT, "model.ignore_merges is not true or false");
    const cJSON *merges = esp_json_item(model, "merges"), *item;
    if (!cJSON_IsArray(merges))
        return esp_fail(err, errlen, ESP_E_FORMAT, "model.merges is not a list");
    bpe->vocabulary = vocabulary;
    bpe->ignore_merges = cJSON_IsTrue(ignore);
    char *text = malloc(longest_merge(merges) + 1);
    if (!text || !esp_int_map_init(&bpe->merges, (size_t)cJSON_GetArraySize(merges)))
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for model.merges");
    int rank = 0;
    cJSON_ArrayForEach(item, merges)
    {
        if (status < 0)
            break;
        status = read_merge(bpe, item, &rank, text, err, errlen);
    }
    free(text);
    return status;
}

void esp_bpe_free(struct esp_bpe *bpe)
{
    esp_int_map_free(&bpe->merges);
}

/* ------------------------------------------------------------------ encoding */

static bool before(const struct esp_bpe_merge *a, const struct esp_bpe_merge *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->position < b->position;
}

static void heap_push(struct esp_bpe_merge *heap, size_t *count, struct esp_bpe_merge merge)
{
    size_t i = (*count)++;
    for (; i > 0 && before(&merge, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = merge;
}

static struct esp_bpe_merge heap_pop(struct esp_bpe_merge *heap, size_t *count)
{
    struct esp_bpe_merge top = heap[0], last = heap[--*count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < *count; i = child) {
        if (child + 1 < *count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

static uint64_t find_merge(const struct esp_bpe *bpe, int32_t left, int32_t right)
{
    return esp_int_map_get(&bpe->merges, (uint64_t)left << 32 | (uint32_t)right);
}

static void push_pair(const struct esp_bpe *bpe, const struct esp_bpe_symbol *symbols,
                      int32_t position, struct esp_bpe_merge *heap, size_t *count)
{
    int32_t next = symbols[position].next;
    uint64_t merge = find_merge(bpe, symbols[position].token, symbols[next].token);
    if (merge != ESP_INT_MAP_NONE)
        heap_push(heap, count,
                  (struct esp_bpe_merge){(int32_t)(merge >> 32), position, (int32_t)merge});
}

static void merge_all(const struct esp_bpe *bpe, struct esp_bpe_symbol *symbols, int length,
                      struct esp_bpe_merge *heap)
{
    size_t count = 0;
    for (int i = 0; i + 1 < length; i++)
        push_pair(bpe, symbols, i, heap, &count);
    while (count > 0) {
        struct esp_bpe_merge top = heap_pop(heap, &count);
        struct esp_bpe_symbol *left = &symbols[top.position];
        if (left->token < 0 || left->next < 0)
            continue;
        struct esp_bpe_symbol *right = &symbols[left->next];
        uint64_t merge = find_merge(bpe, left->token, right->token);
        if (merge == ESP_INT_MAP_NONE || (int32_t)merge != top.token)
            continue;
        left->token = top.token;
        left->next = right->next;
        right->token = -1;
        if (left->next >= 0)
            symbols[left->next].previous = top.position;
        if (left->previous >= 0)
            push_pair(bpe, symbols, left->previous, heap, &count);
        if (left->next >= 0)
            push_pair(bpe, symbols, top.position, heap, &count);
    }
}

static bool reserve(struct esp_bpe_scratch *scratch, size_t length)
{
    if (length <= scratch->capacity)
        return true;
    size_t capacity = length < 64 ? 64 : 2 * length;
    esp_bpe_scratch_free(scratch);
    scratch->symbols = malloc(capacity * sizeof *scratch->symbols);
    scratch->heap = malloc(2 * capacity * sizeof *scratch->heap);
    scratch->tokens = malloc(capacity * sizeof *scratch->tokens);
    scratch->capacity = capacity;
    return scratch->symbols && scratch->heap && scratch->tokens;
}

static int add_symbol(struct esp_bpe_symbol *symbols, int count, int32_t token)
{
    symbols[count] = (struct esp_bpe_symbol){token, count - 1, count + 1};
    return count + 1;
}

/* Adds one symbol for each byte that has a token. Returns the number of symbols. */
static int start_bytes(const struct esp_vocabulary *v, struct esp_bpe_symbol *symbols,
                       int count, const char *text, int length)
{
    for (int i = 0; i < length; i++) {
        const int32_t token = v->byte[(unsigned char)text[i]];
        if (token >= 0)
            count = add_symbol(symbols, count, token);
    }
    return count;
}

/* Makes one symbol of each character that is a token, and one of each byte of the other
 * characters. Returns the number of symbols. */
static int start_characters(const struct esp_vocabulary *v, struct esp_bpe_symbol *symbols,
                            const char *text, int length)
{
    int count = 0;
    for (int i = 0, n; i < length; i += n) {
        n = esp_utf8_sequence(text + i, (size_t)(length - i));
        bool mark = n == 3 && memcmp(text + i, ESP_SPACE_MARK, 3) == 0;
        int32_t token = mark ? esp_vocabulary_find(v, true, " ", 1)
                             : esp_vocabulary_find(v, text[i] != ' ', text + i, (size_t)n);
        count = token < 0 ? start_bytes(v, symbols, count, text + i, n)
                          : add_symbol(symbols, count, token);
    }
    return count;
}

int esp_bpe_encode(const struct esp_bpe *bpe, struct esp_bpe_scratch *scratch, const char *word,
                   int length)
{
    if (!reserve(scratch, (size_t)length))
        return ESP_E_MEMORY;
    if (bpe->ignore_merges) {
        scratch->tokens[0] = esp_vocabulary_find(bpe->vocabulary, true, word, (size_t)length);
        if (scratch->tokens[0] >= 0)
            return 1;
    }
    int symbols = bpe->vocabulary->byte_fallback
                      ? start_characters(bpe->vocabulary, scratch->symbols, word, length)
                      : start_bytes(bpe->vocabulary, scratch->symbols, 0, word, length);
    if (symbols == 0)
        return 0;
    scratch->symbols[symbols - 1].next = -1;
    merge_all(bpe, scratch->symbols, symbols, scratch->heap);
    int count = 0;
    for (int32_t i = 0; i >= 0; i = scratch->symbols[i].next)
        scratch->tokens[count++] = scratch->symbols[i].token;
    return count;
}

void esp_bpe_scratch_free(struct esp_bpe_scratch *scratch)
{
    free(scratch->symbols);
    free(scratch->heap);
    free(scratch->tokens);
    *scratch = (struct esp_bpe_scratch){0};
}
