/* cuda_ranks.c - tests models that are divided among GPUs. In exact mode, the results of any
 * division must be bit-identical to those of one GPU. cuda_failures.c tests failures with two
 * GPUs.
 *
 * The emulator has as many GPUs as a test needs. On a real machine, this test needs at least
 * two GPUs.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends.h"
#include "tests/check.h"
#include "tests/divided.h"
#include "tests/each_backend.h"

enum { MOST_GPUS = 3 };

static void *symbol(const char *name)
{
    void *plugin = dlopen(getenv("ESPALIER_CUDA_PLUGIN"), RTLD_NOW);
    CHECK(plugin, "%s", dlerror());
    void *found = dlsym(plugin, name);
    CHECK(found, "%s", name);
    return found;
}

/* Returns the number of GPUs, at most MOST_GPUS. With only one GPU, nothing is tested. */
static int gpus(void)
{
    struct esp_backend *backend;
    char err[300] = "";
    int count = has_cuda() ? 1 : 0;
    if (count > 0 && !cuda_is_real()) {
        void (*set_devices)(int);
        *(void **)&set_devices = symbol("emu_set_devices");
        set_devices(MOST_GPUS);
        return MOST_GPUS;
    }
    while (count > 0 && count < MOST_GPUS &&
           esp_backend_cuda.open_device(&backend, count, err, sizeof err) == 0) {
        backend->ops->close(backend);
        count++;
    }
    if (count < MOST_GPUS)
        printf("    not tested with more than %d GPUs: %s\n", count, err);
    return count;
}

static struct esp_backend *open_gpus(const struct division *d)
{
    struct esp_backend *backend = open_cuda();
    char err[300] = "";
    backend->ops->set_exact(backend, true);
    CHECK(divided_start(backend, d, err, sizeof err) == 0, "%s", err);
    return backend;
}

static const char *const models[] = {
    "logits/llama-gqa",      "logits/llama-bf16",   "logits/qwen3-moe-some", "logits/olmo2",
    "logits/gemma2",         "logits/gpt-oss",      "logits/neox-parallel",  "logits/gpt2-f16",
    "logits/smollm3-window", "gguf/qwen3-moe.gguf", "gguf/mixed.gguf"};
enum { MODELS = sizeof models / sizeof *models };

static const struct division divisions[] = {
    {.ranks = 2},
    {.ranks = 3, .share = {1, 5, 2}},
    {.ranks = 2, .whole = ATTENTION | DOWN},
    {.ranks = 2, .share = {3, 1}, .whole = OUTPUT | MLP | HEAD}};
enum { DIVISIONS = sizeof divisions / sizeof *divisions };

TEST(any_number_of_gpus_gives_the_same_bits)
{
    const struct division alone = {.ranks = 1};
    static const struct esp_window window = {.sinks = 2, .recent = 5};
    const int most = gpus();
    if (most < 2)
        return;
    struct esp_backend *one = open_gpus(&alone);
    struct esp_model *model[MODELS];
    struct divided_results expected[MODELS];
    for (int i = 0; i < MODELS; i++) {
        model[i] = divided_model(models[i]);
        expected[i] = divided_compute(one, &model[i]->desc, i % 2 ? &window : NULL);
    }
    one->ops->close(one);
    for (int k = 0; k < (check_quick() ? 2 : DIVISIONS); k++) {
        if (divisions[k].ranks > most)
            continue;
        struct esp_backend *many = open_gpus(&divisions[k]);
        for (int i = 0; i < MODELS; i++)
            divided_compare(many, &model[i]->desc, i % 2 ? &window : NULL, &expected[i],
                            models[i], &divisions[k]);
        many->ops->close(many);
    }
    for (int i = 0; i < MODELS; i++) {
        esp_model_close(model[i]);
        free(expected[i].values);
    }
}

/* The pass has more rows than a graph can have, and more rows of logits than are exchanged at a
 * time. */
TEST(a_long_pass_gives_the_same_bits)
{
    const int most = gpus();
    const struct division alone = {.ranks = 1}, all = {.ranks = most, .share = {2, 1, 1}};
    enum { LONG = 75 };
    static float row[2][4096];
    if (most < 2)
        return;
    struct esp_backend *one = open_gpus(&alone), *many = open_gpus(&all);
    struct esp_model *model = divided_model("logits/llama-bf16");
    struct divided m[2];
    divided_open_on(&m[0], one, &model->desc);
    divided_open_on(&m[1], many, &model->desc);
    const size_t width = (size_t)m[0].vocabulary;
    CHECK(width <= 4096 && divided_run_chain(&m[0], 0, LONG, true) == 0 &&
          divided_run_chain(&m[1], 0, LONG, true) == 0);
    for (int i = 0; i < LONG; i++) {
        CHECK(m[0].ops->read_row(m[0].logits, i, row[0]) == 0 &&
              m[1].ops->read_row(m[1].logits, i, row[1]) == 0);
        CHECK(memcmp(row[0], row[1], width * sizeof(float)) == 0, "row %d", i);
    }
    divided_close_on(&m[1]);
    divided_close_on(&m[0]);
    esp_model_close(model);
    one->ops->close(one);
    many->ops->close(many);
}

TEST(an_own_copy_is_divided_with_its_target)
{
    const struct division alone = {.ranks = 1};
    const struct division two = {.ranks = 2, .share = {2, 1}, .whole = OUTPUT};
    if (gpus() < 2)
        return;
    struct esp_backend *one = open_gpus(&alone), *many = open_gpus(&two);
    divided_compare_copy(one, many);
    one->ops->close(one);
    many->ops->close(many);
}
