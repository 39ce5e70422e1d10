/* pretokenize.c - see pretokenize.h.
 *
 * Every step is a split, which has a pattern and a behaviour. The pattern is searched for in
 * each word of the previous step. The behaviour decides what happens to matches and to the text
 * between them. The Hugging Face library calls it `SplitDelimiterBehavior`. Step Digits and
 * GPT-2's pattern are splits, too. ByteLevel must be the last step, because it maps bytes to
 * the byte alphabet, and text must be split into words before that. Metaspace writes spaces
 * like SentencePiece (U+2581), and must be the last step, too.
 */
#include "engine/model/pretokenize.h"

#include <string.h>

#include "engine/model/json.h"
#include "kernels/status.h"
#include "engine/model/vocabulary.h"

enum behavior { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };

static const char *const behavior_names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                             "MergedWithNext", "Contiguous"};

/* ------------------------------------------------------------------ reading */

static int add_split(struct esp_pretokenizer *p, const char *pattern, bool literal,
                     int behavior, bool invert, char *err, size_t errlen)
{
    if (p->count == ESP_SPLIT_LIMIT)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "pre_tokenizer has more than %d steps, which is not supported",
                        ESP_SPLIT_LIMIT);
    struct esp_split *split = &p->splits[p->count];
    char why[256];
    int status = esp_split_pattern_open(&split->pattern, pattern, literal, why, sizeof why);
    if (status < 0)
        return esp_fail(err, errlen, status, "pre_tokenizer: %s", why);
    split->behavior = behavior;
    split->invert = invert;
    p->count++;
    return ESP_OK;
}

/* Returns a flag of `json`. If the flag is missing, returns `fallback`, or an error if
 * `fallback` is negative. */
static int read_flag(const cJSON *json, const char *name, int fallback, char *err,
                     size_t errlen)
{
    const cJSON *flag = esp_json_item(json, name);
    if (!flag && fallback >= 0)
        return fallback;
    if (!cJSON_IsBool(flag))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "pre_tokenizer has a step with \"%s\" that is not true or false", name);
    return cJSON_IsTrue(flag);
}

/* Returns the index of a name in a list, or `count` if the list lacks it. `name` may be
 * NULL. */
static int place_of(const char *name, const char *const *names, int count)
{
    int i = 0;
    while (i < count && !(name && strcmp(name, names[i]) == 0))
        i++;
    return i;
}

static int read_split(struct esp_pretokenizer *p, const cJSON *json, char *err, size_t errlen)
{
    const cJSON *pattern = esp_json_item(json, "pattern");
    const char *regex = esp_json_text(pattern, "Regex");
    const char *string = esp_json_text(pattern, "String");
    if (!regex == !string)
        return esp_fail(
            err, errlen, ESP_E_FORMAT,
            "pre_tokenizer has a Split with a pattern that is neither Regex nor String");
    const char *name = esp_json_text(json, "behavior");
    const int count = sizeof behavior_names / sizeof *behavior_names;
    const int behavior = place_of(name, behavior_names, count);
    if (behavior == count)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "pre_tokenizer has a Split with behavior \"%.40s\"; it must be "
                        "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
                        name ? name : "");
    int invert = read_flag(json, "invert", -1, err, errlen);
    if (invert < 0)
        return invert;
    return add_split(p, regex ? regex : string, string != NULL, behavior, invert, err, errlen);
}

static int read_byte_level(struct esp_pretokenizer *p, const cJSON *json, char *err,
                           size_t errlen)
{
    int prefix = read_flag(json, "add_prefix_space", -1, err, errlen);
    int regex = read_flag(json, "use_regex", true, err, errlen);
    if (prefix < 0 || regex < 0)
        return prefix < 0 ? prefix : regex;
    p->last_step = p->count;
    p->space = " ";
    p->prefix = prefix ? ESP_PREFIX_ALWAYS : ESP_PREFIX_NEVER;
    return regex ? add_split(p, ESP_GPT2_PATTERN, false, ISOLATED, false, err, errlen) : ESP_OK;
}

static int read_metaspace(struct esp_pretokenizer *p, const cJSON *json, char *err,
                          size_t errlen)
{
    static const char *const schemes[] = {"never", "first", "always"};
    const char *mark = esp_json_text(json, "replacement");
    const cJSON *item = esp_json_item(json, "prepend_scheme");
    if (!mark || strcmp(mark, ESP_SPACE_MARK) != 0)
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "pre_tokenizer has a Metaspace with a \"replacement\" other than U+2581");
    /* Older files have add_prefix_space instead. */
    int before = read_flag(json, "add_prefix_space", true, err, errlen);
    int split = read_flag(json, "split", true, err, errlen);
    if (before < 0 || split < 0)
        return before < 0 ? before : split;
    p->last_step = p->count;
    p->space = ESP_SPACE_MARK;
    p->prefix = before ? ESP_PREFIX_ALWAYS : ESP_PREFIX_NEVER;
    if (item) {
        const int i = place_of(cJSON_GetStringValue(item), schemes, 3);
        if (i == 3)
            return esp_fail(
                err, errlen, ESP_E_FORMAT,
                "pre_tokenizer has a Metaspace with a \"prepend_scheme\" other than "
                "never, first or always");
        p->prefix = (enum esp_prefix)i;
    }
    return split ? add_split(p, ESP_SPACE_MARK, true, MERGED_WITH_NEXT, false, err, errlen)
                 : ESP_OK;
}

