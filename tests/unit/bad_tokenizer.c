/* bad_tokenizer.c - tests that bad tokenizer.json files are refused with an error message, and
 * that no file can crash or hang the program. Each bad file is a copy of a good file of
 * tests/vectors/tokenizers with one change.
 */
#include "engine/model/tokenizer.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernels/status.h"
#include "tests/check.h"
#include "tests/folder.h"

/* Copies the folder `name` to the temporary folder. Returns the text of its tokenizer.json. */
static struct folder_bytes copy_folder(const char *name)
{
    char beside_logits[64];
    snprintf(beside_logits, sizeof beside_logits, "../tokenizers/%s", name);
    folder_copy(beside_logits);
    return folder_read(folder_file("tokenizer.json"));
}

/* Checks that opening fails with an error message that contains `word`. */
static void check_refused(const char *what, const char *word)
{
    struct esp_tokenizer *tokenizer;
    char err[512] = "";
    int status = esp_tokenizer_open(&tokenizer, folder_path(), err, sizeof err);
    CHECK(status < 0 && !tokenizer, "%.100s: was opened", what);
    CHECK(strstr(err, "tokenizer.json") && strstr(err, word), "%.100s: \"%s\" lacks \"%s\"",
          what, err, word);
}

/* Sets the value at a path like "model.vocab.x" or "added_tokens.0.id". If `text` is NULL,
 * removes the value. */
static void set(cJSON *json, const char *path, const char *text)
{
    char key[64];
    size_t n;
    for (; n = strcspn(path, "."), path[n] == '.'; path += n + 1) {
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        json = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(key))
                                   : cJSON_GetObjectItemCaseSensitive(json, key);
    }
    cJSON *value = text ? cJSON_Parse(text) : NULL;
    CHECK(json && (value || !text), "%s = %s", path, text);
    if (cJSON_IsArray(json) && atoi(path) < cJSON_GetArraySize(json)) {
        cJSON_ReplaceItemInArray(json, atoi(path), value);
    } else if (cJSON_IsArray(json)) {
        cJSON_AddItemToArray(json, value);
    } else {
        cJSON_DeleteItemFromObjectCaseSensitive(json, path);
        if (value)
            cJSON_AddItemToObject(json, path, value);
    }
}

/* Writes tokenizer.json: the text `good` with one value changed. */
static void write_changed(const char *good, const char *path, const char *value)
{
    cJSON *json = cJSON_Parse(good);
    set(json, path, value);
    char *text = cJSON_PrintUnformatted(json);
    folder_write_text("tokenizer.json", text);
    free(text);
    cJSON_Delete(json);
}

static void write_pattern(const char *good, const char *pattern)
{
    cJSON *string = cJSON_CreateString(pattern);
    char *value = cJSON_PrintUnformatted(string);
    write_changed(good, "pre_tokenizer.pretokenizers.0.pattern.Regex", value);
    free(value);
    cJSON_Delete(string);
}

