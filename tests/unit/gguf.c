/* gguf.c - tests GGUF files. A model must give the same logits from a GGUF file as from a
 * folder, and opening a bad file must fail with an error message.
 *
 * The files in tests/vectors/gguf are the same as llama.cpp's converter would make from the
 * folders in tests/vectors/logits. So a file and its folder must give the same logits. The
 * logits are bit-identical if the conversion rounds nothing.
 */
#include <cJSON.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/gguf.h"
#include "engine/model/model.h"
#include "engine/model/tokenizer.h"
#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"
#include "tests/each_backend.h"
#include "tests/folder.h"
#include "tests/rounding.h"

enum { TOKENS = 24, MAX_VOCABULARY = 128, ROOM = 1 << 16 };

/* ------------------------------------------------------------------ good files */

static struct esp_model *open_good(const char *path)
{
    char err[512] = "";
    struct esp_model *model;
    int status = esp_model_open(&model, path, err, sizeof err);
    CHECK(status == 0, "%s: %d, %s", path, status, err);
    return model;
}

static const int32_t some_tokens[TOKENS] = {1,  5,  9, 33, 2,  60, 61, 7, 0,  12, 40, 41,
                                            11, 18, 3, 22, 27, 50, 6,  8, 19, 30, 31, 4};

struct text {
    const struct esp_model *model;
    const int32_t *tokens; /* (TOKENS) */
};

/* Computes the logits of every token of a text, with the shape (TOKENS, vocabulary). */
static void run(struct esp_backend *backend, void *user, float *logits, int count)
{
    const struct text *text = user;
    const struct esp_model_desc *desc = &text->model->desc;
    const struct esp_backend_ops *ops = backend->ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *rows;
    int32_t positions[TOKENS];
    char err[512] = "";
    CHECK(count == TOKENS * desc->vocabulary);
    for (int i = 0; i < TOKENS; i++)
        positions[i] = i;
    CHECK(ops->weights_open(&weights, backend, desc, NULL, NULL, err, sizeof err) == 0, "%s",
          err);
    CHECK(ops->cache_open(&cache, weights, TOKENS, TOKENS, err, sizeof err) == 0);
    CHECK(ops->rows_open(&rows, backend, TOKENS, desc->vocabulary, err, sizeof err) == 0);
    struct esp_batch batch = {
        .rows = TOKENS, .tokens = text->tokens, .positions = positions, .logits = rows};
    CHECK(ops->forward(cache, &batch) == 0);
    for (int i = 0; i < TOKENS; i++)
        CHECK(ops->read_row(rows, i, logits + i * desc->vocabulary) == 0);
    ops->rows_close(rows);
    ops->cache_close(cache);
    ops->weights_close(weights);
}

static struct esp_backend *open_cpu(bool exact)
{
    struct esp_backend *backend;
    char err[512] = "";
    CHECK(esp_backend_cpu.open(&backend, 2, err, sizeof err) == 0, "%s", err);
    esp_backend_cpu.set_exact(backend, exact);
    return backend;
}

/* Returns the root mean square of a - b. */
static double distance(const float *a, const float *b, int count)
{
    double error = 0;
    for (int i = 0; i < count; i++)
        error += pow((double)a[i] - b[i], 2);
    return sqrt(error / count);
}