static int read_step(struct esp_pretokenizer *p, const cJSON *json, bool byte_fallback,
                     char *err, size_t errlen)
{
    const char *type = esp_json_text(json, "type");
    if (!type)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "pre_tokenizer has a step without a \"type\"");
    if (p->last_step >= 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "pre_tokenizer has a step \"%.40s\" after %s, which is not supported",
                        type, byte_fallback ? "Metaspace" : "ByteLevel");
    if (strcmp(type, "ByteLevel") == 0 && byte_fallback)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "pre_tokenizer has a step ByteLevel although model.byte_fallback is "
                        "set, which is not supported");
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(p, json, err, errlen);
    if (strcmp(type, "Metaspace") == 0 && byte_fallback)
        return read_metaspace(p, json, err, errlen);
    if (strcmp(type, "Split") == 0)
        return read_split(p, json, err, errlen);
    if (strcmp(type, "Digits") == 0) {
        int individual = read_flag(json, "individual_digits", -1, err, errlen);
        return individual < 0
                   ? individual
                   : add_split(p, "\\p{N}", false, individual ? ISOLATED : CONTIGUOUS, false,
                               err, errlen);
    }
    if (strcmp(type, "Sequence") != 0)
        return esp_fail(
            err, errlen, ESP_E_UNSUPPORTED,
            "pre_tokenizer \"%.40s\" is not supported: it must be %s, Split, Digits or a "
            "Sequence of these",
            type, byte_fallback ? "Metaspace" : "ByteLevel");
    const cJSON *list = esp_json_item(json, "pretokenizers"), *item;
    if (!cJSON_IsArray(list))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "pre_tokenizer has a Sequence without a list \"pretokenizers\"");
    cJSON_ArrayForEach(item, list)
    {
        int status = read_step(p, item, byte_fallback, err, errlen);
        if (status < 0)
            return status;
    }
    return ESP_OK;
}

int esp_pretokenizer_read(struct esp_pretokenizer *p, const cJSON *json, bool byte_fallback,
                          char *err, size_t errlen)
{
    p->last_step = -1;
    if (json && !cJSON_IsNull(json)) {
        int status = read_step(p, json, byte_fallback, err, errlen);
        if (status < 0)
            return status;
    }
    if (p->last_step < 0 && !byte_fallback)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "pre_tokenizer has no ByteLevel step: only byte-level tokenizers and "
                        "those with byte fallback are supported");
    return ESP_OK;
}

void esp_pretokenizer_free(struct esp_pretokenizer *p)
{
    for (int i = 0; i < p->count; i++)
        esp_split_pattern_close(p->splits[i].pattern);
    p->count = 0;
}

/* ------------------------------------------------------------------ splitting */

/* Splits text[0, length) into matches (tag 1) and the text between them (tag 0), in order. If
 * `invert` is true, the tags are swapped. As in the Rust binding of Oniguruma, an empty match
 * right after a match is ignored. */
static int find_parts(const struct esp_split *split, struct esp_matcher *matcher,
                      const char *text, int32_t length, struct esp_spans *parts)
{
    size_t from = 0, end_of_last = 0, start, end;
    bool any = false;
    int found;
    parts->count = 0;
    while (from <= (size_t)length &&
           (found = esp_matcher_find(matcher, split->pattern, text, (size_t)length, from,
                                     &start, &end)) != 0) {
        if (found < 0)
            return found;
        if (start == end && any && start == end_of_last) {
            for (from++; from < (size_t)length && (text[from] & 0xC0) == 0x80; from++)
                ;
            continue;
        }
        if ((start > end_of_last &&
             !esp_spans_add(parts, (int32_t)end_of_last, (int32_t)start, split->invert)) ||
            !esp_spans_add(parts, (int32_t)start, (int32_t)end, !split->invert))
            return ESP_E_MEMORY;
        from = end_of_last = end;
        any = true;
    }
    if (end_of_last < (size_t)length &&
        !esp_spans_add(parts, (int32_t)end_of_last, length, split->invert))
        return ESP_E_MEMORY;
    return ESP_OK;
}

/* Joins neighbouring parts in place if the behaviour requires it. With step = 1, parts
 * are visited from the first to the last, and a part may be joined to the previous one. With
 * step = -1, they are visited from the last to the first, and a part may be joined to the next
 * one. */