TEST(bad_values_are_refused_with_a_sentence)
{
    static const struct {
        const char *path, *value, *word;
    } changes[] = {
        {"model", NULL, "model"},
        {"model", "[]", "model"},
        {"model.type", "\"Unigram\"", "Unigram"},
        {"model.type", "3", "type"},
        {"model.byte_fallback", "true", "byte_fallback"},
        {"model.unk_token", "\"<unk>\"", "unk_token"},
        {"model.unk_token", "5", "unk_token"},
        {"model.continuing_subword_prefix", "\"##\"", "continuing_subword_prefix"},
        {"model.end_of_word_suffix", "\"</w>\"", "end_of_word_suffix"},
        {"model.dropout", "0.1", "dropout"},
        {"model.ignore_merges", "\"yes\"", "ignore_merges"},
        {"model.vocab", NULL, "vocab"},
        {"model.vocab", "{}", "byte 0x20"},
        {"model.vocab", "[\"a\"]", "vocab"},
        {"model.vocab.A", NULL, "0x41"},
        {"model.vocab.a", "-1", "\"a\""},
        {"model.vocab.a", "1.5", "\"a\""},
        {"model.vocab.a", "1e300", "\"a\""},
        {"model.vocab.a", "4294967296", "\"a\""},
        {"model.vocab.a", "2147483647", "\"a\""},
        {"model.vocab.a", "\"7\"", "\"a\""},
        {"model.vocab.a", "null", "\"a\""},
        {"model.vocab.new", "5", "id 5"},
        {"model.vocab.", "9999", "without text"},
        {"model.merges", NULL, "merges"},
        {"model.merges", "{}", "merges"},
        {"model.merges.2", "\"a nosuchtoken\"", "merge 2"},
        {"model.merges.2", "\"q !\"", "merge 2"},
        {"model.merges.2", "\"ab\"", "merge 2"},
        {"model.merges.2", "\"\"", "merge 2"},
        {"model.merges.2", "\"a  b\"", "merge 2"},
        {"model.merges.2", "\"a b c\"", "merge 2"},
        {"model.merges.2", "[\"a\"]", "merge 2"},
        {"model.merges.2", "[\"a\",\"b\",\"c\"]", "merge 2"},
        {"model.merges.2", "[\"a\",7]", "merge 2"},
        {"model.merges.2", "{\"x\":\"a\",\"y\":\"b\"}", "merge 2"},
        {"model.merges.2", "7", "merge 2"},
        {"added_tokens", "7", "added_tokens"},
        {"added_tokens.0", "7", "content"},
        {"added_tokens.0.content", "7", "content"},
        {"added_tokens.0.content", "\"a\"", "\"a\""},
        {"added_tokens.0.content", "\"<|im_start|>\"", "<|im_start|>"},
        {"added_tokens.0.id", NULL, "endoftext"},
        {"added_tokens.0.id", "5", "id 5"},
        {"added_tokens.0.id", "3e6", "endoftext"},
        {"added_tokens.0.special", NULL, "special"},
        {"added_tokens.0.lstrip", "1", "lstrip"},
        {"added_tokens.0.normalized", "\"no\"", "normalized"},
        {"normalizer", "\"NFC\"", "normalizer"},
        {"normalizer", "{\"type\":\"NFKC\"}", "NFKC"},
        {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Lowercase\"}]}",
         "Lowercase"},
        {"normalizer", "{\"type\":\"Sequence\"}", "normalizers"},
        {"pre_tokenizer", NULL, "ByteLevel"},
        {"pre_tokenizer", "null", "ByteLevel"},
        {"pre_tokenizer", "7", "type"},
        {"pre_tokenizer", "{\"type\":\"Metaspace\"}", "Metaspace"},
        {"pre_tokenizer", "{\"type\":\"ByteLevel\"}", "add_prefix_space"},
        {"pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":2}",
         "use_regex"},
        {"pre_tokenizer", "{\"type\":\"Digits\",\"individual_digits\":true}", "ByteLevel"},
        {"pre_tokenizer", "{\"type\":\"Digits\"}", "individual_digits"},
        {"pre_tokenizer", "{\"type\":\"Sequence\"}", "pretokenizers"},
        {"pre_tokenizer.pretokenizers.2", "{\"type\":\"Digits\",\"individual_digits\":true}",
         "after ByteLevel"},
        {"pre_tokenizer.pretokenizers.0.pattern", "{}", "pattern"},
        {"pre_tokenizer.pretokenizers.0.pattern", "{\"Regex\":7}", "pattern"},
        {"pre_tokenizer.pretokenizers.0.behavior", "\"Isolate\"", "Isolate"},
        {"pre_tokenizer.pretokenizers.0.behavior", NULL, "behavior"},
        {"pre_tokenizer.pretokenizers.0.invert", "0", "invert"},
        {"decoder", "{\"type\":\"Metaspace\"}", "Metaspace"},
        {"decoder", "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"}]}", "Fuse"},
    };
    struct folder_bytes good = copy_folder("qwen2");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char what[256];
        snprintf(what, sizeof what, "%s = %s", changes[i].path,
                 changes[i].value ? changes[i].value : "(removed)");
        write_changed(good.data, changes[i].path, changes[i].value);
        check_refused(what, changes[i].word);
    }
    free(good.data);
}

