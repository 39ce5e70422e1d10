/* tokenizer.c - compares the tokenizer with the Hugging Face library for texts of any bytes.
 * Also tests how fast it is.
 *
 * The expected ids come from tests/vectors/make_tokenizer_vectors.py.
 */
#include "engine/model/tokenizer.h"

#include <cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/check.h"
#include "tests/folder.h"
#include "engine/model/split_pattern.h"
#include "engine/support/utf8_stream.h"

/* ------------------------------------------------------------------ helpers */

static const char *const names[] = {"neox", "llama3", "qwen2", "llama2", "builtin"};
enum { CONFIGURATIONS = sizeof names / sizeof *names };

static const char *folder_of(const char *name)
{
    char relative[64];
    snprintf(relative, sizeof relative,
             strcmp(name, "builtin") == 0 ? "../engine/models/fairytale-target"
                                          : "vectors/tokenizers/%s",
             name);
    return check_path(relative);
}

static struct esp_tokenizer *open_folder(const char *folder)
{
    struct esp_tokenizer *tokenizer;
    char err[512] = "";
    int status = esp_tokenizer_open(&tokenizer, folder, err, sizeof err);
    CHECK(status == 0, "%d: %s", status, err);
    return tokenizer;
}

static struct esp_tokenizer *open_named(const char *name)
{
    return open_folder(folder_of(name));
}

/* Copies the folder `name` to the temporary folder. */
static void copy_folder(const char *name)
{
    char beside_logits[64];
    snprintf(beside_logits, sizeof beside_logits, "../tokenizers/%s", name);
    folder_copy(beside_logits);
}

/* Returns the next line of a JSON Lines text, or NULL. */
static cJSON *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = '\0';
    *text = end + 1;
    cJSON *json = cJSON_Parse(line);
    CHECK(json, "bad line: %.100s", line);
    return json;
}

static int32_t *encode(const struct esp_tokenizer *tokenizer, const char *text, size_t length,
                       int *count)
{
    *count = esp_tokenizer_encode(tokenizer, text, length, NULL, 0);
    CHECK(*count >= 0, "status %d for %.100s", *count, text);
    int32_t *tokens = malloc(((size_t)*count + 1) * sizeof *tokens);
    int again = esp_tokenizer_encode(tokenizer, text, length, tokens, *count);
    CHECK(again == *count, "%d tokens, then %d", *count, again);
    return tokens;
}

static char *decode(const struct esp_tokenizer *tokenizer, const int32_t *tokens, int count,
                    size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    for (int i = 0; i < count; i++) {
        size_t n;
        const char *bytes = esp_tokenizer_bytes(tokenizer, tokens[i], &n);
        CHECK(bytes, "token %d has no bytes", tokens[i]);
        fwrite(bytes, 1, n, out);
    }
    fclose(out);
    return text;
}

static char *from_hex(const char *hex, size_t *length)
{
    *length = strlen(hex) / 2;
    char *bytes = malloc(*length + 1);
    for (size_t i = 0; i < *length; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        bytes[i] = (char)byte;
    }
    bytes[*length] = '\0';
    return bytes;
}

static char *copy_text(const char *text, size_t *length)
{
    *length = strlen(text);
    return strdup(text);
}

static bool same_ids(const cJSON *ids, const int32_t *tokens, int count)
{
    int i = 0;
    const cJSON *id;
    cJSON_ArrayForEach(id, ids)
    {
        if (i == count || tokens[i] != (int32_t)id->valuedouble)
            return false;
        i++;
    }
    return i == count;
}

/* ------------------------------------------------------------------ same ids as the library */

static void check_case(const struct esp_tokenizer *tokenizer, const char *name,
                       const cJSON *line)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(line, "text"));
    const char *hex = cJSON_GetStringValue(cJSON_GetObjectItem(line, "hex"));
    const cJSON *out = cJSON_GetObjectItem(cJSON_GetObjectItem(line, "out"), name);
    size_t length, want_length, got_length;
    int count;
    char *input = text ? copy_text(text, &length) : from_hex(hex, &length);
    int32_t *tokens = encode(tokenizer, input, length, &count);
    CHECK(same_ids(cJSON_GetObjectItem(line, name), tokens, count), "%s: other ids for %.200s",
          name, text ? text : hex);
    char *want = out ? from_hex(out->valuestring, &want_length) : NULL;
    char *got = decode(tokenizer, tokens, count, &got_length);
    CHECK(want ? got_length == want_length && memcmp(got, want, got_length) == 0
               : got_length == length && memcmp(got, input, length) == 0,
          "%s: encoding and decoding changes %.200s", name, text ? text : hex);
    free(got);
    free(want);
    free(tokens);
    free(input);
}

