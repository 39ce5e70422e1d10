/* train.c - tests complete training runs. The trees that the target grows must have the
 * target's distributions along their paths. If a run is interrupted and continued, it must
 * write the same files. The loss must decrease, and errors must be reported. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/support/paths.h"
#include "engine/train/draft_samples.h"
#include "engine/train/train_draft.h"
#include "tests/check.h"
#include "tests/folder.h"

/* The length of a piece of text. SHORT is used under sanitizers, where training takes a hundred
 * times as long. */
enum { LENGTH = 24, SHORT = 8 };

static int length(void)
{
    return check_quick() ? SHORT : LENGTH;
}

static char parent[64] = "/tmp/espalier-train-XXXXXX";
static char target[PATH_MAX], draft[PATH_MAX], text[PATH_MAX];

static const char *const left[] = {"model.safetensors", "config.json",
                                   "tokenizer.json",    "checkpoint",
                                   "features.bin",      "tokenizer_config.json",
                                   "features.bin.part", "generation_config.json"};

static char *in_parent(char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", parent, name);
    return path;
}

static void remove_folder(const char *name)
{
    char folder[PATH_MAX], path[PATH_MAX + 40];
    in_parent(folder, name);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, left[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void remove_all(void)
{
    const char *const folders[] = {"whole", "parts", "draft", "bad"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        remove_folder(folders[i]);
    unlink(text);
    rmdir(parent);
}

/* Makes a text of a few hundred tokens, and opens the built-in pair. */
static void begin(void)
{
    static bool begun;
    if (begun)
        return;
    begun = true;
    CHECK(mkdtemp(parent), "%s", parent);
    atexit(remove_all);
    FILE *file = fopen(in_parent(text, "text"), "w");
    CHECK(file, "%s", text);
    for (int i = 0; i < 60; i++)
        fprintf(file,
                "Once upon a time there lived %d kings, and the king number %d had a %s. ", i,
                i * 7 % 60, i % 3 ? "daughter" : "golden bird in a cage");
    fclose(file);
    CHECK(esp_find_data(target, sizeof target, "models", "fairytale-target") == 0, "target");
    CHECK(esp_find_data(draft, sizeof draft, "models", "fairytale-draft") == 0, "draft");
}

static const char *const texts[] = {text};

static struct esp_train_options options_for(const char *output, const char *loss)
{
    return (struct esp_train_options){.head = true,
                                      .target = target,
                                      .output = output,
                                      .loss = loss,
                                      .texts = texts,
                                      .text_count = 1,
                                      .tokens = 20 * length(),
                                      .length = length(),
                                      .batch = check_quick() ? 4 : 2,
                                      .epochs = 2,
                                      .rate = 1e-3,
                                      .seed = 5,
                                      .checkpoint_seconds = 1e9};
}

/* ------------------------------------------------------------------ the target's trees */

/* Writes the tokens on the path from the root to `node` into a text. Returns the position
 * of the node in the text. */
static int put_path(const struct esp_training_sample *sample,
                    const struct esp_teacher_shape *shape, int root, int node, int32_t *tokens)
{
    const int at = root * shape->every + node / 3 + 1;
    for (int i = node, d = at; i >= 0 && at < shape->length; d--) {
        tokens[d] = sample->node_token[root * 9 + i];
        i = sample->node_parent[root * 9 + i];
        CHECK((i < 0) == (d == root * shape->every + 1), "depth of node %d", node);
    }
    return at;
}

/* Lets the model in `folder` grow trees at the tokens 0, `every`, 2 * `every`, ... of a text.
 * Compares the trees with passes that run each path as a text. */
static void check_trees(const char *folder, int tokens, int every)
{
    struct esp_teacher_shape shape = {.length = tokens, .every = every, .k = 3, .depth = 4};
    struct esp_teacher_shape plain;
    struct esp_training_sample sample, path;
    struct esp_model *model;
    struct esp_teacher *teacher;
    char err[512] = "";
    CHECK(esp_model_open(&model, folder, err, sizeof err) == 0, "%s", err);
    shape.hidden = model->desc.hidden;
    shape.vocabulary = model->desc.vocabulary;
    plain = shape;
    plain.every = 0;
    CHECK(esp_training_sample_open(&sample, &shape) == 0 &&
              esp_training_sample_open(&path, &plain) == 0,
          "room");
    CHECK(sample.roots == (tokens + every - 1) / every && sample.nodes == 9,
          "%d roots, %d nodes", sample.roots, sample.nodes);
    for (int i = 0; i < tokens; i++)
        sample.token[i] = (7 * i * i + 3) % shape.vocabulary;
    CHECK(esp_teacher_open(&teacher, model, &shape, 2, err, sizeof err) == 0, "%s", err);
    CHECK(esp_teacher_teach(teacher, &sample, err, sizeof err) == 0, "%s", err);
    esp_teacher_close(teacher);
    CHECK(esp_teacher_open(&teacher, model, &plain, 1, err, sizeof err) == 0, "%s", err);
    for (int i = 0; i < sample.roots * sample.nodes; i++) {
        memcpy(path.token, sample.token, (size_t)tokens * sizeof *path.token);
        const int at =
            put_path(&sample, &shape, i / sample.nodes, i % sample.nodes, path.token);
        const size_t hidden = (size_t)shape.hidden;
        if (at >= tokens)
            continue;
        CHECK(esp_teacher_teach(teacher, &path, err, sizeof err) == 0, "%s", err);
        CHECK(memcmp(path.feature + (size_t)at * hidden,
                     sample.node_feature + (size_t)i * hidden,
                     hidden * sizeof *path.feature) == 0,
              "%s: node %d", folder, i);
    }
    esp_teacher_close(teacher);
    esp_training_sample_close(&sample);
    esp_training_sample_close(&path);
    esp_model_close(model);
}

TEST(a_tree_has_the_targets_distributions_along_its_paths)
{
    begin();
    check_trees(target, length(), 5);
}

TEST(trees_of_recurrent_models_have_their_distributions)
{
    static const char *const folders[] = {"qwen3-5", "granite-hybrid", "lfm2"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char name[64], folder[PATH_MAX];
        snprintf(name, sizeof name, "vectors/logits/%s", folders[i]);
        snprintf(folder, sizeof folder, "%s", check_path(name));
        check_trees(folder, length(), 5);
        if (check_quick())
            continue;
        check_trees(folder, 300, 90);  /* the trees of two roots grow together */
        check_trees(folder, 290, 270); /* the text between two roots does not fit in a batch */
    }
}

TEST(halves_are_rounded_to_even)
{
    const struct {
        float from, to;
    } cases[] = {{0, 0},
                 {-1, -1},
                 {1.0f / 3, 0x1.554p-2f},
                 {65504, 65504},
                 {1e9f, 65504},
                 {-1e9f, -65504},
                 {0x1p-24f, 0x1p-24f},
                 {0x1p-26f, 0},
                 {0x1.002p0f, 1},
                 {0x1.006p0f, 0x1.008p0f},
                 {0x1.ffcp-15f, 0x1p-14f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(esp_half_to_float(esp_half(cases[i].from)) == cases[i].to, "%g became %g",
              (double)cases[i].from, (double)esp_half_to_float(esp_half(cases[i].from)));
}

/* ------------------------------------------------------------------ trainings */

struct stop {
    int64_t at;     /* the step at which to stop, or 0 for never */
    bool measuring; /* true to stop after the held-out pieces were evaluated */
    int reports;
    float first, last;
    struct esp_train_check check;
};

static bool stop_at(void *user, const struct esp_train_report *r)
{
    struct stop *s = user;
    s->reports++;
    s->check = r->check;
    if (r->stage != ESP_TRAIN_STEPS)
        return r->stage != ESP_TRAIN_VALIDATE || !s->measuring;
    s->first = r->loss[0];
    s->last = r->loss[r->done - 1];
    return s->at == 0 || r->done < s->at;
}

static int train(struct esp_train_options o, struct stop *stop, char *err, size_t errlen)
{
    o.progress = stop_at;
    o.user = stop;
    return esp_train(&o, err, errlen);
}

static bool is_there(const char *folder, const char *name)
{
    char path[PATH_MAX + 40];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

TEST(a_training_interrupted_at_ten_places_ends_with_the_same_file)
{
    char whole[PATH_MAX], parts[PATH_MAX], path[PATH_MAX + 40], err[512] = "";
    struct stop stop = {0};
    begin();
    struct esp_train_options o =
        options_for(in_parent(whole, "whole"), "hass:every=3,noise=0.1");
    CHECK(train(o, &stop, err, sizeof err) == 0, "%s", err);
    CHECK(stop.check.depths == 3 && stop.check.epoch == 2, "%d depths", stop.check.depths);
    o.output = in_parent(parts, "parts");
    const int places = check_quick() ? 4 : 11;
    for (int i = 0; i < places; i++) {
        stop.at = 2 * i + 1;
        stop.measuring = i == places - 1;
        if (stop.measuring)
            stop.at = 0;
        CHECK(train(o, &stop, err, sizeof err) == ESP_E_CANCELLED, "%s", err);
        CHECK(is_there(parts, "checkpoint") && !is_there(parts, "model.safetensors"), "files");
        o.resume = true;
    }
    stop.measuring = false;
    CHECK(train(o, &stop, err, sizeof err) == 0, "%s", err);
    CHECK(!is_there(parts, "checkpoint") && !is_there(parts, "features.bin"), "left behind");
    snprintf(path, sizeof path, "%s/model.safetensors", whole);
    struct folder_bytes a = folder_read(path);
    snprintf(path, sizeof path, "%s/model.safetensors", parts);
    struct folder_bytes b = folder_read(path);
    CHECK(a.size == b.size && memcmp(a.data, b.data, a.size) == 0, "the files differ");
    free(a.data);
    free(b.data);
    remove_folder("whole");
    remove_folder("parts");
}

TEST(a_draft_model_learns_from_trees_and_can_be_opened)
{
    char folder[PATH_MAX], err[512] = "";
    struct stop stop = {0};
    struct esp_model *model;
    begin();
    struct esp_train_options o = options_for(in_parent(folder, "draft"), "talf:k=2,every=6");
    o.head = false;
    o.draft = draft;
    o.epochs = check_quick() ? 1 : 3;
    CHECK(train(o, &stop, err, sizeof err) == 0, "%s", err);
    CHECK(check_quick() || stop.last < stop.first, "the loss did not decrease: %g, then %g",
          (double)stop.first, (double)stop.last);
    CHECK(esp_model_open(&model, folder, err, sizeof err) == 0, "%s", err);
    CHECK(is_there(folder, "tokenizer.json"), "no tokenizer");
    esp_model_close(model);
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_FILE && strstr(err, "--force"), "%s", err);
    remove_folder("draft");
}

TEST(models_that_cannot_be_trained_are_refused_with_a_sentence)
{
    char folder[PATH_MAX], err[512] = "", path[PATH_MAX + 40];
    struct stop stop = {.at = 1};
    begin();
    struct esp_train_options o = options_for(in_parent(folder, "bad"), "ce");
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_ARGUMENT && strstr(err, "no loss ce"), "%s",
          err);
    o.loss = "eagle:k=3";
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_ARGUMENT, "%s", err);
    o.loss = "eagle";
    o.resume = true;
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_FILE && strstr(err, "without --resume"),
          "%s", err);
    o.resume = false;
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_CANCELLED, "%s", err);
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_FILE && strstr(err, "--resume"), "%s", err);
    o.resume = true;
    o.rate = 2e-3;
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_MISMATCH, "%s", err);
    o.rate = 1e-3;
    snprintf(path, sizeof path, "%s/checkpoint", folder);
    struct folder_bytes bytes = folder_read(path);
    bytes.data[bytes.size / 2] ^= 1;
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes.data, 1, bytes.size, file) == bytes.size, "%s", path);
    fclose(file);
    free(bytes.data);
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_FORMAT && strstr(err, "damaged"), "%s",
          err);
    CHECK(truncate(path, 100) == 0, "%s", path);
    CHECK(train(o, &stop, err, sizeof err) == ESP_E_FORMAT, "%s", err);
    remove_folder("bad");
}
