/* translation.c - compares two vocabularies; see translation.h.
 *
 * Both files are untrusted. A token of the target may have no bytes, or bytes for which the
 * draft has no tokens. The draft then reads the token as the end of a text. Two tokens are
 * shared only if each is the partner of the other. Therefore no token of the draft is listed
 * twice, even if a file has the same bytes twice.
 */
#include "engine/model/translation.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

/* The text on which `text_share` is measured: prose, numbers and code. */
static const char sample[] =
    "The old harbour was quiet that morning, and only the gulls seemed to have noticed that "
    "winter was over. \"You said there would be ships,\" she reminded him. He didn't answer at "
    "once; he was counting the chimneys across the water, as he had done every day since 1987. "
    "In 2024 about 62.5 percent of the population lived within 100 kilometres of the coast, "
    "according to the most recent report of the national statistics office.\n\n"
    "for (int i = 0; i < count; i++) {\n    total += values[i] * weights[i];\n    if (total > "
    "limit)\n        return -1;\n}\n\n"
    "def average(values):\n    return sum(values) / len(values) if values else 0.0\n";

static int index_of(const int32_t *list, int count, int32_t token)
{
    int i = 0;
    while (i < count && list[i] != token)
        i++;
    return i < count ? i : -1;
}

static bool is_end(const struct esp_language *l, int32_t token)
{
    return index_of(l->end, l->end_count, token) >= 0;
}

static bool is_control(const struct esp_language *l, int32_t token)
{
    return esp_tokenizer_is_special(l->tokenizer, token) || is_end(l, token) ||
           token == esp_tokenizer_prefix(l->tokenizer);
}

/* Returns the token of `to` that corresponds to `token`, which ends a text of `from`. `named`
 * is the token of `to` with the same name, or -1. If `named` ends a text, returns it. Otherwise
 * returns the token at the same index in the list of tokens that end a text. */
static int32_t end_partner(const struct esp_language *from, const struct esp_language *to,
                           int32_t token, int32_t named)
{
    const int at = index_of(from->end, from->end_count, token);
    if (named >= 0 && is_end(to, named))
        return named;
    return to->end_count == 0 ? -1 : to->end[at < to->end_count ? at : to->end_count - 1];
}

static int32_t control_partner(const struct esp_language *from, const struct esp_language *to,
                               int32_t token, const char *bytes, size_t length)
{
    const int32_t named = bytes ? esp_tokenizer_find(to->tokenizer, bytes, length) : -1;
    if (is_end(from, token))
        return end_partner(from, to, token, named);
    if (token == esp_tokenizer_prefix(from->tokenizer))
        return esp_tokenizer_prefix(to->tokenizer);
    return named >= 0 && esp_tokenizer_is_special(to->tokenizer, named) && !is_end(to, named)
               ? named
               : -1;
}

/* Returns the token of `to` that is the same as `token` of `from`, or -1 if there is none. */
static int32_t partner(const struct esp_language *from, const struct esp_language *to,
                       int32_t token)
{
    size_t length = 0;
    const char *bytes = esp_tokenizer_bytes(from->tokenizer, token, &length);
    if (is_control(from, token))
        return control_partner(from, to, token, bytes, length);
    if (!bytes || length == 0)
        return -1;
    const int32_t other = esp_tokenizer_find_plain(to->tokenizer, bytes, length);
    return other >= 0 && !is_control(to, other) ? other : -1;
}

/* Returns whether the draft may propose this token. */
static bool is_shared(const struct esp_language *target, const struct esp_language *draft,
                      int32_t token, int32_t other)
{
    const bool begins =
        token == esp_tokenizer_prefix(target->tokenizer) && !is_end(target, token);
    return other >= 0 && !begins && partner(draft, target, other) == token;
}

/* Writes the tokens that the draft reads for a target token without a partner. Returns their
 * number, or a negative status. */