TEST(ids_and_round_trip_match_the_library)
{
    struct esp_tokenizer *tokenizers[CONFIGURATIONS];
    for (int i = 0; i < CONFIGURATIONS; i++)
        tokenizers[i] = open_named(names[i]);
    char *file = folder_read(check_path("vectors/tokenizers/cases.jsonl")).data, *rest = file;
    int cases = 0;
    for (cJSON *line; (line = next_line(&rest)); cases++) {
        for (int i = 0; i < CONFIGURATIONS; i++)
            check_case(tokenizers[i], names[i], line);
        cJSON_Delete(line);
    }
    CHECK(cases >= 600, "only %d cases", cases);
    for (int i = 0; i < CONFIGURATIONS; i++)
        esp_tokenizer_close(tokenizers[i]);
    free(file);
}

/* The variants have different pre-tokenizers, behaviours, patterns, normalizers and kinds of
 * added tokens. */
TEST(variants_match_the_library)
{
    char *file = folder_read(check_path("vectors/tokenizers/variants.jsonl")).data,
         *rest = file;
    cJSON *head = next_line(&rest), *texts = cJSON_GetObjectItem(head, "texts");
    int variants = 0;
    for (cJSON *line; (line = next_line(&rest)); variants++) {
        cJSON *patch = cJSON_GetObjectItem(line, "patch"), *change;
        char *shown = cJSON_PrintUnformatted(patch);
        copy_folder(cJSON_GetObjectItem(line, "base")->valuestring);
        cJSON_ArrayForEach(change, patch)
        {
            char *value = cJSON_PrintUnformatted(change);
            folder_edit("tokenizer.json", change->string, NULL, value);
            free(value);
        }
        struct esp_tokenizer *tokenizer = open_folder(folder_path());
        for (int i = 0; i < cJSON_GetArraySize(texts); i++) {
            const char *text = cJSON_GetArrayItem(texts, i)->valuestring;
            int count;
            int32_t *tokens = encode(tokenizer, text, strlen(text), &count);
            CHECK(same_ids(cJSON_GetArrayItem(cJSON_GetObjectItem(line, "ids"), i), tokens,
                           count),
                  "%s: other ids for \"%s\"", shown, text);
            free(tokens);
        }
        esp_tokenizer_close(tokenizer);
        free(shown);
        cJSON_Delete(line);
    }
    CHECK(variants >= 90, "only %d variants", variants);
    cJSON_Delete(head);
    free(file);
}

/* ------------------------------------------------------------------ any bytes */

TEST(random_bytes_survive_encoding_and_decoding)
{
    static const char *const pieces[] = {
        " ",
        "\n",
        "  ",
        "the",
        " king",
        "'s",
        "<|endoftext|>",
        "<|im_end|>",
        "12",
        "\xC3",
        "\xE2\x82",
        "\xF0\x9F\x98\x80",
        "\xCC",
        "\xE6\xBC\xA2",
        "\xED\xA0\x80",
    };
    const char *const exact[] = {"llama3", "builtin"};
    unsigned long long state = 1;
    for (int which = 0; which < 2; which++) {
        struct esp_tokenizer *tokenizer = open_named(exact[which]);
        for (int round = 0; round < 10000; round++) {
            char text[256];
            size_t length = 0, got_length;
            for (int i = (int)(check_uniform(&state) * 24); i > 0; i--) {
                if (check_uniform(&state) < 0.5) {
                    text[length++] = (char)(unsigned char)(check_uniform(&state) * 256);
                    continue;
                }
                const char *piece = pieces[(int)(check_uniform(&state) * 15)];
                memcpy(text + length, piece, strlen(piece));
                length += strlen(piece);
            }
            int count;
            int32_t *tokens = encode(tokenizer, text, length, &count);
            char *got = decode(tokenizer, tokens, count, &got_length);
            CHECK(got_length == length && memcmp(got, text, length) == 0, "round %d", round);
            free(got);
            free(tokens);
        }
        esp_tokenizer_close(tokenizer);
    }
}

/* Returns the processor time that this program has used. Other programs do not affect this
 * time. */
