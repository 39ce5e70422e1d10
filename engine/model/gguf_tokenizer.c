/* gguf_tokenizer.c - see gguf_tokenizer.h.
 *
 * The patterns are from the tokenizer.json files of the models. The names are from llama.cpp,
 * and so is the list of tokenizers that begin a text with the begin-of-text token. Some of
 * these tokenizer.json files request NFC. It is applied here, although llama.cpp does not apply
 * it, because the models were trained with it.
 */
#include "engine/model/gguf_tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "engine/model/pretokenize.h"
#include "engine/model/vocabulary.h"
#include "kernels/status.h"

/* ------------------------------------------------------------------ splits */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
/* Llama 3 and Qwen 2 split text into words by this pattern. These models differ in how
 * many digits a word can have. */
#define WORDS(digits)                                                                          \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                                      \
                 "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
/* GPT-4o and Tekken split text into words by this pattern: a capital letter begins a new
 * word. */
#define CASES(tail, digits)                                                                    \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" UPPER          \
    "+" LOWER "*" tail "|" digits                                                              \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Lists the known splits. When a GGUF file is written, the first name of a split is used. */
static const struct esp_gguf_split splits[] = {
    {.names = {"gpt-2", "phi-2", "mpt", "jais", "exaone4", "modern-bert"}, .patterns = {""}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"},
     .patterns = {WORDS("\\p{N}{1,3}")},
     .ignore_merges = true,
     .begins = true},
    {.names = {"qwen2", "stablelm2", "deepseek-r1-qwen", "megrez"},
     .patterns = {WORDS("\\p{N}")},
     .compose = true},
    {.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone",
               "minerva-7b"},
     .patterns = {"\\p{N}", ""}},
    {.names = {"olmo"}, .patterns = {""}, .compose = true},
    {.names = {"dbrx", "smaug-bpe", "chatglm-bpe"}, .patterns = {WORDS("\\p{N}{1,3}")}},
    {.names = {"tekken"},
     .patterns = {CASES("", "\\p{N}")},
     .ignore_merges = true,
     .begins = true},
    {.names = {"gpt-4o", "llama4"}, .patterns = {CASES(CONTRACTIONS "?", "\\p{N}{1,3}")}},
    {.names = {"deepseek-v3", "hunyuan-dense"},
     .patterns =
         {"\\p{N}{1,3}",
          "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+",
          "[!\"#$%&'()*+,\\-./"
          ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}"
          "\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"}},
    {.names = {"default"},
     .patterns = {"[\\p{P}\\$\\+<=>\\^~\\|]+", "", "\\p{N}+", "[0-9][0-9][0-9]"}},
};

enum { SPLITS = sizeof splits / sizeof *splits };

const struct esp_gguf_split *esp_gguf_split_named(const char *name)
{
    for (int i = 0; i < SPLITS; i++)
        for (int k = 0; splits[i].names[k]; k++)
            if (strcmp(splits[i].names[k], name) == 0)
                return &splits[i];
    return NULL;
}

static cJSON *typed(const char *type)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "type", type);
    return json;
}

static void add_split(cJSON *list, const char *pattern)
{
    cJSON *step = typed("Split"), *regex = cJSON_AddObjectToObject(step, "pattern");
    cJSON_AddStringToObject(regex, "Regex", pattern);
    cJSON_AddStringToObject(step, "behavior", "Isolated");
    cJSON_AddBoolToObject(step, "invert", false);
    cJSON_AddItemToArray(list, step);
}

/* Makes the pre_tokenizer. If GPT-2's pattern is the last one, it is included in ByteLevel. If
 * other patterns follow GPT-2's pattern, it is written as a separate Split. */
static cJSON *make_splits(const struct esp_gguf_split *split)
{
    cJSON *sequence = typed("Sequence"), *end = typed("ByteLevel");
    cJSON *list = cJSON_AddArrayToObject(sequence, "pretokenizers");
    bool last = false;
    for (int i = 0; split->patterns[i]; i++) {
        last = !*split->patterns[i] && !split->patterns[i + 1];
        if (!last)
            add_split(list, *split->patterns[i] ? split->patterns[i] : ESP_GPT2_PATTERN);
    }
    cJSON_AddBoolToObject(end, "add_prefix_space", false);
    cJSON_AddBoolToObject(end, "use_regex", last);
    cJSON_AddItemToArray(list, end);
    return sequence;
}