static int spell(const struct esp_language *target, const struct esp_language *draft,
                 int32_t token, int32_t spelled[ESP_SPELLED_MOST])
{
    enum { MOST = 4096 };
    int32_t tokens[MOST];
    size_t length = 0;
    const char *bytes = esp_tokenizer_bytes(target->tokenizer, token, &length);
    const size_t skipped = length > MOST ? length - MOST : 0;
    const int count = bytes && length > 0
                          ? esp_tokenizer_spell(draft->tokenizer, bytes + skipped,
                                                length - skipped, tokens, MOST)
                          : 0;
    const int kept = count < ESP_SPELLED_MOST ? count : ESP_SPELLED_MOST;
    if (count < 0)
        return count;
    memcpy(spelled, tokens + count - kept, (size_t)kept * sizeof *spelled);
    if (kept > 0)
        return kept;
    const int32_t prefix = esp_tokenizer_prefix(draft->tokenizer);
    spelled[0] = draft->end_count > 0 ? draft->end[0] : prefix >= 0 ? prefix : 0;
    return 1;
}

/* Writes what the draft reads for a token, and lists the token if it is shared. */
static int add_token(struct esp_translation *t, const struct esp_language *target,
                     const struct esp_language *draft, int32_t token)
{
    const int32_t other = partner(target, draft, token);
    int32_t *to = t->spelled + t->begin[token];
    int count = 1;
    if (other >= 0)
        to[0] = other;
    else
        count = spell(target, draft, token, to);
    if (is_shared(target, draft, token, other)) {
        t->output_token[t->shared] = token;
        t->output_row[t->shared++] = other;
    }
    t->begin[token + 1] = t->begin[token] + count;
    return count < 0 ? count : (int)ESP_OK;
}

/* Makes room for one more spelling of maximum length. Returns false if there is no memory. */
static bool reserve(struct esp_translation *t, size_t *room, int32_t used)
{
    if (*room >= (size_t)used + ESP_SPELLED_MOST)
        return true;
    const size_t more = *room + *room / 2 + ESP_SPELLED_MOST;
    int32_t *grown = realloc(t->spelled, more * sizeof *grown);
    if (!grown)
        return false;
    t->spelled = grown;
    *room = more;
    return true;
}

static int measure_share(struct esp_translation *t, const struct esp_language *target)
{
    int32_t tokens[sizeof sample];
    const int count = esp_tokenizer_encode(target->tokenizer, sample, sizeof sample - 1, tokens,
                                           (int)(sizeof sample));
    const int most = count < (int)sizeof sample ? count : (int)sizeof sample;
    int shared = 0;
    for (int i = 0; i < most; i++) {
        int low = 0, high = t->shared;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (t->output_token[middle] < tokens[i])
                low = middle + 1;
            else
                high = middle;
        }
        shared += low < t->shared && t->output_token[low] == tokens[i];
    }
    t->text_share = most > 0 ? (double)shared / most : 0;
    return count < 0 ? count : (int)ESP_OK;
}

int esp_translation_open(struct esp_translation *t, const struct esp_language *target,
                         const struct esp_language *draft)
{
    const size_t tokens = (size_t)target->vocabulary;
    size_t room = 0;
    int status = ESP_OK;
    *t = (struct esp_translation){.tokens = target->vocabulary, .lead = -1};
    if (esp_tokenizer_prefix(target->tokenizer) < 0)
        t->lead = esp_tokenizer_prefix(draft->tokenizer);
    t->begin = calloc(tokens + 1, sizeof *t->begin);
    t->output_token = malloc(tokens * sizeof *t->output_token);
    t->output_row = malloc(tokens * sizeof *t->output_row);
    if (!t->begin || !t->output_token || !t->output_row)
        return ESP_E_MEMORY;
    for (int32_t token = 0; token < t->tokens && status == ESP_OK; token++)
        status = reserve(t, &room, t->begin[token]) ? add_token(t, target, draft, token)
                                                    : (int)ESP_E_MEMORY;
    return status < 0 ? status : measure_share(t, target);
}

void esp_translation_free(struct esp_translation *t)
{
    free(t->begin);
    free(t->spelled);
    free(t->output_token);
    free(t->output_row);
    *t = (struct esp_translation){.lead = -1};
}

int esp_translation_spell(const struct esp_translation *t, int32_t token,
                          const int32_t **spelled)
{
    *spelled = t->spelled + t->begin[token];
    return t->begin[token + 1] - t->begin[token];
}