TEST(bad_values_with_byte_fallback_are_refused_with_a_sentence)
{
    static const struct {
        const char *path, *value, *word;
    } changes[] = {
        {"model.byte_fallback", "false", "unk_token"},
        {"model.byte_fallback", "1", "byte_fallback"},
        {"model.ignore_merges", "true", "ignore_merges"},
        {"model.end_of_word_suffix", "\"</w>\"", "end_of_word_suffix"},
        {"model.vocab.<0x0A>", NULL, "no token <0x0A>"},
        {"model.vocab.<0x0A>", "7", "id 7"},
        {"normalizer", "{\"type\":\"Prepend\"}", "prepend"},
        {"normalizer", "{\"type\":\"Replace\",\"content\":\"a\"}", "Replace"},
        {"normalizer.normalizers.1.pattern", "{\"Regex\":\" \"}", "Replace"},
        {"normalizer.normalizers.1.pattern", "{\"String\":\"\"}", "Replace"},
        {"normalizer.normalizers.2", "{\"type\":\"NFKC\"}", "NFKC"},
        {"pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", "ByteLevel"},
        {"pre_tokenizer", "{\"type\":\"Whitespace\"}", "Whitespace"},
        {"pre_tokenizer", "{\"type\":\"Metaspace\"}", "replacement"},
        {"pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"_\"}", "U+2581"},
        {"pre_tokenizer",
         "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"last\"}",
         "prepend_scheme"},
        {"pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"split\":3}",
         "split"},
        {"decoder", "{\"type\":\"WordPiece\"}", "WordPiece"},
        {"decoder.decoders.1", "{\"type\":\"ByteLevel\"}", "ByteLevel"},
    };
    struct folder_bytes good = copy_folder("llama2");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        write_changed(good.data, changes[i].path, changes[i].value);
        check_refused(changes[i].path, changes[i].word);
    }
    free(good.data);
}

/* These patterns are invalid, or PCRE2 would split text differently with them. */
TEST(patterns_that_pcre2_would_split_differently_are_refused)
{
    static const char *const patterns[] = {
        "(",
        ")",
        "[",
        "[a",
        "[^",
        "a\\",
        "*a",
        "+",
        "(?",
        "(?<",
        "(?i",
        "[z-a]",
        "a**",
        "\\p{L",
        "\\pL",
        "\\p{NoSuchThing}",
        "\\p{}",
        "\\p{L}{1,3}+",
        "a{2}?",
        "[a&&b]",
        "[a[^b]]",
        "[[:alpha:]]",
        "[a-[b]]",
        "[a[b-]c]",
        "[[a]-c]",
        "[a[-b]]",
        "[\\W]",
        "[\\R]",
        "(?i)[\\p{Lu}]",
        "(a(?i:b)(?i)[\\w])",
        "\\K",
        "\\G",
        "\\X",
        "\\Qa\\E",
        "\\1",
        "(?<x>a)\\k<x>",
        "\\g<0>",
        "(?R)",
        "(?1)",
        "(?(1)a)",
        "(?|a|b)",
        "(?#x)",
        "(?~a)",
        "(?x: a)",
        "a(?i)b",
        "(*ACCEPT)",
        "(*LIMIT_MATCH=9)a",
        "(?C1)a",
        "\\C",
        "\\xC3\\xA9",
        "\\x{110000}",
        "\\x{zz}",
        "\\u12",
        "\\N",
        "\\o{101}",
        "\\cA",
        "((((a{1000}){1000}){1000}){1000}){1000}",
        "(?<=a+)b",
        "\\",
    };
    struct folder_bytes good = copy_folder("qwen2");
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        write_pattern(good.data, patterns[i]);
        check_refused(patterns[i], "pattern");
    }
    char *deep = calloc(1, 70001);
    for (int kind = 0; kind < 3; kind++) {
        memset(deep, "([a"[kind], kind == 2 ? 70000 : 60000);
        write_pattern(good.data, deep);
        check_refused("a deep or long pattern", "pattern");
    }
    free(deep);
    free(good.data);
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