static double seconds_used(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* If any step of the tokenizer took quadratic time, one of these words would take hours. */
TEST(long_words_do_not_take_quadratic_time)
{
    static const char *const units[] = {"a", " ", "=", "ab", "\n", "9", "\xC3\xA9", "\x80"};
    size_t length = check_quick() ? 1 << 17 : 1 << 20;
    char *text = malloc(length);
    int32_t *tokens = malloc((length + 1) * sizeof *tokens);
    for (int i = 0; i < CONFIGURATIONS; i++) {
        struct esp_tokenizer *tokenizer = open_named(names[i]);
        bool prepends = strcmp(names[i], "llama2") == 0;
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            size_t n = strlen(units[u]), got_length;
            for (size_t at = 0; at < length; at++)
                text[at] = units[u][at % n];
            const double start = seconds_used();
            int count = esp_tokenizer_encode(tokenizer, text, length, tokens, (int)length + 1);
            const double seconds = seconds_used() - start;
            CHECK(seconds < 20, "%s: %.1f s for \"%s\"", names[i], seconds, units[u]);
            char *got = decode(tokenizer, tokens, count, &got_length);
            size_t space = prepends && *got == ' ';
            CHECK(got_length == length + space && memcmp(got + space, text, length) == 0);
            free(got);
        }
        esp_tokenizer_close(tokenizer);
    }
    free(tokens);
    free(text);
}

struct worker {
    const struct esp_tokenizer *tokenizer;
    const char *text;
    size_t length;
    const int32_t *want;
    int count, wrong;
};

static void *encode_again_and_again(void *data)
{
    struct worker *worker = data;
    int32_t *tokens = calloc((size_t)worker->count, sizeof *tokens);
    for (int i = 0; i < 20; i++) {
        int count = esp_tokenizer_encode(worker->tokenizer, worker->text, worker->length,
                                         tokens, worker->count);
        worker->wrong += count != worker->count ||
                         memcmp(tokens, worker->want, (size_t)count * sizeof *tokens) != 0;
    }
    free(tokens);
    return NULL;
}

TEST(threads_may_share_a_tokenizer)
{
    struct esp_tokenizer *tokenizer = open_named("qwen2");
    struct folder_bytes text = folder_read(check_path("vectors/tokenizers/cases.jsonl"));
    struct worker workers[4];
    pthread_t threads[4];
    int count, wrong = 0;
    int32_t *want = encode(tokenizer, text.data, 20000, &count);
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){tokenizer, text.data, 20000, want, count, 0};
        CHECK(pthread_create(&threads[i], NULL, encode_again_and_again, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        wrong += workers[i].wrong;
    }
    CHECK(wrong == 0, "%d of 80 differ", wrong);
    free(want);
    free(text.data);
    esp_tokenizer_close(tokenizer);
}

/* The search for a match has several steps. Each step tries some start positions. No match may
 * be lost or moved because it lies between two steps. */
TEST(matches_are_found_at_any_distance)
{
    static const char *const units[] = {"a", "\xC3\xA9", "\xE6\xBC\xA2", "\xF0\x9F\x98\x80"};
    struct esp_split_pattern *pattern = NULL;
    char err[256] = "", text[4 * 1100 + 8];
    CHECK(esp_split_pattern_open(&pattern, "\\p{N}+", false, err, sizeof err) == 0, "%s", err);
    struct esp_matcher *matcher = esp_matcher_open(sizeof text);
    for (int unit = 0; unit < 4; unit++) {
        size_t size = strlen(units[unit]), start, end;
        for (size_t count = 0; count < 1100; count++) {
            for (size_t i = 0; i < count; i++)
                memcpy(text + i * size, units[unit], size);
            memcpy(text + count * size, "12.", 3);
            size_t length = count * size + 3;
            int found = esp_matcher_find(matcher, pattern, text, length, 0, &start, &end);
            CHECK(found == 1 && start == count * size && end == start + 2, "%zu of %d", count,
                  unit);
            CHECK(esp_matcher_find(matcher, pattern, text, length, end, &start, &end) == 0);
        }
    }
    esp_matcher_close(matcher);
    esp_split_pattern_close(pattern);
}

