/* inflate.c - tests that an enlarged model gives the same results as the original model. For
 * every small model of tests/vectors/logits, the logits must be equal. The enlarged built-in
 * target must continue a text with the same tokens. If an enlargement is refused, it must leave
 * no file.
 */
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/folder.h"
#include "engine/model/inflate.h"
#include "engine/model/model.h"

enum { TOKENS = 16, MAX_VOCABULARY = 128 };

static char parent[64] = "/tmp/espalier-inflate-XXXXXX";
static char made[PATH_MAX];

static void remove_made(void)
{
    char path[PATH_MAX + 300];
    DIR *folder = opendir(made);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%s", made, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(made);
}

static void begin(void)
{
    static bool made_parent;
    if (!made_parent)
        CHECK(mkdtemp(parent), "%s", parent);
    made_parent = true;
    snprintf(made, sizeof made, "%s/large", parent);
}

/* Computes the logits of a model. If `width` is not 0, the model is first enlarged in
 * memory. */
static void read_logits_of(const char *folder, int width, int layers,
                           float logits[TOKENS][MAX_VOCABULARY], struct esp_model_desc *desc)
{
    const struct esp_backend_ops *ops = &esp_backend_cpu;
    struct esp_model *model;
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *rows;
    char err[512] = "";
    int32_t tokens[TOKENS], positions[TOKENS];
    CHECK(esp_model_open(&model, folder, err, sizeof err) == 0, "%s", err);
    if (width > 0)
        CHECK(esp_model_enlarge(model, width, layers, err, sizeof err) == 0, "%s", err);
    CHECK(ops->open(&backend, 1, err, sizeof err) == 0, "%s", err);
    CHECK(ops->weights_open(&weights, backend, &model->desc, NULL, NULL, err, sizeof err) == 0,
          "%s", err);
    CHECK(ops->cache_open(&cache, weights, TOKENS, TOKENS, err, sizeof err) == 0, "%s", err);
    CHECK(ops->rows_open(&rows, backend, TOKENS, model->desc.vocabulary, err, sizeof err) == 0,
          "%s", err);
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (7 * i + 3) % model->desc.vocabulary;
        positions[i] = i;
    }
    struct esp_batch batch = {
        .rows = TOKENS, .tokens = tokens, .positions = positions, .logits = rows};
    CHECK(ops->forward(cache, &batch) == 0);
    for (int i = 0; i < TOKENS; i++)
        CHECK(ops->read_row(rows, i, logits[i]) == 0);
    *desc = model->desc;
    ops->rows_close(rows);
    ops->cache_close(cache);
    ops->weights_close(weights);
    ops->close(backend);
    esp_model_close(model);
}

static void read_logits(const char *folder, float logits[TOKENS][MAX_VOCABULARY],
                        struct esp_model_desc *desc)
{
    read_logits_of(folder, 0, 0, logits, desc);
}

/* A model that is enlarged in memory and the same model enlarged in a folder must give
 * bit-identical logits. */
TEST(a_larger_model_has_the_same_logits)
{
    static const struct {
        const char *name;
        int more; /* the number of layers that are added */
    } folders[] = {{"llama-mha", 3},
                   {"llama-gqa", 3},
                   {"llama-mqa-tied", 3},
                   {"llama-bias", 3},
                   {"llama-head-dim", 3},
                   {"llama-rope3", 3},
                   {"llama-bf16", 3},
                   {"neox-parallel", 3},
                   {"neox-sequential", 3},
                   {"neox-bf16", 3},
                   {"mistral", 3},
                   {"qwen2", 3},
                   {"qwen3", 3},
                   {"qwen3-moe", 3},
                   {"mistral3-pictures", 3},
                   {"phi3-partial", 3},
                   {"granite", 3},
                   {"qwen3-5", 3},
                   {"qwen3-5-tied", 3},
                   {"qwen3-5-moe", 3},
                   {"qwen3-5-moe-fused", 3},
                   {"qwen3-5-pictures", 3},
                   {"qwen3-next", 3},
                   {"lfm2", 3},
                   {"lfm2-bias", 3},
                   {"lfm2-moe", 0},
                   {"granite-hybrid", 3},
                   {"granite-hybrid-moe", 3},
                   {"nemotron-h", 3},
                   {"nemotron-h-ends", 3},
                   {"nemotron-h-moe", 0},
                   {"olmo2", 3},
                   {"smollm3", 3},
                   {"smollm3-window", 3},
                   {"phi3-long", 3},
                   {"phi3-short", 3},
                   {"llama-yarn", 3},
                   {"qwen3-yarn", 3},
                   {"llama-linear", 3}};
    static float before[TOKENS][MAX_VOCABULARY], after[TOKENS][MAX_VOCABULARY],
        memory[TOKENS][MAX_VOCABULARY];
    begin();
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        struct esp_model_desc small, large;
        char name[64], from[PATH_MAX], err[512] = "";
        snprintf(name, sizeof name, "vectors/logits/%s", folders[f].name);
        snprintf(from, sizeof from, "%s", check_path(name));
        read_logits(from, before, &small);
        for (int width = 1; width <= 4; width *= 4) {
            const int layers = small.layers + folders[f].more;
            CHECK(esp_model_inflate(from, made, width, layers, err, sizeof err) == 0, "%s",
                  err);
            read_logits(made, after, &large);
            CHECK(large.hidden == width * small.hidden && large.layers == layers &&
                  large.heads == width * small.heads && large.ffn == width * small.ffn &&
                  large.kv_heads == width * small.kv_heads && large.head_dim == small.head_dim);
            for (int i = 0; i < TOKENS; i++)
                for (int j = 0; j < small.vocabulary; j++)
                    CHECK(fabsf(before[i][j] - after[i][j]) < 1e-4f, "%s x %d: %g, not %g",
                          folders[f].name, width, (double)after[i][j], (double)before[i][j]);
            read_logits_of(from, width, layers, memory, &small);
            CHECK(small.hidden == large.hidden && small.layers == large.layers);
            for (int i = 0; i < TOKENS; i++)
                CHECK(memcmp(memory[i], after[i],
                             (size_t)small.vocabulary * sizeof *memory[i]) == 0,
                      "%s x %d, row %d", folders[f].name, width, i);
            read_logits(from, before, &small);
            remove_made();
        }
    }
}