TEST(hostile_patterns_do_not_run_forever)
{
    static const struct {
        const char *pattern, *unit;
    } cases[] = {
        {"(a+)+$", "a!"},        {"(a|aa)+b", "a"},
        {"(?:a*)*b", "a"},       {"[^x]*xx", "a"},
        {"(?=(a+))b", "a"},      {"(.*)*[xy]", "a"},
        {"\\s+$", " x"},         {"(?:(?:a?){20})a{20}b", "a"},
        {"(a?){30}a{30}!", "a"}, {"(?:.*.*.*.*)=", "ab"},
        {"(?=.*x)b", "b"},       {"(?:a|b)*c", "ac"},
        {"(?<!b)(a*)*c", "a"},   {"((((a*)*)*)*)*z", "a"},
    };
    struct folder_bytes good = copy_folder("qwen2");
    size_t length = 1 << 16;
    char *text = malloc(length), err[512] = "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct esp_tokenizer *tokenizer;
        struct timespec start;
        write_pattern(good.data, cases[i].pattern);
        int status = esp_tokenizer_open(&tokenizer, folder_path(), err, sizeof err);
        CHECK(status == 0, "%s: %s", cases[i].pattern, err);
        memset(text, cases[i].unit[0], length);
        if (cases[i].unit[1])
            text[length - 1] = cases[i].unit[1];
        clock_gettime(CLOCK_MONOTONIC, &start);
        int count = esp_tokenizer_encode(tokenizer, text, length, NULL, 0);
        double seconds = seconds_since(&start);
        CHECK(seconds < 60, "%s: %.1f s", cases[i].pattern, seconds);
        CHECK(count > 0 || count == ESP_E_UNSUPPORTED, "%s: %d", cases[i].pattern, count);
        esp_tokenizer_close(tokenizer);
    }
    free(text);
    free(good.data);
}

TEST(broken_files_are_refused_with_a_sentence)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "7",
        "\"x\"",
        "nul",
        "{}x",
        "{\"a\":}",
        "{\"a\"}",
        "{} {}",
        "\xEF\xBB\xBF",
        "{\"\\u0000\":1}",
        "{\"\xFF\":1}",
        "{\"\\ud800\":1}",
    };
    struct folder_bytes good = copy_folder("qwen2");
    const char *path = folder_file("tokenizer.json");
    unlink(path);
    check_refused("no file", "has no tokenizer.json");
    CHECK(mkdir(path, 0700) == 0);
    check_refused("a folder", "not a");
    rmdir(path);
    CHECK(mkfifo(path, 0600) == 0);
    check_refused("a pipe", "not a");
    unlink(path);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        folder_write_text("tokenizer.json", texts[i]);
        check_refused(texts[i], "JSON");
    }
    folder_write("tokenizer.json", "{\"a\0b\":1}", 9);
    check_refused("a NUL", "JSON");
    for (size_t end = 0; end < good.size; end += end < 300 || end > good.size - 100 ? 1 : 97) {
        folder_write("tokenizer.json", good.data, end);
        check_refused("a cut file", "JSON");
    }
    char *deep = malloc(200000);
    memset(deep, '[', 200000);
    folder_write("tokenizer.json", deep, 200000);
    check_refused("deep brackets", "JSON");
    free(deep);
    free(good.data);
}