static void join(struct esp_spans *parts, int behavior)
{
    int32_t kept = 0, previous = 0, count = parts->count;
    int32_t step = behavior == MERGED_WITH_NEXT ? -1 : 1;
    struct esp_span *first = step > 0 ? parts->items : parts->items + count - 1;
    for (int32_t i = 0; i < count; i++) {
        struct esp_span part = first[i * step];
        bool joined = behavior == CONTIGUOUS ? part.tag == previous : part.tag && !previous;
        previous = part.tag;
        if (kept > 0 && joined && step > 0)
            first[kept - 1].end = part.end;
        else if (kept > 0 && joined)
            first[(kept - 1) * step].start = part.start;
        else
            first[kept++ * step] = part;
    }
    if (step < 0)
        memmove(parts->items, parts->items + count - kept, (size_t)kept * sizeof *parts->items);
    parts->count = kept;
}

/* Applies one split to all words. */
static int apply(const struct esp_split *split, struct esp_matcher *matcher, const char *text,
                 struct esp_pretokenize_scratch *scratch)
{
    struct esp_spans words = scratch->words, *parts = &scratch->parts;
    scratch->next.count = 0;
    for (int32_t i = 0; i < words.count; i++) {
        struct esp_span word = words.items[i];
        int status =
            find_parts(split, matcher, text + word.start, word.end - word.start, parts);
        if (status < 0)
            return status;
        if (split->behavior != ISOLATED && split->behavior != REMOVED)
            join(parts, split->behavior);
        for (int32_t k = 0; k < parts->count; k++) {
            struct esp_span part = parts->items[k];
            if (part.start == part.end || (part.tag && split->behavior == REMOVED))
                continue;
            if (!esp_spans_add(&scratch->next, word.start + part.start, word.start + part.end,
                               0))
                return ESP_E_MEMORY;
        }
    }
    scratch->words = scratch->next;
    scratch->next = words;
    return ESP_OK;
}

/* Copies the words to scratch->spaced. Writes spaces as the last step (ByteLevel or Metaspace)
 * writes them, and adds a space before words that need one. */
static int space_words(const struct esp_pretokenizer *p, const char *text, bool first,
                       struct esp_pretokenize_scratch *scratch)
{
    size_t size = 0, at = 0, width = strlen(p->space);
    for (int32_t i = 0; i < scratch->words.count; i++)
        size += (size_t)(scratch->words.items[i].end - scratch->words.items[i].start) + 1;
    if (size > INT32_MAX / width)
        return ESP_E_MEMORY;
    if (size * width > scratch->spaced_size) {
        free(scratch->spaced);
        scratch->spaced = malloc(2 * size * width);
        scratch->spaced_size = scratch->spaced ? 2 * size * width : 0;
        if (!scratch->spaced)
            return ESP_E_MEMORY;
    }
    for (int32_t i = 0; i < scratch->words.count; i++) {
        struct esp_span *word = &scratch->words.items[i];
        const char *from = text + word->start, *end = text + word->end;
        bool asked = p->prefix == ESP_PREFIX_ALWAYS ||
                     (p->prefix == ESP_PREFIX_FIRST && first && word->start == 0);
        bool has = *from == ' ' ||
                   ((size_t)(end - from) >= width && memcmp(from, p->space, width) == 0);
        size_t start = at;
        if (asked && !has) {
            memcpy(scratch->spaced + at, p->space, width);
            at += width;
        }
        for (; from < end; from++) {
            if (*from != ' ') {
                scratch->spaced[at++] = *from;
                continue;
            }
            memcpy(scratch->spaced + at, p->space, width);
            at += width;
        }
        *word = (struct esp_span){(int32_t)start, (int32_t)at, 0};
    }
    return ESP_OK;
}

int esp_pretokenize(const struct esp_pretokenizer *p, struct esp_matcher *matcher,
                    const char **text, int32_t length, bool first,
                    struct esp_pretokenize_scratch *scratch)
{
    scratch->words.count = 0;
    int status = esp_spans_add(&scratch->words, 0, length, 0) ? ESP_OK : ESP_E_MEMORY;
    for (int i = 0; i <= p->count && status == ESP_OK; i++) {
        if (i == p->last_step && (p->prefix != ESP_PREFIX_NEVER || *p->space != ' ')) {
            status = space_words(p, *text, first, scratch);
            *text = scratch->spaced;
        }
        if (i < p->count && status == ESP_OK)
            status = apply(&p->splits[i], matcher, *text, scratch);
    }
    return status;
}

void esp_pretokenize_scratch_free(struct esp_pretokenize_scratch *scratch)
{
    esp_spans_free(&scratch->words);
    esp_spans_free(&scratch->next);
    esp_spans_free(&scratch->parts);
    free(scratch->spaced);
}
