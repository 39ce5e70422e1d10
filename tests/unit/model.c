/* model.c - tests reading good model folders. bad_model.c tests bad folders.
 *
 * The folders are in tests/vectors/logits. The Hugging Face library wrote them.
 */
#include "engine/model/model.h"

#include <cJSON.h>
#include <dirent.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/folder.h"
#include "engine/model/safetensors.h"

static char err[512];

static struct esp_model *open_good(const char *path)
{
    struct esp_model *model;
    int status = esp_model_open(&model, path, err, sizeof err);
    CHECK(status == 0, "%s: %d, %s", path, status, err);
    return model;
}

static struct esp_model *open_vector(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "vectors/logits/%s", name);
    return open_good(check_path(path));
}

TEST(dimensions_are_read)
{
    static const struct {
        const char *name, *architecture, *dtype;
        int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, rotary;
        bool tied, parallel;
    } rows[] = {
        {"llama-mha", "llama", "F32", 2, 32, 4, 4, 8, 24, 97, 8, false, false},
        {"llama-gqa", "llama", "F32", 2, 32, 4, 2, 8, 24, 97, 8, false, false},
        {"llama-mqa-tied", "llama", "F32", 2, 36, 6, 1, 6, 24, 97, 6, true, false},
        {"llama-bias", "llama", "F32", 2, 32, 4, 2, 8, 24, 97, 8, false, false},
        {"llama-head-dim", "llama", "F32", 2, 32, 4, 1, 12, 24, 97, 12, false, false},
        {"llama-rope3", "llama", "F32", 2, 32, 2, 1, 16, 24, 97, 16, false, false},
        {"llama-rope3-f16", "llama", "F16", 3, 32, 2, 2, 16, 24, 97, 16, false, false},
        {"llama-bf16", "llama", "BF16", 3, 32, 4, 2, 8, 24, 97, 8, false, false},
        {"neox-parallel", "gpt_neox", "F32", 2, 32, 2, 2, 16, 24, 103, 4, false, true},
        {"neox-sequential", "gpt_neox", "F32", 2, 32, 4, 4, 8, 24, 103, 8, false, false},
        {"neox-bf16", "gpt_neox", "BF16", 3, 32, 4, 4, 8, 24, 103, 4, false, true},
        {"neox-f16-tied", "gpt_neox", "F16", 2, 32, 2, 2, 16, 24, 103, 4, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct esp_model *model = open_vector(rows[i].name);
        const struct esp_model_desc *d = &model->desc;
        CHECK(strcmp(model->name, rows[i].name) == 0, "%s", model->name);
        CHECK(strcmp(model->architecture, rows[i].architecture) == 0);
        CHECK(strcmp(model->dtype, rows[i].dtype) == 0, "%s", model->dtype);
        CHECK(d->layers == rows[i].layers && d->hidden == rows[i].hidden &&
                  d->heads == rows[i].heads && d->kv_heads == rows[i].kv_heads &&
                  d->head_dim == rows[i].head_dim && d->ffn == rows[i].ffn &&
                  d->vocabulary == rows[i].vocabulary && d->rotary == rows[i].rotary &&
                  d->context == 256,
              "%s", rows[i].name);
        CHECK((d->head.data == d->embedding.data) == rows[i].tied, "%s", rows[i].name);
        CHECK(d->parallel_residual == rows[i].parallel && d->norm_epsilon == 1e-5f);
        bool llama = rows[i].architecture[0] == 'l';
        CHECK(d->norm == (llama ? ESP_NORM_RMS : ESP_NORM_LAYER));
        CHECK(d->activation == (llama ? ESP_SWIGLU : ESP_GELU));
        CHECK(!d->layer[0].gate.data == !llama && !d->norm_final_bias.data == llama);
        bool bias = strcmp(rows[i].name, "llama-bias") == 0 ||
                    (!llama && strcmp(rows[i].name, "neox-f16-tied") != 0);
        CHECK(!d->layer[1].value_bias.data == !bias && !d->layer[1].output_bias.data == !bias);
        CHECK(!d->layer[1].gate_bias.data == !(llama && bias));
        CHECK(!d->layer[1].down_bias.data == (llama && !bias));
        esp_model_close(model);
    }
}

TEST(layers_have_their_windows)
{
    static const struct {
        const char *name;
        int first, second;
    } rows[] = {{"mistral", 200, 200},
                {"mistral-window", 7, 7},
                {"qwen2", 0, 0},
                {"qwen2-window", 0, 5},
                {"qwen3-window", 6, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct esp_model *model = open_vector(rows[i].name);
        CHECK(model->desc.context == 256, "%s: %d", rows[i].name, model->desc.context);
        CHECK(model->desc.layer[0].window == rows[i].first &&
                  model->desc.layer[1].window == rows[i].second,
              "%s", rows[i].name);
        esp_model_close(model);
    }
}

/* The model has two sets of RoPE frequencies. The length of the context decides which set is
 * used. */
TEST(the_context_chooses_frequencies)
{
    struct esp_model *model = open_vector("phi3-short");
    const float last = model->desc.inverse_frequency[7];
    esp_model_set_context(model, 129);
    CHECK(model->desc.inverse_frequency[7] == last);
    esp_model_set_context(model, 128);
    CHECK(fabsf(model->desc.inverse_frequency[7] - 8 * last) < 1e-5f * last);
    esp_model_close(model);
}

/* In gemma3, layers with windows have their own RoPE frequencies. In smollm3, every fourth
 * layer has no RoPE. */
TEST(layers_have_their_rotations)
{
    struct esp_model *gemma = open_vector("gemma3"), *smol = open_vector("smollm3");
    for (int i = 0; i < 6; i++)
        CHECK(gemma->desc.layer[i].rotation ==
                  (i < 5 ? ESP_ROTATION_LOCAL : ESP_ROTATION_GLOBAL) &&
              gemma->desc.layer[i].window == (i < 5 ? 6 : 0));
    for (int i = 0; i < 4; i++)
        CHECK(smol->desc.layer[i].rotation ==
                  (i < 3 ? ESP_ROTATION_GLOBAL : ESP_ROTATION_NONE) &&
              smol->desc.layer[i].window == 0);
    CHECK(gemma->desc.local_inverse_frequency[1] > gemma->desc.inverse_frequency[1]);
    esp_model_close(gemma);
    esp_model_close(smol);
}

TEST(biases_of_qwen2_are_read)
{
    struct esp_model *model = open_vector("qwen2");
    const struct esp_layer *layer = &model->desc.layer[1];
    CHECK(layer->query_bias.data && layer->key_bias.data && layer->value_bias.data);
    CHECK(!layer->output_bias.data && !layer->gate_bias.data && !layer->down_bias.data);
    esp_model_close(model);
}

TEST(norms_of_heads_of_qwen3_are_read)
{
    struct esp_model *model = open_vector("qwen3"), *other = open_vector("qwen2");
    const struct esp_layer *layer = &model->desc.layer[1];
    CHECK(layer->query_norm.rows == 12 && layer->key_norm.rows == 12);
    CHECK(!layer->query_bias.data && !layer->output_bias.data);
    CHECK(!other->desc.layer[1].query_norm.data);
    esp_model_close(model);
    esp_model_close(other);
}

/* save_pretrained stores only what the model uses. So the description must use every byte of
 * data in the files. */
TEST(every_stored_number_is_used)
{
    static const char *const names[] = {
        "llama-gqa",    "llama-bias", "llama-mqa-tied", "neox-bf16", "neox-f16-tied",
        "mistral",      "qwen2",      "qwen3",          "gemma3",    "phi3-long",
        "phi3-partial", "olmo2",      "smollm3",        "gpt2",      "gpt2-f16",
        "granite",      "qwen3-moe",  "qwen3-moe-some", "gpt-oss",   "gpt-oss-floats"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        folder_copy(names[i]);
        size_t total = 0;
        DIR *dir = opendir(folder_path());
        for (struct dirent *entry; (entry = readdir(dir));) {
            const char *dot = strrchr(entry->d_name, '.');
            if (!dot || strcmp(dot, ".safetensors") != 0)
                continue;
            struct folder_bytes bytes = folder_read(folder_file(entry->d_name));
            total += bytes.size - 8 - folder_header_length(&bytes);
            free(bytes.data);
        }
        closedir(dir);
        struct esp_model *model = open_good(folder_path());
        size_t width = strcmp(model->dtype, "F32") == 0 ? 4 : 2;
        CHECK(model->bytes == total, "%s: %zu, want %zu", names[i], model->bytes, total);
        CHECK((size_t)model->parameters == total / width || strcmp(names[i], "gpt-oss") == 0);
        esp_model_close(model);
    }
}

static void check_text_part(const char *folder, const char *architecture, const char *prefix)
{
    struct esp_model *model = open_good(folder);
    const char *unused = NULL;
    CHECK(strcmp(model->architecture, architecture) == 0);
    CHECK(model->ignored > 10 && esp_stored_unused(model->files, &unused) == 0,
          "%d ignored, %s", model->ignored, unused);
    CHECK(!esp_stored_has_prefix(model->files, prefix) && model->end_count == 1);
    esp_model_close(model);
}

/* Versions of the transformers library put "language_model" in different places of a tensor's
 * name. */
TEST(text_parts_of_vision_models_open)
{
    static const char *const names[][2] = {{"gemma3-pictures", "gemma3_text"},
                                           {"mistral3-pictures", "mistral"},
                                           {"llava-pictures", "llama"}};
    for (int i = 0; i < 3; i++) {
        folder_copy(names[i][0]);
        check_text_part(folder_path(), names[i][1], "language_model.");
        struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
        char *at = bytes.data + 8;
        while ((at = strstr(at, "language_model.model.")))
            memcpy(at, "model.language_model.", strlen("model.language_model."));
        folder_write("model.safetensors", bytes.data, bytes.size);
        free(bytes.data);
        check_text_part(folder_path(), names[i][1], "model.language_model.");
    }
}

/* Returns the offset of a tensor's row in the file. */
static size_t row_of(const struct esp_tensor *tensor, int row)
{
    size_t width = tensor->dtype == ESP_F32 ? 4 : 2;
    size_t at = (size_t)(row / tensor->block * tensor->stride + row % tensor->block);
    return tensor->offset + at * (size_t)tensor->columns * width;
}

/* In gpt_neox, query, key and value are parts 0, 1 and 2 of one tensor. Row r of head h of a
 * part is row (3 h + part) head_dim + r in the file.
 */
TEST(fused_attention_is_split_by_head)
{
    struct esp_model *model = open_vector("neox-sequential");
    const struct esp_layer *layer = &model->desc.layer[1];
    const struct esp_tensor *slots[2][3] = {
        {&layer->query, &layer->key, &layer->value},
        {&layer->query_bias, &layer->key_bias, &layer->value_bias}};
    const char *stored[2] = {"gpt_neox.layers.1.attention.query_key_value.weight",
                             "gpt_neox.layers.1.attention.query_key_value.bias"};
    for (int k = 0; k < 2; k++) {
        const struct esp_stored *fused = esp_stored_find(model->files, stored[k]);
        CHECK(fused && fused->shape[0] == 96);
        for (int part = 0; part < 3; part++) {
            const struct esp_tensor *slot = slots[k][part];
            size_t row_bytes = k == 0 ? 32 * 4 : 4;
            CHECK(slot->rows == 32 && slot->columns == (k == 0 ? 32 : 1));
            for (int h = 0; h < 4; h++)
                for (int r = 0; r < 8; r++)
                    CHECK(row_of(slot, 8 * h + r) ==
                          fused->offset + (size_t)((3 * h + part) * 8 + r) * row_bytes);
        }
    }
    esp_model_close(model);
}

TEST(plain_tensors_are_contiguous)
{
    struct esp_model *model = open_vector("llama-gqa");
    const struct esp_tensor *key = &model->desc.layer[1].key;
    const struct esp_stored *stored =
        esp_stored_find(model->files, "model.layers.1.self_attn.k_proj.weight");
    CHECK(stored && key->source == stored->source && key->offset == stored->offset &&
          strstr(stored->file, "-of-00003"));
    CHECK(key->rows == 16 && key->columns == 32 && key->block == 16 && key->stride == 16);
    CHECK(model->desc.layer[0].norm1.rows == 32 && model->desc.layer[0].norm1.columns == 1);
    CHECK(!esp_stored_find(model->files, "model.layers.2.self_attn.k_proj.weight"));
    esp_model_close(model);
}

/* Compares the frequencies with those of the Hugging Face library, for every RoPE type and for
 * both spellings in config.json. powf may differ in the last bit. */
TEST(rotary_frequencies_match)
{
    static const char *const names[] = {
        "llama-mha",     "llama-rope3",     "llama-rope3-f16", "llama-mqa-tied",
        "neox-parallel", "neox-sequential", "llama-linear",    "mistral",
        "qwen2",         "qwen3",           "llama-yarn",      "qwen3-yarn",
        "gemma2",        "gemma3",          "gemma3-layers",   "phi3-short",
        "phi3-long",     "phi3-partial",    "olmo2",           "smollm3",
        "gpt-oss",       "gpt-oss-floats"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct esp_model *model = open_vector(names[i]);
        char path[PATH_MAX];
        esp_model_set_context(model, 64);
        snprintf(path, sizeof path, "%s/reference.json", model->path);
        struct folder_bytes bytes = folder_read(path);
        cJSON *reference = cJSON_Parse(bytes.data);
        cJSON *list = cJSON_GetObjectItem(reference, "inverse_frequency");
        CHECK(cJSON_GetArraySize(list) == model->desc.rotary / 2);
        for (int k = 0; k < model->desc.rotary / 2; k++) {
            double want = cJSON_GetArrayItem(list, k)->valuedouble;
            double got = model->desc.inverse_frequency[k];
            CHECK(fabs(got - want) <= 2 * FLT_EPSILON * want, "%s %d: %.9g, want %.9g",
                  names[i], k, got, want);
        }
        cJSON_Delete(reference);
        free(bytes.data);
        esp_model_close(model);
    }
}

TEST(names_without_prefix_are_accepted)
{
    static const char *const vectors[][2] = {{"llama-mha", "model."},
                                             {"neox-parallel", "gpt_neox."}};
    for (int i = 0; i < 2; i++) {
        folder_copy(vectors[i][0]);
        folder_strip_names("model.safetensors", vectors[i][1]);
        esp_model_close(open_good(folder_path()));
    }
}

/* If the files have more layers than config.json says, the surplus layers are not used, and
 * their tensors are reported. */
TEST(tensors_that_are_not_used_are_counted)
{
    const char *name = NULL;
    struct esp_model *model = open_vector("llama-mha");
    CHECK(esp_stored_unused(model->files, &name) == 0 && !name);
    esp_model_close(model);
    folder_copy("llama-mha");
    folder_edit("config.json", "num_hidden_layers", NULL, "1");
    model = open_good(folder_path());
    CHECK(esp_stored_unused(model->files, &name) == 9, "%d",
          esp_stored_unused(model->files, &name));
    CHECK(strcmp(name, "model.layers.1.input_layernorm.weight") == 0, "%s", name);
    esp_model_close(model);
}

TEST(tokens_and_preset_are_read)
{
    struct esp_model *model = open_vector("neox-parallel");
    CHECK(model->end_count == 2 && model->end[0] == 0 && model->end[1] == 5);
    CHECK(!model->preset);
    esp_model_close(model);

    folder_copy("llama-mha");
    folder_edit("config.json", "eos_token_id", NULL, "7");
    folder_edit("generation_config.json", "eos_token_id", NULL, "[9, 3]");
    folder_write_text("espalier.json", "{\"drafter\": \"linear:K=3\", "
                                       "\"sampling_drafter\": \"iid\"}");
    model = open_good(folder_path());
    CHECK(model->end_count == 2 && model->end[0] == 9 && model->end[1] == 3);
    CHECK(strcmp(model->preset, "linear:K=3") == 0 &&
          strcmp(model->sampling_preset, "iid") == 0);
    esp_model_close(model);

    unlink(folder_file("generation_config.json"));
    folder_write_text("espalier.json", "{}");
    model = open_good(folder_path());
    CHECK(model->end_count == 1 && model->end[0] == 7 && !model->preset);
    esp_model_close(model);
}

TEST(the_name_is_the_last_component_of_the_path)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/vectors/logits/llama-mha/.//", check_path(""));
    struct esp_model *model = open_good(path);
    CHECK(strcmp(model->name, "llama-mha") == 0, "%s", model->name);
    CHECK(strcmp(model->path, path) == 0);
    esp_model_close(model);
}

TEST(tensors_that_are_not_needed_may_exist)
{
    folder_copy("llama-mha");
    folder_edit_header("model.safetensors", "model.layers.0.rotary_emb.inv_freq", NULL,
                       "{\"dtype\":\"I64\",\"shape\":[0,5],\"data_offsets\":[0,0]}");
    esp_model_close(open_good(folder_path()));
}

/* Opening a folder copies nothing, so it takes almost no time. */
TEST(the_built_in_pair_opens_quickly)
{
    double best = 1;
    char path[PATH_MAX];
    for (int i = 0; i < 5; i++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s/../engine/models/fairytale-%s", check_path(""),
                     k ? "draft" : "target");
            struct esp_model *model = open_good(path);
            CHECK(model->desc.vocabulary == 4096 && model->desc.context == 768);
            CHECK(model->end_count == 1 && model->end[0] == 0);
            esp_model_close(model);
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        double seconds =
            (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
        best = seconds < best ? seconds : best;
    }
    CHECK(best < 0.05, "%.1f ms", 1e3 * best);
}
