/* training_step.c - compares one whole training step of a draft head with PyTorch
 * (tests/vectors/make_training_vectors.py). The step has a forward pass over texts and trees,
 * HASS's loss, a backward pass, clipping, and AdamW.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/safetensors.h"
#include "engine/train/network.h"
#include "engine/train/loss.h"
#include "kernels/model_desc.h"
#include "tests/check.h"
#include "tests/network_reference.h"

enum { H = REFERENCE_HIDDEN, V = REFERENCE_VOCABULARY, PASSES = 3 };

static struct esp_stored_set *set;

/* Reads a tensor from the file. It must have `count` numbers. */
static void read_tensor(const char *prefix, const char *name, float *to, size_t count)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    const struct esp_stored *t = esp_stored_find(set, whole);
    CHECK(t, "no %s", whole);
    CHECK(t->end - t->begin == count * sizeof *to, "size of %s", whole);
    esp_tensor_file_read(t->source, t->offset, to, count * sizeof *to);
}

static void read_batch(struct reference_batch *b)
{
    static float rows[REFERENCE_ROWS][6];
    const struct esp_stored *t = esp_stored_find(set, "rows");
    CHECK(t && t->rank == 2 && t->shape[0] <= REFERENCE_ROWS, "rows");
    const int n = (int)t->shape[0];
    read_tensor("", "rows", &rows[0][0], (size_t)n * 6);
    reference_batch_make(b, true);
    CHECK(b->rows.count == n, "%d rows", n);
    for (int i = 0; i < n; i++) {
        b->token[i] = (int)rows[i][0];
        CHECK(b->position[i] == (int)rows[i][1] && b->parent[i] == (int)rows[i][2] &&
                  b->first[i] == (int)rows[i][3] && b->seen[i] == (int)rows[i][4] &&
                  b->depth[i] == (int)rows[i][5],
              "row %d does not have the position that it has in PyTorch", i);
    }
    read_tensor("", "feature", b->feature, (size_t)b->rows.pass_end[0] * H);
    read_tensor("", "target_feature", b->target_feature, (size_t)n * H);
    read_tensor("", "weight", b->weight, (size_t)n);
}

static void read_parameters(const struct esp_parameters *p)
{
    for (int i = 0; i < p->count; i++) {
        const struct esp_parameter *one = &p->list[i];
        read_tensor("before.", one->name, p->value + one->offset, esp_parameter_size(one));
        read_tensor("first.", one->name, p->first + one->offset, esp_parameter_size(one));
        read_tensor("second.", one->name, p->second + one->offset, esp_parameter_size(one));
    }
}

static void check_changes(const struct esp_parameters *p, const float *before)
{
    for (int i = 0; i < p->count; i++) {
        const struct esp_parameter *one = &p->list[i];
        const size_t n = esp_parameter_size(one);
        float *change = calloc(n, sizeof *change), most = 0;
        read_tensor("change.", one->name, change, n);
        for (size_t j = 0; j < n; j++)
            most = fmaxf(most, fabsf(change[j]));
        for (size_t j = 0; j < n; j++) {
            float made = p->value[one->offset + j] - before[one->offset + j];
            CHECK(fabsf(made - change[j]) <= 1e-4f * most, "%s, %zu: %.7g, want %.7g",
                  one->name, j, (double)made, (double)change[j]);
        }
        free(change);
    }
}

static double run(struct esp_network *d, struct esp_workers *workers, struct reference_batch *b,
                  const float *target_head)
{
    static const struct esp_loss_weights weights = {
        .cls = 10.0, .reg = 1.0, .distil = 10.0, .top = 10};
    struct esp_loss_memory *memory;
    struct esp_loss_sums sums = {0};
    char err[256] = "";
    double loss = 0;
    CHECK(esp_loss_open(&memory, V, err, sizeof err) == 0, "%s", err);
    struct esp_loss_input in = {.rows = b->rows.count,
                                .vocabulary = V,
                                .weight = b->weight,
                                .depth = b->depth,
                                .hidden = H,
                                .head = target_head,
                                .target_hidden = H,
                                .feature = b->target_feature,
                                .target_head = target_head};
    in.out = esp_network_forward(d, &b->rows);
    in.d_out = esp_network_output_gradient(d, &b->rows);
    CHECK(esp_loss(workers, memory, &weights, &in, &sums) == 0, "loss");
    esp_network_backward(d, &b->rows);
    esp_loss_close(memory);
    for (int i = 0; i < PASSES; i++)
        loss += sums.loss[i];
    return loss;
}

TEST(one_training_step_matches_pytorch)
{
    static struct reference_batch batch;
    static float embedding[V * H], target_head[V * H];
    const struct esp_optimizer optimizer = {.rate = 1e-2,
                                            .beta1 = 0.9,
                                            .beta2 = 0.95,
                                            .epsilon = 1e-8,
                                            .decay = 0.01,
                                            .clip = 0.5,
                                            .warmup = 6,
                                            .steps = 100};
    struct esp_workers *workers;
    struct esp_network d;
    struct esp_network_shape shape;
    char err[256] = "";
    float expected;
    CHECK(esp_safetensors_open(&set, check_path("vectors/training"), NULL, err, sizeof err) ==
              0,
          "%s", err);
    read_tensor("", "embedding", embedding, V * H);
    read_tensor("", "target_head", target_head, V * H);
    read_batch(&batch);
    reference_shape(&shape, true, true, false);
    shape.qkv_bias = false;
    CHECK(esp_workers_open(&workers, 2, err, sizeof err) == 0, "%s", err);
    CHECK(esp_network_open(&d, &shape, workers, embedding, err, sizeof err) == 0, "%s", err);
    read_parameters(&d.parameters);
    float *before = calloc(d.parameters.total, sizeof *before);
    memcpy(before, d.parameters.value, d.parameters.total * sizeof *before);

    double loss = run(&d, workers, &batch, target_head);
    read_tensor("", "loss", &expected, 1);
    CHECK(fabs(loss - expected) <= 1e-5 * expected, "loss %.9g, want %.9g", loss,
          (double)expected);
    double length = esp_optimizer_step(&optimizer, workers, &d.parameters, 5);
    read_tensor("", "length", &expected, 1);
    CHECK(fabs(length - expected) <= 1e-5 * expected, "gradient %.9g, want %.9g", length,
          (double)expected);
    check_changes(&d.parameters, before);
    free(before);
    esp_network_close(&d);
    esp_workers_close(workers);
    esp_stored_close(set);
}