TEST(no_more_than_capacity_is_written)
{
    struct esp_tokenizer *tokenizer = open_named("builtin");
    int32_t tokens[4] = {-7, -7, -7, -7};
    int count = esp_tokenizer_encode(tokenizer, "One two three four five six", 27, tokens, 3);
    CHECK(count > 4 && tokens[2] >= 0 && tokens[3] == -7, "%d tokens", count);
    CHECK(esp_tokenizer_encode(tokenizer, NULL, 0, NULL, 0) == 0);
    esp_tokenizer_close(tokenizer);
}

/* ------------------------------------------------------------------ tokens */

TEST(tokens_are_found_by_their_bytes)
{
    struct esp_tokenizer *tokenizer = open_named("builtin");
    size_t length;
    const char *bytes;
    CHECK(esp_tokenizer_size(tokenizer) == 4096);
    CHECK(esp_tokenizer_find(tokenizer, "<|endoftext|>", 13) == 0);
    CHECK(esp_tokenizer_is_special(tokenizer, 0) && !esp_tokenizer_is_special(tokenizer, 1));
    CHECK(!esp_tokenizer_is_special(tokenizer, -1) &&
          !esp_tokenizer_is_special(tokenizer, 4096));
    CHECK(!esp_tokenizer_bytes(tokenizer, -1, &length));
    CHECK(!esp_tokenizer_bytes(tokenizer, 4096, &length));
    CHECK(esp_tokenizer_find(tokenizer, "no such token", 13) == -1);
    CHECK(esp_tokenizer_find(tokenizer, "", 0) == -1);
    for (int32_t id = 0; id < 4096; id++) {
        bytes = esp_tokenizer_bytes(tokenizer, id, &length);
        CHECK(bytes && esp_tokenizer_find(tokenizer, bytes, length) == id, "token %d", id);
    }
    for (int byte = 0; byte < 256; byte++) {
        char text = (char)byte;
        CHECK(esp_tokenizer_find(tokenizer, &text, 1) > 0, "byte %d", byte);
    }
    esp_tokenizer_close(tokenizer);
}

TEST(the_token_before_a_text_is_reported)
{
    for (int i = 0; i < CONFIGURATIONS; i++) {
        struct esp_tokenizer *tokenizer = open_named(names[i]);
        int32_t want = strcmp(names[i], "llama3") == 0
                           ? esp_tokenizer_find(tokenizer, "<|begin_of_text|>", 17)
                       : strcmp(names[i], "llama2") == 0 ? 1
                                                         : -1;
        CHECK(esp_tokenizer_prefix(tokenizer) == want, "%s", names[i]);
        esp_tokenizer_close(tokenizer);
    }
}

TEST(different_vocabularies_have_different_hashes)
{
    uint64_t hashes[CONFIGURATIONS];
    for (int i = 0; i < CONFIGURATIONS; i++) {
        struct esp_tokenizer *tokenizer = open_named(names[i]);
        hashes[i] = esp_tokenizer_hash(tokenizer);
        esp_tokenizer_close(tokenizer);
        for (int j = 0; j < i; j++)
            CHECK(hashes[i] != hashes[j]);
    }
    copy_folder("qwen2");
    struct esp_tokenizer *tokenizer = open_folder(folder_path());
    CHECK(esp_tokenizer_hash(tokenizer) == hashes[2]);
    esp_tokenizer_close(tokenizer);
}

TEST(ids_may_have_gaps)
{
    size_t length;
    struct esp_tokenizer *tokenizer = open_named("qwen2");
    uint64_t hash = esp_tokenizer_hash(tokenizer);
    int size = esp_tokenizer_size(tokenizer);
    esp_tokenizer_close(tokenizer);
    copy_folder("qwen2");
    char entry[256];
    snprintf(entry, sizeof entry,
             "[{\"id\":%d,\"content\":\"<tool>\",\"single_word\":false,\"lstrip\":false,"
             "\"rstrip\":false,\"normalized\":false,\"special\":false}]",
             size + 9);
    folder_edit("tokenizer.json", "added_tokens", NULL, entry);
    tokenizer = open_folder(folder_path());
    CHECK(esp_tokenizer_hash(tokenizer) != hash);
    CHECK(esp_tokenizer_size(tokenizer) == size + 10);
    CHECK(!esp_tokenizer_bytes(tokenizer, size + 8, &length));
    CHECK(esp_tokenizer_find(tokenizer, "<tool>", 6) == size + 9);
    CHECK(!esp_tokenizer_is_special(tokenizer, size + 9));
    int32_t tokens[3] = {0};
    CHECK(esp_tokenizer_encode(tokenizer, "a<tool>a", 8, tokens, 3) == 3);
    CHECK(tokens[0] == tokens[2] && tokens[1] == size + 9);
    esp_tokenizer_close(tokenizer);
}