TEST(an_escaped_backslash_before_u0000_is_not_a_nul)
{
    struct folder_bytes good = copy_folder("qwen2");
    struct esp_tokenizer *tokenizer;
    char err[512] = "";
    write_changed(good.data, "note", "\"\\\\u0000 \\\\\\\\u0000\"");
    int status = esp_tokenizer_open(&tokenizer, folder_path(), err, sizeof err);
    CHECK(status == 0, "%s", err);
    esp_tokenizer_close(tokenizer);
    free(good.data);
}

static void damage(const char *name)
{
    unsigned long long state = 5;
    struct folder_bytes good = copy_folder(name);
    char *damaged = malloc(good.size);
    int opened = 0, refused = 0;
    for (int round = 0; round < 600; round++) {
        memcpy(damaged, good.data, good.size);
        for (int i = 0; i < 1 + round % 3; i++) {
            size_t at = (size_t)(check_uniform(&state) * (double)good.size);
            size_t from = (size_t)(check_uniform(&state) * (double)good.size);
            damaged[at] = round % 2 ? "0189-\",:[]{}\\ \xC4"[from % 15] : damaged[from];
        }
        folder_write("tokenizer.json", damaged, good.size);
        struct esp_tokenizer *tokenizer;
        char err[512] = "";
        int status = esp_tokenizer_open(&tokenizer, folder_path(), err, sizeof err);
        CHECK(status == 0 || (!tokenizer && *err), "status %d without an error message",
              status);
        opened += status == 0;
        refused += status < 0;
        if (status == 0)
            CHECK(esp_tokenizer_encode(tokenizer, "Hello 12 \xC3\xA9\xFF <|eot_id|>", 23, NULL,
                                       0) > 0);
        esp_tokenizer_close(tokenizer);
    }
    CHECK(opened > 0 && refused > 0, "%d opened, %d refused", opened, refused);
    free(damaged);
    free(good.data);
}

/* The file's normalizer has two steps, which together expand one byte to a million bytes. The
 * file also has many tokens that must be normalised. It must be refused quickly. */
TEST(a_normalizer_that_makes_texts_longer_stays_fast)
{
    enum { TIMES = 1000, TOKENS = 2000 };
    char content[TIMES + 1], step[TIMES + 200], entry[300], many[61];
    struct folder_bytes good = copy_folder("llama3");
    cJSON *json = cJSON_Parse(good.data);
    memset(many, 'a', sizeof many);
    set(json, "normalizer", "{\"type\": \"Sequence\", \"normalizers\": []}");
    for (int i = 0; i < 2; i++) {
        memset(content, 'b' + i, TIMES);
        content[TIMES] = '\0';
        snprintf(step, sizeof step,
                 "{\"type\": \"Replace\", \"pattern\": {\"String\": \"%c\"}, "
                 "\"content\": \"%s\"}",
                 'a' + i, content);
        set(json, "normalizer.normalizers.9", step);
    }
    for (int i = 0; i < TOKENS; i++) {
        snprintf(entry, sizeof entry,
                 "{\"id\": %d, \"content\": \"%.60s %d\", \"special\": false, "
                 "\"normalized\": true, \"single_word\": false, \"lstrip\": false, "
                 "\"rstrip\": false}",
                 500000 + i, many, i);
        set(json, "added_tokens.99999", entry);
    }
    char *text = cJSON_PrintUnformatted(json);
    folder_write_text("tokenizer.json", text);
    free(text);
    cJSON_Delete(json);
    clock_t start = clock();
    check_refused("long added tokens", "added_tokens hold");
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 2);
    free(good.data);
}

/* After any change, opening a file must give a tokenizer or an error message. A tokenizer that
 * was opened must be able to encode. */
TEST(damaged_files_never_crash)
{
    damage("llama3");
    damage("llama2");
}
