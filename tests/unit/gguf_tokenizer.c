/* gguf_tokenizer.c - tests that a tokenizer gives the same tokens after it was written to a
 * GGUF file and read back. Also tests that bad tokenizers in GGUF files are refused with
 * an error message. */
#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/gguf_describe.h"
#include "engine/model/gguf_tokenizer.h"
#include "engine/model/tokenizer.h"
#include "tests/check.h"
#include "tests/folder.h"

static struct esp_tokenizer *open_good(const char *path)
{
    char err[512] = "";
    struct esp_tokenizer *tokenizer;
    int status = esp_tokenizer_open(&tokenizer, path, err, sizeof err);
    CHECK(status == 0, "%s: %s", path, err);
    return tokenizer;
}

static void copy_tokenizer(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "vectors/tokenizers/%s/tokenizer.json", name);
    struct folder_bytes bytes = folder_read(check_path(path));
    folder_copy("llama-mha");
    folder_write("tokenizer.json", bytes.data, bytes.size);
    free(bytes.data);
}

/* Writes the folder's tokenizer to a GGUF file. The model in this file has one row for each
 * token. */
static void write_gguf(const struct esp_tokenizer *tokenizer)
{
    char err[512] = "";
    struct esp_model *model;
    struct esp_gguf_header header = {.value_count = 0};
    struct esp_bytes bytes;
    float *factors;
    CHECK(esp_model_open(&model, folder_path(), err, sizeof err) == 0, "%s", err);
    model->desc.vocabulary = esp_tokenizer_size(tokenizer) + 3;
    CHECK(esp_gguf_describe(&header, &factors, model, &esp_architecture_llama, false, err,
                            sizeof err) == 0,
          "%s", err);
    CHECK(esp_gguf_header_bytes(&header, &bytes));
    folder_write("made.gguf", bytes.data, bytes.size);
    free(bytes.data);
    free(factors);
    esp_gguf_header_free(&header);
    esp_model_close(model);
}

/* Returns the number of texts for which `b` and `a` give different tokens. */
static int count_differences(const struct esp_tokenizer *a, const struct esp_tokenizer *b)
{
    enum { ROOM = 1 << 16 };
    static int32_t first[ROOM], second[ROOM];
    struct folder_bytes file = folder_read(check_path("vectors/tokenizers/cases.jsonl"));
    int different = 0, cases = 0;
    for (char *line = strtok(file.data, "\n"); line; line = strtok(NULL, "\n"), cases++) {
        cJSON *json = cJSON_Parse(line);
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, "text"));
        if (text) {
            int n = esp_tokenizer_encode(a, text, strlen(text), first, ROOM);
            int m = esp_tokenizer_encode(b, text, strlen(text), second, ROOM);
            CHECK(n >= 0 && n <= ROOM);
            different += n != m || memcmp(first, second, (size_t)n * sizeof *first) != 0;
        }
        cJSON_Delete(json);
    }
    CHECK(cases >= 600);
    free(file.data);
    return different;
}

TEST(a_tokenizer_survives_writing_and_reading)
{
    static const char *const names[] = {"neox", "llama3", "qwen2", "llama2"};
    for (int i = 0; i < 4; i++) {
        copy_tokenizer(names[i]);
        struct esp_tokenizer *before = open_good(folder_path());
        write_gguf(before);
        struct esp_tokenizer *after = open_good(folder_file("made.gguf"));
        CHECK(esp_tokenizer_hash(before) == esp_tokenizer_hash(after), "%s", names[i]);
        CHECK(esp_tokenizer_prefix(before) == esp_tokenizer_prefix(after), "%s", names[i]);
        for (int32_t id = 0; id < esp_tokenizer_size(before); id++)
            CHECK(esp_tokenizer_is_special(before, id) == esp_tokenizer_is_special(after, id),
                  "%s: token %d", names[i], (int)id);
        int different = count_differences(before, after);
        CHECK(different == 0, "%s: %d texts", names[i], different);
        esp_tokenizer_close(before);
        esp_tokenizer_close(after);
    }
}