TEST(a_stream_of_tokens_gives_the_text)
{
    struct esp_tokenizer *tokenizer = open_named("builtin");
    const char *text = "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 caf\xC3\xA9 \xE6\xBC\xA2!";
    char out[256];
    size_t n = 0, length;
    int count;
    int32_t *tokens = encode(tokenizer, text, strlen(text), &count);
    struct esp_utf8_stream stream = {.mode = ESP_UTF8_TEXT};
    for (int i = 0; i < count; i++) {
        const char *bytes = esp_tokenizer_bytes(tokenizer, tokens[i], &length);
        n += esp_utf8_stream_push(&stream, bytes, length, out + n);
    }
    n += esp_utf8_stream_flush(&stream, out + n);
    CHECK(n == strlen(text) && memcmp(out, text, n) == 0);
    free(tokens);
    esp_tokenizer_close(tokenizer);
}

/* ------------------------------------------------------------------ text written by users */

static int count_token(const int32_t *tokens, int count, int32_t token)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += tokens[i] == token;
    return found;
}

TEST(literal_text_never_becomes_special_tokens)
{
    static const struct {
        const char *name, *special;
    } cases[] = {{"qwen2", "<|im_end|>"},
                 {"llama3", "<|eot_id|>"},
                 {"llama2", "</s>"},
                 {"neox", "<|endoftext|>"},
                 {"builtin", "<|endoftext|>"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct esp_tokenizer *tokenizer = open_named(cases[i].name);
        const char *special = cases[i].special;
        const int32_t id = esp_tokenizer_find(tokenizer, special, strlen(special));
        char text[256], back[512];
        int32_t tokens[256];
        const int n = (int)strlen(special);
        snprintf(text, sizeof text, "%sé%s%s%s%s", special, special, special, special, special);
        /* The literal part begins with "é". It contains the text of two special tokens, and of
         * a third special token without its last byte. */
        const struct esp_span span = {n, n + 2 + 3 * n - 1, 0};
        const struct esp_literals literals = {&span, 1, NULL};
        int count =
            esp_tokenizer_encode_literal(tokenizer, text, strlen(text), &literals, tokens, 256);
        CHECK(id >= 0 && count > 0 && count <= 256);
        CHECK(count_token(tokens, count, id) == 2, "%s: %d", cases[i].name,
              count_token(tokens, count, id));
        CHECK(tokens[0] == id && tokens[count - 1] == id);
        size_t used = 0;
        for (int k = 0; k < count; k++) {
            size_t length = 0;
            const char *bytes = esp_tokenizer_bytes(tokenizer, tokens[k], &length);
            CHECK(bytes && used + length < sizeof back);
            memcpy(back + used, bytes, length);
            used += length;
        }
        back[used] = '\0';
        CHECK(strstr(back, special) && used >= strlen(text), "%s: %s", cases[i].name, back);
        /* Without a literal part, all five texts must become special tokens. */
        count = esp_tokenizer_encode(tokenizer, text, strlen(text), tokens, 256);
        CHECK(count_token(tokens, count, id) == 5);
        esp_tokenizer_close(tokenizer);
    }
}

TEST(control_tokens_are_literal_text_and_other_added_tokens_are_found)
{
    static const char *const marks[] = {"<tool>", NULL};
    const char *text = "<tool>a</tool>";
    struct esp_tokenizer *tokenizer = open_named("qwen2");
    const struct esp_span span = {0, (int32_t)strlen(text), 0};
    struct esp_literals literals = {&span, 1, marks};
    const int32_t open = esp_tokenizer_find(tokenizer, "<tool>", 6);
    const int32_t close = esp_tokenizer_find(tokenizer, "</tool>", 7);
    int32_t tokens[64];
    int count =
        esp_tokenizer_encode_literal(tokenizer, text, strlen(text), &literals, tokens, 64);
    CHECK(count_token(tokens, count, open) == 0 && count_token(tokens, count, close) == 1);
    literals.marks = NULL;
    count = esp_tokenizer_encode_literal(tokenizer, text, strlen(text), &literals, tokens, 64);
    CHECK(count_token(tokens, count, open) == 1 && count_token(tokens, count, close) == 1);
    esp_tokenizer_close(tokenizer);
}