/* ------------------------------------------------------------------ names for splits */

/* Returns the member with this name if it is a string, otherwise "". */
static const char *text_of(const cJSON *json, const char *name)
{
    const char *text = esp_json_text(json, name);
    return text ? text : "";
}

/* Lists the patterns of a pre_tokenizer; "" stands for the pattern of ByteLevel. Returns
 * their number, or -1 if the pre_tokenizer has any other step. */
static int list_patterns(const cJSON *step, const char *patterns[8], int count)
{
    const char *type = text_of(step, "type");
    const cJSON *item;
    if (strcmp(type, "Sequence") == 0) {
        cJSON_ArrayForEach(item, esp_json_item(step, "pretokenizers"))
        {
            count = count < 0 ? -1 : list_patterns(item, patterns, count);
        }
        return count;
    }
    const cJSON *pattern = esp_json_item(step, "pattern");
    if (strcmp(type, "ByteLevel") == 0) {
        if (esp_json_true(step, "add_prefix_space"))
            return -1;
        if (cJSON_IsFalse(esp_json_item(step, "use_regex")))
            return count;
        patterns[count] = "";
    } else if (strcmp(type, "Digits") == 0 && esp_json_true(step, "individual_digits")) {
        patterns[count] = "\\p{N}";
    } else if (strcmp(type, "Split") == 0 && *text_of(pattern, "Regex") &&
               strcmp(text_of(step, "behavior"), "Isolated") == 0) {
        patterns[count] = text_of(pattern, "Regex");
    } else {
        return -1;
    }
    return count < 7 ? count + 1 : -1;
}

const char *esp_gguf_split_name(const cJSON *tokenizer)
{
    const char *patterns[8] = {NULL};
    const cJSON *model = esp_json_item(tokenizer, "model");
    const cJSON *normalizer = esp_json_item(tokenizer, "normalizer");
    bool ignore = esp_json_true(model, "ignore_merges");
    bool compose = strcmp(text_of(normalizer, "type"), "NFC") == 0;
    int count = list_patterns(esp_json_item(tokenizer, "pre_tokenizer"), patterns, 0);
    for (int i = 0; i < SPLITS; i++) {
        int same = 0;
        while (same < count && splits[i].patterns[same] &&
               strcmp(splits[i].patterns[same], patterns[same]) == 0)
            same++;
        if (same == count && !splits[i].patterns[same] && splits[i].ignore_merges == ignore &&
            splits[i].compose == compose)
            return splits[i].names[0];
    }
    return NULL;
}

/* ------------------------------------------------------------------ tokens */

struct reader {
    const struct esp_gguf *gguf;
    const struct esp_gguf_value *tokens, *types, *scores, *merges;
    cJSON *json, *model, *vocab, *added;
    bool fallback; /* true: BPE with byte fallback (SentencePiece) */
    char *err;
    size_t errlen;
};

static int wrong(const struct reader *r, const char *what)
{
    return esp_fail(r->err, r->errlen, ESP_E_FORMAT, "%s: %s", r->gguf->path, what);
}

static bool flag(const struct reader *r, const char *key, bool otherwise)
{
    return esp_gguf_number_of(r->gguf, key, otherwise) == 1;
}

static void add_added(struct reader *r, const char *content, double id, bool special)
{
    cJSON *token = cJSON_Parse("{\"single_word\": false, \"lstrip\": false, "
                               "\"rstrip\": false, \"normalized\": false}");
    cJSON_AddNumberToObject(token, "id", id);
    cJSON_AddStringToObject(token, "content", content);
    cJSON_AddBoolToObject(token, "special", special);
    cJSON_AddItemToArray(r->added, token);
}

/* Returns whether the token is padding. Converters add padding tokens to a vocabulary; these
 * tokens do not represent any text. */
static bool is_padding(const char *text, uint64_t id)
{
    char padding[32];
    snprintf(padding, sizeof padding, "[PAD%llu]", (unsigned long long)id);
    return strcmp(text, padding) == 0;
}