EACH_ISA(a_file_gives_the_logits_of_its_folder)
{
    static const struct {
        const char *file, *folder;
        bool rounded; /* true if the conversion rounds numbers */
    } cases[] = {
        {"llama-gqa-00001-of-00002.gguf", "llama-gqa", false},
        {"llama-gqa-00002-of-00002.gguf", "llama-gqa",
         false}, /* opening any part opens the whole model */
        {"llama-bias.gguf", "llama-bias", false},
        {"llama-bf16.gguf", "llama-bf16", false},
        {"neox-parallel.gguf", "neox-parallel", false},
        {"qwen2.gguf", "qwen2", false},
        {"qwen3.gguf", "qwen3", false},
        {"llama-rope3.gguf", "llama-rope3", true}, /* its RoPE factors are rounded */
        {"gemma2.gguf", "gemma2", true},
        {"gemma3.gguf", "gemma3", true},
        {"phi3-short.gguf", "phi3-short", true},
        {"phi3-long.gguf", "phi3-long", true},
        {"phi3-partial.gguf", "phi3-partial", false},
        {"olmo2.gguf", "olmo2", false},
        {"smollm3.gguf", "smollm3", false},
        {"gpt2.gguf", "gpt2", false},
        {"granite.gguf", "granite", true},
        {"qwen3-moe.gguf", "qwen3-moe", false},
        {"lfm2.gguf", "lfm2", false},
        /* its state heads have a different order, and a rate is rounded */
        {"qwen3-5.gguf", "qwen3-5", true},
        {"qwen3-5-tied.gguf", "qwen3-5-tied", true},
        {"qwen3-5-moe.gguf", "qwen3-5-moe", true},
        {"granite-hybrid.gguf", "granite-hybrid", true},
        {"granite-hybrid-moe.gguf", "granite-hybrid-moe", true},
        {"qwen3-next.gguf", "qwen3-next", true},
        {"nemotron-h.gguf", "nemotron-h", true},
        {"nemotron-h-moe.gguf", "nemotron-h-moe", true},
        /* in this file, the mixer's matrices are stored as one tensor */
        {"qwen3-next-old.gguf", "qwen3-next", true},
        {"lfm2-moe.gguf", "lfm2-moe", true},
        /* llama.cpp stores only one of yarn's settings, the factor */
        {"gpt-oss.gguf", "gpt-oss", true},
    };
    static float from_file[TOKENS * MAX_VOCABULARY], from_folder[TOKENS * MAX_VOCABULARY];
    struct esp_backend *backend = open_cpu(true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[256];
        snprintf(path, sizeof path, "vectors/gguf/%s", cases[i].file);
        struct esp_model *file = open_good(check_path(path));
        snprintf(path, sizeof path, "vectors/logits/%s", cases[i].folder);
        struct esp_model *folder = open_good(check_path(path));
        const char *unused = NULL;
        CHECK(esp_stored_unused(file->files, &unused) == 0, "%s: %s", cases[i].file, unused);
        CHECK(strcmp(file->architecture, folder->architecture) == 0);
        CHECK(file->parameters == folder->parameters);
        esp_model_set_context(file, TOKENS);
        esp_model_set_context(folder, TOKENS);
        const int count = TOKENS * file->desc.vocabulary;
        struct text text = {file, some_tokens}, other = {folder, some_tokens};
        run(backend, &text, from_file, count);
        run(backend, &other, from_folder, count);
        const double error = distance(from_file, from_folder, count);
        /* A tile unit adds products of BF16 in a different order from products of F32, and a
         * file may have F32 where the folder has BF16.
         */
        const bool rounded =
            cases[i].rounded || ((struct esp_cpu_backend *)backend)->isa->pairs;
        const double most = rounded ? rounding_bound(backend, run, &other, count, count) : 0;
        CHECK(error <= most, "%s: logits differ by %g, more than %g", cases[i].file, error,
              most);
        esp_model_close(file);
        esp_model_close(folder);
    }
    backend->ops->close(backend);
}

/* mixed.gguf has every quantised type. llama.cpp computed the reference logits from the same
 * numbers, which it stored as floats. */
