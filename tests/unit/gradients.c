/* gradients.c - compares backward passes with finite differences, and products with plain
 * loops. Results must be bit-identical for every instruction set and any number of threads.
 *
 * The finite differences come from a reference in double precision (tests/network_reference.h).
 * Their error is below 1e-8, so a tolerance of 1e-4 detects every real mistake.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/network.h"
#include "engine/train/loss.h"
#include "kernels/cpu/cpu.h"
#include "tests/check.h"
#include "tests/network_reference.h"

enum { H = REFERENCE_HIDDEN, V = REFERENCE_VOCABULARY };

struct network {
    struct esp_workers *workers;
    struct esp_network network;
    struct esp_loss_memory *memory;
    struct reference_batch batch;
    struct esp_loss_input input;
    float table[V * H], target_head[V * H]; /* the target's embedding and output head */
    struct esp_loss_sums sums;
};

static void open_network(struct network *n, bool features, bool bias, bool tied, int threads)
{
    struct esp_network_shape shape;
    unsigned long long state = 3;
    char err[256] = "";
    memset(n, 0, sizeof *n);
    for (int i = 0; i < V * H; i++) {
        n->table[i] = (float)(2 * check_uniform(&state) - 1);
        n->target_head[i] = (float)(2 * check_uniform(&state) - 1);
    }
    reference_shape(&shape, features, bias, tied);
    CHECK(esp_workers_open(&n->workers, threads, err, sizeof err) == 0, "%s", err);
    CHECK(esp_network_open(&n->network, &shape, n->workers, features ? n->table : NULL, err,
                           sizeof err) == 0,
          "%s", err);
    CHECK(esp_loss_open(&n->memory, V, err, sizeof err) == 0, "%s", err);
    reference_randomise(&n->network.parameters, 11);
    reference_batch_make(&n->batch, features);
}

static void close_network(struct network *n)
{
    esp_network_close(&n->network);
    esp_loss_close(n->memory);
    esp_workers_close(n->workers);
}

static void run(struct network *n, const struct esp_loss_weights *weights)
{
    const struct esp_training_rows *rows = &n->batch.rows;
    const int head = n->network.head;
    const float *out = esp_network_forward(&n->network, rows);
    CHECK(out, "no memory");
    n->input = (struct esp_loss_input){
        .rows = rows->count,
        .vocabulary = V,
        .weight = n->batch.weight,
        .depth = n->batch.depth,
        .hidden = H,
        .out = out,
        .head = head < 0 ? n->target_head : esp_parameter_value(&n->network.parameters, head),
        .target_hidden = H,
        .feature = n->batch.target_feature,
        .target_head = n->target_head,
        .d_out = esp_network_output_gradient(&n->network, rows),
        .d_head = esp_parameter_gradient(&n->network.parameters, head),
    };
    memset(&n->sums, 0, sizeof n->sums);
    CHECK(esp_loss(n->workers, n->memory, weights, &n->input, &n->sums) == 0, "loss");
    esp_network_backward(&n->network, rows);
}

/* Returns the slope of the reference's loss along `direction`. A direction has a number for
 * each parameter. */
static double slope(const struct network *n, const double *direction,
                    const struct esp_loss_weights *weights)
{
    const size_t total = n->network.parameters.total;
    const double h = 1e-5;
    double *at = calloc(total, sizeof *at), loss[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < total; i++)
            at[i] = n->network.parameters.value[i] + (side ? h : -h) * direction[i];
        loss[side] = reference_loss(&n->network, at, &n->batch, &n->input, weights);
    }
    free(at);
    return (loss[1] - loss[0]) / (2 * h);
}

/* Compares the gradient of each parameter tensor with the slope of the loss along one
 * direction. The direction is the gradient of the tensor plus a random vector. */
static void check_slopes(struct network *n, const struct esp_loss_weights *weights)
{
    const struct esp_parameters *p = &n->network.parameters;
    unsigned long long state = 5;
    double *direction = calloc(p->total, sizeof *direction);
    for (int i = 0; i < p->count; i++) {
        const size_t size = esp_parameter_size(&p->list[i]);
        const float *g = p->gradient + p->list[i].offset;
        double length = 0, expected = 0;
        for (size_t j = 0; j < size; j++)
            length += (double)g[j] * g[j];
        CHECK(length > 0, "%s has no gradient", p->list[i].name);
        memset(direction, 0, p->total * sizeof *direction);
        for (size_t j = 0; j < size; j++) {
            double u = g[j] / sqrt(length) + (check_uniform(&state) - 0.5) / sqrt((double)size);
            direction[p->list[i].offset + j] = u;
            expected += u * g[j];
        }
        double measured = slope(n, direction, weights);
        CHECK(fabs(measured - expected) <= 1e-4 * fabs(measured), "%s: %.9g, want %.9g",
              p->list[i].name, expected, measured);
    }
    free(direction);
}