static void add_token(struct reader *r, const char *text, uint64_t id)
{
    double type = r->types ? esp_gguf_number(r->types, id) : ESP_GGUF_NORMAL;
    bool special = type == ESP_GGUF_CONTROL || type == ESP_GGUF_UNKNOWN;
    if (type == ESP_GGUF_UNUSED && is_padding(text, id))
        return;
    if (special || type == ESP_GGUF_USER_DEFINED)
        add_added(r, text, (double)id, special);
    if (r->fallback || !(special || type == ESP_GGUF_USER_DEFINED))
        cJSON_AddNumberToObject(r->vocab, text, (double)id);
}

static int read_tokens(struct reader *r)
{
    const unsigned char *at = NULL;
    struct esp_gguf_text text;
    for (uint64_t id = 0; esp_gguf_next_text(r->tokens, &at, &text); id++) {
        if (text.length == 0)
            continue; /* no text is ever encoded as this token */
        char *copy = esp_gguf_copy_plain(text);
        if (!copy)
            return esp_fail(r->err, r->errlen, ESP_E_FORMAT, "%s: token %llu is not UTF-8 text",
                            r->gguf->path, (unsigned long long)id);
        add_token(r, copy, id);
        free(copy);
    }
    return 0;
}

static int read_merges(struct reader *r)
{
    const unsigned char *at = NULL;
    struct esp_gguf_text text;
    cJSON *list = cJSON_AddArrayToObject(r->model, "merges");
    while (esp_gguf_next_text(r->merges, &at, &text)) {
        char *copy = esp_gguf_copy_plain(text);
        if (!copy)
            return wrong(r, "an entry of tokenizer.ggml.merges is not UTF-8 text");
        cJSON_AddItemToArray(list, cJSON_CreateString(copy));
        free(copy);
    }
    return 0;
}

static int read_scores(struct reader *r)
{
    cJSON *list = cJSON_AddArrayToObject(r->model, "scores");
    for (uint64_t id = 0; id < r->scores->count; id++) {
        double score = esp_gguf_number(r->scores, id);
        if (isnan(score))
            return wrong(r, "an entry of tokenizer.ggml.scores is not a number");
        cJSON_AddItemToArray(list, cJSON_CreateNumber(score));
    }
    return 0;
}

/* ------------------------------------------------------------------ the other members */

static int set_splits(struct reader *r)
{
    char *name = esp_gguf_copy_text(esp_gguf_find(r->gguf, "tokenizer.ggml.pre"));
    const struct esp_gguf_split *split = esp_gguf_split_named(name ? name : "default");
    int status = 0;
    if (!split)
        status = esp_fail(r->err, r->errlen, ESP_E_UNSUPPORTED,
                          "%s: tokenizer.ggml.pre is %.40s; this way of splitting text is not "
                          "supported",
                          r->gguf->path, name);
    free(name);
    if (status < 0)
        return status;
    cJSON_AddItemToObject(r->json, "pre_tokenizer", make_splits(split));
    if (split->compose)
        cJSON_AddItemToObject(r->json, "normalizer", typed("NFC"));
    cJSON_AddBoolToObject(r->model, "ignore_merges", split->ignore_merges);
    return split->begins;
}

/* Makes the normalizer. SentencePiece writes a space as U+2581. It also puts a space before a
 * text, but the file can turn this off. */
static void set_spaces(struct reader *r)
{
    static const char replace[] = "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "
                                  "\"content\": \"" ESP_SPACE_MARK "\"}";
    cJSON *sequence = typed("Sequence");
    cJSON *list = cJSON_AddArrayToObject(sequence, "normalizers");
    if (flag(r, "tokenizer.ggml.add_space_prefix", true)) {
        cJSON *prepend = typed("Prepend");
        cJSON_AddStringToObject(prepend, "prepend", ESP_SPACE_MARK);
        cJSON_AddItemToArray(list, prepend);
    }
    cJSON_AddItemToArray(list, cJSON_Parse(replace));
    cJSON_AddItemToObject(r->json, "normalizer", sequence);
}