EACH_ISA(every_quantised_type_gives_the_logits_of_its_numbers)
{
    static float logits[TOKENS * MAX_VOCABULARY];
    int32_t tokens[TOKENS];
    struct folder_bytes json_text = folder_read(check_path("vectors/gguf/mixed.json"));
    cJSON *json = cJSON_Parse(json_text.data), *list = cJSON_GetObjectItem(json, "tokens");
    CHECK(cJSON_GetArraySize(list) == TOKENS);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = cJSON_GetArrayItem(list, i)->valueint;
    cJSON_Delete(json);
    free(json_text.data);
    struct text text = {open_good(check_path("vectors/gguf/mixed.gguf")), tokens};
    const int count = TOKENS * text.model->desc.vocabulary;
    struct folder_bytes known = folder_read(check_path("vectors/gguf/mixed.f32"));
    CHECK(known.size == (size_t)count * sizeof(float));
    for (int exact = 0; exact < 2; exact++) {
        struct esp_backend *backend = open_cpu(exact);
        run(backend, &text, logits, count);
        const double error = distance(logits, (const float *)(const void *)known.data, count);
        const double most = rounding_bound(backend, run, &text, count, count);
        CHECK(error < most && error > most / 20, "%s: logits differ by %g, the bound is %g",
              exact ? "16 bits" : "8 bits", error, most);
        backend->ops->close(backend);
    }
    free(known.data);
    esp_model_close((struct esp_model *)text.model);
}

/* ------------------------------------------------------------------ a file made by the test */

struct made {
    unsigned char bytes[ROOM];
    size_t size;
    size_t counts; /* the offset of the number of tensors; the number of keys follows it */
};

static void put(struct made *m, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        m->bytes[m->size++] = (unsigned char)(value >> 8 * i);
}

static void put_bytes(struct made *m, const char *bytes, size_t length)
{
    put(m, length, 8);
    memcpy(m->bytes + m->size, bytes, length);
    m->size += length;
}

static void put_text(struct made *m, const char *text)
{
    put_bytes(m, text, strlen(text));
}

static void begin(struct made *m, uint64_t tensors, uint64_t keys)
{
    m->size = 0;
    memcpy(m->bytes, "GGUF", 4);
    m->size = 4;
    put(m, 3, 4);
    put(m, tensors, 8);
    put(m, keys, 8);
}