static const struct esp_loss_weights losses[] = {
    {.cls = 1.0},
    {.cls = 10.0, .reg = 1.0},
    {.cls = 0.1, .reg = 1.0, .smooth = true},
    {.cls = 10.0, .reg = 1.0, .distil = 10.0, .top = 10},
};
enum { LOSSES = sizeof losses / sizeof *losses };

TEST(gradients_of_a_draft_head_match_finite_differences)
{
    for (int i = 0; i < LOSSES; i++) {
        struct network n;
        open_network(&n, true, i % 2, false, 2);
        run(&n, &losses[i]);
        check_slopes(&n, &losses[i]);
        close_network(&n);
    }
}

TEST(gradients_of_a_draft_model_match_finite_differences)
{
    for (int i = 0; i < 2; i++) {
        struct network n;
        open_network(&n, false, i, !i, 2);
        run(&n, &losses[0]);
        check_slopes(&n, &losses[0]);
        close_network(&n);
    }
}

TEST(the_loss_matches_the_reference)
{
    struct network n;
    double loss = 0, expected = 0;
    open_network(&n, true, false, false, 2);
    for (int i = 0; i < n.batch.rows.count; i++)
        n.batch.weight[i] = 1.0f;
    run(&n, &losses[3]);
    double *value = calloc(n.network.parameters.total, sizeof *value);
    for (size_t i = 0; i < n.network.parameters.total; i++)
        value[i] = n.network.parameters.value[i];
    expected = reference_loss(&n.network, value, &n.batch, &n.input, &losses[3]);
    for (int i = 0; i < ESP_LOSS_DEPTHS; i++)
        loss += n.sums.loss[i];
    CHECK(fabs(loss - expected) <= 1e-5 * expected, "%.9g, want %.9g", loss, expected);
    CHECK(n.sums.rows[0] == 10 && n.sums.rows[1] == 10 && n.sums.rows[2] == 10, "rows");
    for (int i = 0; i < 3; i++)
        CHECK(n.sums.gap[i] > 0 && n.sums.overlap[i] > 0 && n.sums.overlap[i] < 10, "depth %d",
              i);
    free(value);
    close_network(&n);
}

TEST(any_number_of_threads_gives_the_same_bits)
{
    struct network a, b;
    open_network(&a, true, true, false, 1);
    open_network(&b, true, true, false, 2);
    run(&a, &losses[3]);
    run(&b, &losses[3]);
    CHECK(memcmp(a.network.parameters.gradient, b.network.parameters.gradient,
                 a.network.parameters.total * sizeof(float)) == 0,
          "gradients differ");
    close_network(&a);
    close_network(&b);
}

/* ------------------------------------------------------------------ instruction sets */

static const char *const names[] = {"generic", "avx2", "avx512", "neon"};

/* Lists the function tables of this processor's instruction sets, the portable table first. */
static int tables(const struct esp_cpu_gradients *found[4])
{
    int count = 0;
    for (int i = 0; i < 4; i++) {
        struct esp_backend *backend;
        char err[128];
        if (esp_cpu_open(&backend, names[i], 1, err, sizeof err) < 0)
            continue;
        found[count++] = ((struct esp_cpu_backend *)backend)->isa->gradients;
        backend->ops->close(backend);
    }
    return count;
}