/* The names of tensors in the file lack the prefix "model.". In the enlarged model, they have
 * it. */
TEST(a_model_whose_names_lack_the_prefix_can_be_enlarged)
{
    static float before[TOKENS][MAX_VOCABULARY], after[TOKENS][MAX_VOCABULARY];
    struct esp_model_desc small, large;
    char err[512] = "";
    begin();
    folder_copy("llama-mqa-tied");
    folder_strip_names("model.safetensors", "model.");
    read_logits(folder_path(), before, &small);
    CHECK(esp_model_inflate(folder_path(), made, 2, 0, err, sizeof err) == 0, "%s", err);
    read_logits(made, after, &large);
    CHECK(large.hidden == 2 * small.hidden);
    for (int i = 0; i < TOKENS; i++)
        for (int j = 0; j < small.vocabulary; j++)
            CHECK(fabsf(before[i][j] - after[i][j]) < 1e-4f);
    remove_made();
}

static int continuation(const char *target, int32_t *tokens, int capacity)
{
    struct esp_engine *engine;
    struct esp_session *session;
    char err[512] = "";
    int32_t prompt[64];
    const char *text = "Once upon a time there was a king who had three sons,";
    struct esp_engine_options options = {.target = target, .draft = "", .context = 256};
    struct esp_session_options settings = {.drafter = "ar"};
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_open(&session, engine, &settings, err, sizeof err) == 0, "%s", err);
    int count = esp_tokenize(engine, text, strlen(text), prompt, 64);
    CHECK(esp_session_prompt(session, prompt, count, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, capacity);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    int length;
    const int32_t *all = esp_session_tokens(session, &length);
    CHECK(length - count <= capacity);
    memcpy(tokens, all + count, (size_t)(length - count) * sizeof *tokens);
    length -= count;
    esp_session_close(session);
    esp_engine_close(engine);
    return length;
}

TEST(the_enlarged_built_in_target_writes_the_same_text)
{
    enum { NEW = 100 };
    int32_t before[NEW], after[NEW];
    char err[512] = "";
    begin();
    CHECK(esp_model_inflate("engine/models/fairytale-target", made, 2, 8, err, sizeof err) == 0,
          "%s", err);
    int count = continuation("engine/models/fairytale-target", before, NEW);
    CHECK(count > 50);
    CHECK(continuation(made, after, NEW) == count);
    CHECK(memcmp(before, after, (size_t)count * sizeof *before) == 0);
    remove_made();
}

TEST(a_refused_enlargement_leaves_no_files)
{
    char from[PATH_MAX], half[PATH_MAX], part[PATH_MAX + 8], err[512] = "";
    begin();
    snprintf(from, sizeof from, "%s", check_path("vectors/logits/llama-gqa"));
    snprintf(half, sizeof half, "%s", check_path("vectors/logits/llama-rope3-f16"));
    snprintf(part, sizeof part, "%s.part", made);
    CHECK(esp_model_inflate(from, made, 3, 8, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(strstr(err, "not 3"), "%s", err);
    CHECK(esp_model_inflate(from, made, 2, 1, err, sizeof err) == ESP_E_ARGUMENT, "%s", err);
    CHECK(esp_model_inflate(half, made, 2, 0, err, sizeof err) == ESP_E_UNSUPPORTED);
    CHECK(strstr(err, "F16"), "%s", err);
    snprintf(half, sizeof half, "%s", check_path("vectors/logits/qwen3-moe-some"));
    CHECK(esp_model_inflate(half, made, 1, 8, err, sizeof err) == ESP_E_UNSUPPORTED);
    CHECK(strstr(err, "some layers"), "%s", err);
    snprintf(half, sizeof half, "%s", check_path("vectors/logits/gpt-oss-floats"));
    CHECK(esp_model_inflate(half, made, 2, 0, err, sizeof err) == ESP_E_UNSUPPORTED);
    CHECK(strstr(err, "mixture"), "%s", err);
    snprintf(half, sizeof half, "%s", check_path("vectors/logits/llama-rope3-f16"));
    struct esp_engine *engine;
    CHECK(esp_engine_open(&engine, &(struct esp_engine_options){.target = half, .width = 2},
                          err, sizeof err) == ESP_E_UNSUPPORTED);
    CHECK(strstr(err, "F16"), "%s", err);
    CHECK(esp_engine_open(&engine, &(struct esp_engine_options){.target = from, .width = 3},
                          err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(esp_model_inflate(from, from, 2, 0, err, sizeof err) == ESP_E_FILE);
    CHECK(strstr(err, "already"), "%s", err);
    CHECK(esp_model_inflate(from, "/nowhere/large", 2, 0, err, sizeof err) == ESP_E_FILE);
    CHECK(access(made, F_OK) != 0 && access(part, F_OK) != 0);
    CHECK(esp_model_inflate(from, made, 2, 0, err, sizeof err) == 0, "%s", err);
    CHECK(access(part, F_OK) != 0);
    remove_made();
    rmdir(parent);
}