static void put_key(struct made *m, const char *key, enum esp_gguf_kind kind, uint64_t value)
{
    static const int sizes[ESP_GGUF_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    put_text(m, key);
    put(m, kind, 4);
    put(m, value, sizes[kind]);
}

static void put_text_key(struct made *m, const char *key, const char *value)
{
    put_text(m, key);
    put(m, ESP_GGUF_TEXT, 4);
    put_text(m, value);
}

static void put_tensor(struct made *m, const char *name, uint64_t columns, uint64_t rows,
                       uint32_t type, uint64_t offset)
{
    put_text(m, name);
    put(m, 2, 4);
    put(m, columns, 8);
    put(m, rows, 8);
    put(m, type, 4);
    put(m, offset, 8);
}

static const char *write_made(const struct made *m)
{
    folder_copy("llama-mha");
    folder_write("made.gguf", m->bytes, m->size);
    return folder_file("made.gguf");
}

/* Opens the file, which must be refused with an error message that contains its name and
 * `want`. */
static void refused(int line, const struct made *m, const char *want)
{
    char err[512] = "";
    struct esp_model *model = NULL;
    int status = esp_model_open(&model, write_made(m), err, sizeof err);
    CHECK(status < 0 && !model, "line %d: opened", line);
    CHECK(strstr(err, "made.gguf") && strstr(err, want), "line %d: %s", line, err);
    CHECK(!strchr(err, '\n') && !strchr(err, '\033'), "line %d: %s", line, err);
}

#define REFUSED(m, want) refused(__LINE__, m, want)

TEST(files_that_are_not_gguf_are_refused)
{
    static struct made m;
    char err[512] = "";
    struct esp_model *model;
    begin(&m, 0, 0);
    REFUSED(&m, "does not give general.architecture");
    m.bytes[4] = 1;
    REFUSED(&m, "version 1");
    m.bytes[4] = 0; /* the version is 3 again, but its bytes are in reverse order */
    m.bytes[7] = 3;
    REFUSED(&m, "little-endian");
    m.size = 20;
    REFUSED(&m, "20 bytes");
    m.bytes[0] = 'X';
    CHECK(esp_model_open(&model, write_made(&m), err, sizeof err) < 0 &&
              strstr(err, "neither a folder nor a GGUF file"),
          "%s", err);
}

TEST(counts_lengths_and_offsets_are_checked)
{
    static struct made m;
    begin(&m, UINT64_MAX, 0);
    REFUSED(&m, "more tensors");
    begin(&m, 0, UINT64_MAX);
    REFUSED(&m, "more keys");
    begin(&m, 0, 2);
    REFUSED(&m, "more keys");
    begin(&m, 0, 1);
    put(&m, UINT64_MAX, 8); /* the length of a key */
    put(&m, 0, 8);
    REFUSED(&m, "beyond the end");
    begin(&m, 0, 1);
    put_text(&m, "a");
    put(&m, ESP_GGUF_ARRAY, 4);
    put(&m, ESP_GGUF_F64, 4);
    put(&m, UINT64_MAX / 4, 8); /* the number of elements; their size in bytes overflows */
    REFUSED(&m, "beyond the end");
    begin(&m, 0, 1);
    put_text(&m, "a");
    put(&m, ESP_GGUF_ARRAY, 4);
    put(&m, ESP_GGUF_TEXT, 4);
    put(&m, 1 << 30, 8);
    REFUSED(&m, "beyond the end");
    begin(&m, 0, 1);
    put_text(&m, "a");
    put(&m, ESP_GGUF_ARRAY, 4);
    for (int i = 0; i < 40; i++) { /* nests arrays 40 levels deep */
        put(&m, ESP_GGUF_ARRAY, 4);
        put(&m, 1, 8);
    }
    REFUSED(&m, "has an unknown type");
    begin(&m, 0, 1);
    put_text(&m, "a");
    put(&m, 99, 4);
    put(&m, 0, 8);
    REFUSED(&m, "has an unknown type");
    begin(&m, 0, 1);
    put_key(&m, "general.alignment", ESP_GGUF_U32, 3);
    REFUSED(&m, "power of two");

    begin(&m, 1, 0);
    put_tensor(&m, "t", 32, 1, 99, 0);
    REFUSED(&m, "type 99");
    begin(&m, 1, 0);
    put_tensor(&m, "t", UINT64_MAX / 2, 16, 0, 0);
    REFUSED(&m, "bad shape");
    begin(&m, 1, 0);
    put_tensor(&m, "t", 33, 1, 8, 0);
    REFUSED(&m, "not a multiple of its block size");
    begin(&m, 1, 0);
    put_tensor(&m, "t", 32, 1, 0, UINT64_MAX - 64);
    REFUSED(&m, "outside the file");
    begin(&m, 1, 0);
    put_tensor(&m, "t", 1, 1, 0, 4);
    memset(m.bytes + m.size, 0, 64);
    m.size += 64;
    REFUSED(&m, "aligned");
    begin(&m, 1, 0);
    put_tensor(&m, "t", 32, 1, 0, 0);
    REFUSED(&m, "truncated");
    begin(&m, 1, 0);
    put_tensor(&m, "", 32, 1, 0, 0);
    REFUSED(&m, "name of a tensor");
}

TEST(keys_are_checked)
{
    static struct made m;
    begin(&m, 0, 1);
    put_text(&m, "general.architecture");
    put(&m, ESP_GGUF_TEXT, 4);
    put_bytes(&m, "ll\0ma", 5);
    REFUSED(&m, "does not give general.architecture");
    begin(&m, 0, 1);
    put_text_key(&m, "general.architecture", "mamba");
    REFUSED(&m, "mamba; the supported ones are llama");
    begin(&m, 0, 1);
    put_text_key(&m, "general.architecture", "llama");
    REFUSED(&m, "does not give llama.block_count");
    begin(&m, 0, 2);
    put_text_key(&m, "general.architecture", "llama");
    put_text_key(&m, "llama.block_count", "two");
    REFUSED(&m, "llama.block_count must be a number");
    begin(&m, 0, 2);
    put_text_key(&m, "general.architecture", "llama");
    put_key(&m, "llama.expert_count", ESP_GGUF_U32, 8);
    REFUSED(&m, "mixture of 8 experts");
    begin(&m, 0, 2);
    put_text_key(&m, "general.architecture", "llama");
    put_text(&m, "llama.block_count");
    put(&m, ESP_GGUF_ARRAY, 4);
    put(&m, ESP_GGUF_U32, 4);
    put(&m, 2, 8);
    put(&m, 2, 4);
    put(&m, 3, 4);
    REFUSED(&m, "differs from layer to layer");
}

/* ------------------------------------------------------------------ damage */

static struct folder_bytes good_bytes(void)
{
    struct folder_bytes bytes = folder_read(check_path("vectors/gguf/qwen2.gguf"));
    CHECK(bytes.size > 0);
    return bytes;
}

TEST(a_file_truncated_at_any_place_is_refused)
{
    struct folder_bytes bytes = good_bytes();
    char err[512];
    struct esp_model *model;
    folder_copy("llama-mha");
    for (size_t size = 4; size < bytes.size; size += 1 + size / 40) {
        folder_write("made.gguf", bytes.data, size);
        CHECK(esp_model_open(&model, folder_file("made.gguf"), err, sizeof err) < 0,
              "a file cut to %zu bytes was opened", size);
        CHECK(strstr(err, "made.gguf") && !strchr(err, '\n'), "%s", err);
    }
    free(bytes.data);
}

TEST(random_damage_never_crashes)
{
    struct folder_bytes bytes = good_bytes();
    unsigned long long state = 16;
    int opened = 0, rounds = check_quick() ? 300 : 2000;
    folder_copy("llama-mha");
    for (int i = 0; i < rounds; i++) {
        char err[512] = "";
        struct esp_model *model;
        struct esp_tokenizer *tokenizer;
        char *copy = malloc(bytes.size);
        memcpy(copy, bytes.data, bytes.size);
        for (int k = 0; k < 3; k++)
            copy[4 + (size_t)(check_uniform(&state) * 2200)] =
                (char)(unsigned char)(check_uniform(&state) * 256);
        folder_write("made.gguf", copy, bytes.size);
        free(copy);
        CHECK(esp_tokenizer_open(&tokenizer, folder_file("made.gguf"), err, sizeof err) < 0);
        if (esp_model_open(&model, folder_file("made.gguf"), err, sizeof err) < 0) {
            CHECK(*err && !strchr(err, '\n'));
            continue;
        }
        float row[1024];
        const struct esp_tensor *query = &model->desc.layer[0].query;
        CHECK(query->columns <= 1024);
        esp_tensor_read_row(query, query->rows - 1, row);
        CHECK(esp_stored_release(model->files, err, sizeof err) == 0, "%s", err);
        esp_model_close(model);
        opened++;
    }
    CHECK(opened > 0 && opened < rounds, "%d opened", opened);
    free(bytes.data);
}

TEST(a_missing_or_wrong_part_is_named)
{
    char err[512] = "";
    struct esp_model *model;
    struct folder_bytes first =
        folder_read(check_path("vectors/gguf/llama-gqa-00001-of-00002.gguf"));
    folder_copy("llama-mha");
    folder_write("m-00001-of-00002.gguf", first.data, first.size);
    CHECK(esp_model_open(&model, folder_file("m-00001-of-00002.gguf"), err, sizeof err) < 0 &&
              strstr(err, "m-00002-of-00002.gguf"),
          "%s", err);
    folder_write("m-00002-of-00002.gguf", first.data, first.size);
    CHECK(esp_model_open(&model, folder_file("m-00001-of-00002.gguf"), err, sizeof err) < 0 &&
              strstr(err, "not part 2 of 2"),
          "%s", err);
    folder_write("alone.gguf", first.data, first.size);
    CHECK(esp_model_open(&model, folder_file("alone.gguf"), err, sizeof err) < 0 &&
              strstr(err, "alone.gguf is the first of 2 parts"),
          "%s", err);
    free(first.data);
}