static void check_product(const struct esp_cpu_gradients *t, int m, int n, int k, bool turn_a,
                          bool turn_b, bool add)
{
    float *a = calloc((size_t)(m * k), sizeof *a), *b = calloc((size_t)(n * k), sizeof *b);
    float *c = calloc((size_t)(m * n), sizeof *c);
    float *scratch = calloc(ESP_GEMM_SCRATCH, sizeof *scratch);
    const struct esp_gemm g = {m,
                               n,
                               k,
                               a,
                               (size_t)(turn_a ? 1 : k),
                               (size_t)(turn_a ? m : 1),
                               b,
                               (size_t)(turn_b ? 1 : n),
                               (size_t)(turn_b ? k : 1),
                               c,
                               (size_t)n,
                               add};
    for (int i = 0; i < m * k; i++)
        a[i] = (float)(i * 7 % 13 - 6);
    for (int i = 0; i < n * k; i++)
        b[i] = (float)(i * 5 % 11 - 5);
    for (int i = 0; i < m * n; i++)
        c[i] = 3;
    t->gemm(&g, scratch);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = add ? 3 : 0;
            for (int l = 0; l < k; l++)
                sum += (double)a[(size_t)i * g.a_row + (size_t)l * g.a_column] *
                       b[(size_t)l * g.b_row + (size_t)j * g.b_column];
            CHECK(c[i * n + j] == sum, "%d x %d x %d: (%d, %d) is %g, want %g", m, n, k, i, j,
                  (double)c[i * n + j], sum);
        }
    free(a);
    free(b);
    free(c);
    free(scratch);
}

TEST(products_of_any_layout_match_plain_loops)
{
    const struct esp_cpu_gradients *found[4];
    const int shapes[][3] = {{1, 1, 1}, {12, 32, 8}, {13, 33, 300}, {97, 45, 7}, {5, 530, 3}};
    const int count = tables(found);
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++)
            for (int layout = 0; layout < 8; layout++)
                check_product(found[i], shapes[j][0], shapes[j][1], shapes[j][2], layout & 1,
                              layout & 2, layout & 4);
}

static void fill(float *x, int n, unsigned long long *state)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(6 * check_uniform(state) - 3);
}

TEST(all_instruction_sets_give_the_same_bits)
{
    enum { N = 75 };
    const struct esp_cpu_gradients *found[4];
    float first[8][N], now[8][N];
    struct esp_soft_result result[2];
    const int count = tables(found);
    for (int i = 0; i < count; i++) {
        unsigned long long state = 9;
        const struct esp_soft_loss soft = {1.0f, 0.5f, 10, 0.25f};
        const struct esp_adamw_update step = {1e-2f, .9f, .95f, .1f, .05f, 1e-8f, .01f, .5f};
        for (int j = 0; j < 8; j++)
            fill(now[j], N, &state);
        for (int j = 0; j < N; j++)
            now[7][j] *= now[7][j];
        float factor = found[i]->rmsnorm(now[0], now[1], now[2], N, 1e-5f);
        found[i]->rmsnorm_backward(now[3], now[1], now[2], now[4], N, factor);
        found[i]->swiglu_backward(now[1], now[2], now[3], N);
        CHECK(found[i]->soft_loss(now[4], now[5], N, &soft, &result[i > 0]) == 0, "soft loss");
        found[i]->adamw(now[0], now[3], now[6], now[7], N, &step);
        if (i == 0)
            memcpy(first, now, sizeof now);
        CHECK(memcmp(first, now, sizeof now) == 0, "%s differs", names[i]);
        CHECK(i == 0 || memcmp(&result[0].loss, &result[1].loss, sizeof(double)) == 0,
              "the loss of %s differs", names[i]);
    }
}

TEST(a_logit_that_is_not_a_number_is_reported)
{
    const struct esp_cpu_gradients *found[4];
    const int count = tables(found);
    for (int i = 0; i < count; i++)
        for (int side = 0; side < 2; side++) {
            float x[2][5] = {{0}, {0}};
            const struct esp_soft_loss soft = {.cls = 1, .weight = 1};
            struct esp_soft_result result;
            x[side][3] = NAN;
            CHECK(found[i]->soft_loss(x[0], x[1], 5, &soft, &result) == ESP_E_NUMERIC, "%s",
                  names[i]);
        }
}

/* ------------------------------------------------------------------ the schedule */

TEST(the_learning_rate_rises_and_falls_to_zero)
{
    const struct esp_optimizer o = {.rate = 2.0, .warmup = 4, .steps = 104};
    CHECK(esp_learning_rate(&o, 0) == 0.5 && esp_learning_rate(&o, 3) == 2.0, "warm-up");
    CHECK(esp_learning_rate(&o, 4) == 2.0, "top");
    CHECK(fabs(esp_learning_rate(&o, 54) - 1.0) < 1e-12, "middle");
    CHECK(esp_learning_rate(&o, 103) > 0 && esp_learning_rate(&o, 104) == 0, "end");
}