TEST(tokenizers_that_gguf_cannot_describe_are_refused)
{
    char err[512] = "";
    struct esp_model *model;
    struct esp_gguf_header header = {.value_count = 0};
    float *factors;
    copy_tokenizer("qwen2");
    folder_edit("tokenizer.json", "pre_tokenizer", NULL,
                "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"use_regex\": true}");
    CHECK(esp_model_open(&model, folder_path(), err, sizeof err) == 0, "%s", err);
    model->desc.vocabulary = 5000;
    CHECK(esp_gguf_describe(&header, &factors, model, &esp_architecture_llama, false, err,
                            sizeof err) < 0 &&
              strstr(err, "that have no name in GGUF"),
          "%s", err);
    esp_gguf_header_free(&header);
    free(factors);
    esp_model_close(model);
}

/* ------------------------------------------------------------------ bad tokenizers */

static void put_texts(struct esp_gguf_header *header, const char *key, const char *const *texts,
                      int count)
{
    struct esp_bytes bytes = {.size = 0};
    for (int i = 0; i < count; i++)
        esp_bytes_text(&bytes, texts[i], strlen(texts[i]));
    esp_gguf_put_array(header, key, ESP_GGUF_TEXT, (uint64_t)count, &bytes);
    free(bytes.data);
}

static void refused(int line, struct esp_gguf_header *header, const char *want)
{
    char err[512] = "";
    struct esp_tokenizer *tokenizer;
    struct esp_bytes bytes;
    CHECK(esp_gguf_header_bytes(header, &bytes));
    folder_copy("llama-mha");
    folder_write("made.gguf", bytes.data, bytes.size);
    CHECK(esp_tokenizer_open(&tokenizer, folder_file("made.gguf"), err, sizeof err) < 0,
          "line %d: opened", line);
    CHECK(strstr(err, "made.gguf") && strstr(err, want) && !strchr(err, '\n'), "line %d: %s",
          line, err);
    free(bytes.data);
    esp_gguf_header_free(header);
}

#define REFUSED(header, want) refused(__LINE__, header, want)

TEST(bad_tokenizers_are_refused)
{
    static const char *const tokens[] = {"a", "b", "ab"}, *const broken[] = {"a", "\xFF"};
    static const char *const merges[] = {"a c"};
    struct esp_gguf_header h = {.value_count = 0};
    REFUSED(&h, "has no tokenizer");
    esp_gguf_put_text(&h, "tokenizer.ggml.model", "bert");
    REFUSED(&h, "tokenizer.ggml.model is bert");
    esp_gguf_put_text(&h, "tokenizer.ggml.model", "gpt2");
    REFUSED(&h, "tokenizer.ggml.tokens is missing");
    esp_gguf_put_text(&h, "tokenizer.ggml.model", "gpt2");
    put_texts(&h, "tokenizer.ggml.tokens", tokens, 3);
    REFUSED(&h, "tokenizer.ggml.merges is missing");
    esp_gguf_put_text(&h, "tokenizer.ggml.model", "gpt2");
    esp_gguf_put_text(&h, "tokenizer.ggml.pre", "nobody");
    put_texts(&h, "tokenizer.ggml.tokens", tokens, 3);
    put_texts(&h, "tokenizer.ggml.merges", merges, 1);
    REFUSED(&h, "tokenizer.ggml.pre is nobody");
    esp_gguf_put_text(&h, "tokenizer.ggml.model", "gpt2");
    put_texts(&h, "tokenizer.ggml.tokens", broken, 2);
    put_texts(&h, "tokenizer.ggml.merges", merges, 1);
    REFUSED(&h, "token 1 is not UTF-8 text");
    esp_gguf_put_text(&h, "tokenizer.ggml.model", "llama");
    put_texts(&h, "tokenizer.ggml.tokens", tokens, 3);
    REFUSED(&h, "tokenizer.ggml.scores is missing");
    esp_gguf_put_text(&h, "tokenizer.ggml.model", "gpt2");
    put_texts(&h, "tokenizer.ggml.tokens", tokens, 3);
    put_texts(&h, "tokenizer.ggml.merges", merges, 1);
    REFUSED(&h, "no token for the byte");
}