/* Makes the post_processor, which adds the token that begins every text. */
static void set_begin(struct reader *r)
{
    const double bos =
        esp_gguf_number_of(r->gguf, "tokenizer.ggml.bos_token_id", r->fallback ? 1 : -1);
    const unsigned char *at = NULL;
    struct esp_gguf_text text = {NULL, 0};
    for (double id = 0; id <= bos; id++)
        if (!esp_gguf_next_text(r->tokens, &at, &text))
            return;
    char *content = text.length ? esp_gguf_copy_plain(text) : NULL;
    if (content) {
        cJSON *processor = typed("TemplateProcessing"), *part = cJSON_CreateObject();
        cJSON_AddStringToObject(cJSON_AddObjectToObject(part, "SpecialToken"), "id", content);
        cJSON_AddItemToArray(cJSON_AddArrayToObject(processor, "single"), part);
        cJSON_AddItemToObject(r->json, "post_processor", processor);
    }
    free(content);
}

static int read_all(struct reader *r, const char *kind)
{
    const struct esp_gguf *g = r->gguf;
    int begins = r->fallback = strcmp(kind, "llama") == 0, status = 0;
    r->tokens = esp_gguf_find(g, "tokenizer.ggml.tokens");
    r->types = esp_gguf_find(g, "tokenizer.ggml.token_type");
    r->scores = esp_gguf_find(g, "tokenizer.ggml.scores");
    r->merges = esp_gguf_find(g, "tokenizer.ggml.merges");
    if (!r->fallback && strcmp(kind, "gpt2") != 0)
        return esp_fail(r->err, r->errlen, ESP_E_UNSUPPORTED,
                        "%s: tokenizer.ggml.model is %.40s; only gpt2 and llama are supported",
                        g->path, kind);
    if (!r->tokens || !r->tokens->array || r->tokens->kind != ESP_GGUF_TEXT)
        return wrong(r, "tokenizer.ggml.tokens is missing or not a list of texts");
    if (r->types && r->types->count != r->tokens->count)
        return wrong(r, "tokenizer.ggml.token_type and tokens differ in length");
    if (r->fallback && (!r->scores || r->scores->count != r->tokens->count))
        return wrong(r, "tokenizer.ggml.scores is missing or differs from tokens in length");
    if (!r->fallback && (!r->merges || r->merges->kind != ESP_GGUF_TEXT))
        return wrong(r, "tokenizer.ggml.merges is missing or not a list of texts");
    cJSON_AddStringToObject(r->model, "type", "BPE");
    cJSON_AddBoolToObject(r->model, "byte_fallback", r->fallback);
    r->vocab = cJSON_AddObjectToObject(r->model, "vocab");
    r->added = cJSON_AddArrayToObject(r->json, "added_tokens");
    if (r->fallback)
        set_spaces(r);
    else
        begins = set_splits(r);
    if (begins >= 0)
        status = read_tokens(r);
    if (begins < 0 || status < 0)
        return begins < 0 ? begins : status;
    if (flag(r, "tokenizer.ggml.add_bos_token", begins))
        set_begin(r);
    return r->fallback ? read_scores(r) : read_merges(r);
}

int esp_gguf_tokenizer(cJSON **json, const char *path, char *err, size_t errlen)
{
    struct esp_gguf gguf;
    struct esp_stored_set *set = calloc(1, sizeof *set);
    char *kind = NULL;
    *json = NULL;
    if (!set)
        return esp_no_memory(path, err, errlen);
    int status = esp_gguf_open_first(&gguf, set, path, err, errlen);
    if (status == 0 &&
        !(kind = esp_gguf_copy_text(esp_gguf_find(&gguf, "tokenizer.ggml.model"))))
        status = esp_fail(err, errlen, ESP_E_FORMAT, "%s has no tokenizer", path);
    if (status == 0) {
        struct reader r = {
            .gguf = &gguf, .json = cJSON_CreateObject(), .err = err, .errlen = errlen};
        r.model = cJSON_AddObjectToObject(r.json, "model");
        status = read_all(&r, kind);
        if (status < 0)
            cJSON_Delete(r.json);
        else
            *json = r.json;
    }
    free(kind);
    esp_gguf_close(&gguf);
    esp_stored_close(set);
    return status;
}
