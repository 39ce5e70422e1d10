/* rows_agree.c - compares operations on rows on the CUDA and CPU backends, for the same values.
 *
 * The results of softmax, top-k, draws and normalisation must be bit-identical, because the
 * kernels do the CPU's operations in the CPU's order. Only sums that CUDA adds in a different
 * order (combine, ratio_masses, ratio_residual) may differ in the last bits of a double.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/each_backend.h"

enum { ROWS = 6, MOST = 130000, CPU = 0, GPU = 1 };

struct pair {
    struct esp_backend *backend[2];
    struct esp_rows *rows[2];
    int n;
};

static unsigned long long seed;
static float row[2][MOST];

static int below(int limit)
{
    return (int)(check_uniform(&seed) * limit);
}

static void open_backends(struct pair *p)
{
    char err[300] = "";
    CHECK(esp_backend_cpu.open(&p->backend[CPU], 2, err, sizeof err) == 0, "%s", err);
    p->backend[GPU] = open_cuda();
}

static void close_backends(struct pair *p)
{
    for (int b = 0; b < 2; b++)
        p->backend[b]->ops->close(p->backend[b]);
}

static void open_rows(struct pair *p, int n)
{
    char err[300] = "";
    p->n = n;
    for (int b = 0; b < 2; b++)
        CHECK(p->backend[b]->ops->rows_open(&p->rows[b], p->backend[b], ROWS, n, err,
                                            sizeof err) == 0,
              "%s", err);
}

static void close_rows(struct pair *p)
{
    for (int b = 0; b < 2; b++)
        p->backend[b]->ops->rows_close(p->rows[b]);
}

/* Runs the operation on both backends. Both must succeed. */
#define BOTH(p, operation, ...)                                                                \
    for (int b = 0; b < 2; b++) {                                                              \
        int status = (p)->backend[b]->ops->operation((p)->rows[b], __VA_ARGS__);               \
        CHECK(status == 0, "%s of %d values: %d", #operation, (p)->n, status);                 \
    }

enum { SMOOTH, TIES, PEAKED, EQUAL, ASCENDING, SIGNED_ZEROS, HOLES, LOGIT_KINDS };

static void write_logits(struct pair *p, int at, int kind)
{
    for (int i = 0; i < p->n; i++) {
        double u = check_uniform(&seed);
        row[0][i] = (float)(kind == SMOOTH         ? 16 * (u + check_uniform(&seed)) - 16
                            : kind == TIES         ? floor(9 * u) - 4
                            : kind == PEAKED       ? -1 / (u + 1e-4)
                            : kind == EQUAL        ? -2.25
                            : kind == ASCENDING    ? 1e-3 * i - 7
                            : kind == SIGNED_ZEROS ? (u < 0.5 ? 0.0 : -0.0)
                            : u < 0.5              ? -INFINITY
                                                   : -4 * u);
    }
    if (kind == HOLES)
        row[0][below(p->n)] = 0.5f;
    BOTH(p, write_row, at, row[0]);
}

static void compare_row(struct pair *p, int at, const char *what, int detail)
{
    for (int b = 0; b < 2; b++)
        CHECK(p->backend[b]->ops->read_row(p->rows[b], at, row[b]) == 0);
    for (int i = 0; i < p->n; i++)
        CHECK(memcmp(&row[CPU][i], &row[GPU][i], sizeof(float)) == 0,
              "%s (%d) of %d values: entry %d is %.9g, not %.9g", what, detail, p->n, i,
              row[GPU][i], row[CPU][i]);
}

/* Compares a row of both backends, allowing for rounding. */
static void compare_row_nearly(struct pair *p, int at, const char *what)
{
    for (int b = 0; b < 2; b++)
        CHECK(p->backend[b]->ops->read_row(p->rows[b], at, row[b]) == 0);
    for (int i = 0; i < p->n; i++)
        CHECK(fabsf(row[CPU][i] - row[GPU][i]) <= 1.2e-7f * row[CPU][i],
              "%s of %d values: entry %d is %.9g, not %.9g", what, p->n, i, row[GPU][i],
              row[CPU][i]);
}

/* ------------------------------------------------------------------ logits */

static void compare_largest(struct pair *p, const int32_t *which, int count, int k)
{
    const size_t all = (size_t)count * (size_t)k;
    int32_t *ids[2], best[2][ROWS];
    float *values[2];
    for (int b = 0; b < 2; b++) {
        ids[b] = malloc(all * sizeof **ids);
        values[b] = malloc(all * sizeof **values);
    }
    BOTH(p, argmax, which, count, best[b], ESP_NOW);
    CHECK(memcmp(best[CPU], best[GPU], (size_t)count * sizeof **best) == 0);
    BOTH(p, top_k, which, count, k, ids[b], values[b], ESP_NOW);
    for (size_t i = 0; i < all; i++)
        CHECK(ids[CPU][i] == ids[GPU][i] && values[CPU][i] == values[GPU][i],
              "%d of %d values: place %zu is %d (%g), not %d (%g)", k, p->n, i, ids[GPU][i],
              values[GPU][i], ids[CPU][i], values[CPU][i]);
    for (int b = 0; b < 2; b++) {
        free(ids[b]);
        free(values[b]);
    }
}

static struct esp_sampling any_sampling(int n)
{
    static const double top_p[] = {1, 1, 0.9, 0.5, 0.95, 0, 0.999, 0.1};
    static const double temperature[] = {1, 0.6, 1.7, 0.05};
    return (struct esp_sampling){temperature[below(4)], top_p[below(8)],
                                 below(3) ? 0 : 1 + below(n + 3)};
}

static void compare_logits(struct pair *p, int trials)
{
    for (int trial = 0; trial < trials; trial++) {
        const int kind = below(LOGIT_KINDS), count = 1 + below(ROWS), ks[] = {1, 3, 8, 9, 64};
        int32_t which[ROWS];
        for (int i = 0; i < ROWS; i++)
            /* these rows are all different, because 5 and ROWS have no common factor */
            which[i] = (i * 5 + trial) % ROWS;
        for (int i = 0; i < count; i++)
            write_logits(p, which[i], (kind + i / 2) % LOGIT_KINDS);
        if (kind != HOLES && kind + (count - 1) / 2 < HOLES) {
            int k = below(5) ? ks[below(5)] : 1 + below(p->n);
            compare_largest(p, which, count, k < p->n ? k : p->n);
        }
        const struct esp_sampling sampling = any_sampling(p->n);
        BOTH(p, softmax, which, count, &sampling);
        for (int i = 0; i < count; i++)
            compare_row(p, which[i], "softmax", kind);
    }
}

/* ------------------------------------------------------------------ probabilities */

static void write_distribution(struct pair *p, int at)
{
    static double f[MOST];
    const double power = 1 + 6 * check_uniform(&seed), holes = check_uniform(&seed);
    double sum = 0;
    for (int i = 0; i < p->n; i++)
        sum += f[i] = check_uniform(&seed) < 0.8 * holes ? 0 : pow(check_uniform(&seed), power);
    for (int i = 0; i < p->n; i++)
        row[0][i] = (float)(sum > 0 ? f[i] / sum : 1.0 / p->n);
    BOTH(p, write_row, at, row[0]);
}

/* Draws `each` times in succession from each of 40 / `each` rows. */
static void compare_draws(struct pair *p, int per, int each)
{
    enum { DRAWS = 40, PER = 40 };
    int32_t which[DRAWS], tokens[2][DRAWS], excluded[DRAWS * PER];
    double u[DRAWS], values[2][DRAWS];
    memset(tokens, 0, sizeof tokens);
    memset(values, 0, sizeof values);
    for (int i = 0; i < DRAWS; i++) {
        which[i] = below(ROWS);
        u[i] = i == 0 ? 0 : i == 1 ? 0x1.fffffffffffffp-1 : check_uniform(&seed);
    }
    for (int i = 0; i < DRAWS * per; i++)
        excluded[i] = i % 7 == 3 ? -1 : i < per && per >= p->n ? i % p->n : below(p->n);
    BOTH(p, sample, which, u, DRAWS / each, each, excluded, per, tokens[b], values[b], ESP_NOW);
    for (int i = 0; i < DRAWS; i++) {
        CHECK(tokens[CPU][i] == tokens[GPU][i] && values[CPU][i] == values[GPU][i],
              "%d values, u = %.17g: drew %d (%g), not %d (%g)", p->n, u[i], tokens[GPU][i],
              values[GPU][i], tokens[CPU][i], values[CPU][i]);
        tokens[CPU][i] = below(p->n);
    }
    BOTH(p, gather, which, tokens[CPU], DRAWS, values[b], ESP_NOW);
    CHECK(memcmp(values[CPU], values[GPU], sizeof values[CPU]) == 0);
}

static void compare_combination(struct pair *p)
{
    const struct esp_combination f = {3 * check_uniform(&seed) - 1,
                                      2 * check_uniform(&seed) - 1, below(2) - below(2),
                                      2 * check_uniform(&seed)};
    const int a = below(ROWS), c = below(ROWS), to = below(ROWS);
    double sum[2];
    for (int b = 0; b < 2; b++)
        CHECK(p->backend[b]->ops->combine(p->rows[b], a, p->rows[b], c, &f, NULL, 0, &sum[b]) ==
              0);
    CHECK(fabs(sum[CPU] - sum[GPU]) <= 1e-13 * (1 + sum[CPU]), "%g, not %g", sum[GPU],
          sum[CPU]);
    for (int b = 0; b < 2; b++)
        CHECK(p->backend[b]->ops->combine(p->rows[b], a, p->rows[b], c, &f, p->rows[b], to,
                                          &sum[b]) == 0);
    compare_row_nearly(p, to, "combine");
    write_distribution(p, to);
}

static void compare_removals(struct pair *p)
{
    const int at = below(ROWS);
    double left[2];
    for (int i = 0; i < 4; i++) {
        const int token = below(p->n);
        BOTH(p, remove, at, token, &left[b]);
        CHECK(left[CPU] == left[GPU], "%.17g is left, not %.17g", left[GPU], left[CPU]);
        compare_row(p, at, "remove", token);
    }
    write_distribution(p, at);
}

static void compare_ratios(struct pair *p)
{
    static double p_mass[2][ESP_RATIO_CLASSES], q_mass[2][ESP_RATIO_CLASSES];
    double factor[ESP_RATIO_CLASSES], sum[2];
    const int a = below(ROWS), c = below(ROWS), to = below(ROWS);
    for (int b = 0; b < 2; b++)
        CHECK(p->backend[b]->ops->ratio_masses(p->rows[b], a, p->rows[b], c, p_mass[b],
                                               q_mass[b]) == 0);
    for (int i = 0; i < ESP_RATIO_CLASSES; i++) {
        CHECK(fabs(p_mass[CPU][i] - p_mass[GPU][i]) < 1e-12 &&
                  fabs(q_mass[CPU][i] - q_mass[GPU][i]) < 1e-12,
              "%d values, class %d: %.17g and %.17g, not %.17g and %.17g", p->n, i,
              p_mass[GPU][i], q_mass[GPU][i], p_mass[CPU][i], q_mass[CPU][i]);
        factor[i] = 2 * check_uniform(&seed);
    }
    for (int b = 0; b < 2; b++)
        CHECK(p->backend[b]->ops->ratio_residual(p->rows[b], a, p->rows[b], c, factor,
                                                 p->rows[b], to, &sum[b]) == 0);
    CHECK(fabs(sum[CPU] - sum[GPU]) < 1e-13);
    compare_row_nearly(p, to, "residual");
    write_distribution(p, to);
}

static void compare_distributions(struct pair *p)
{
    for (int i = 0; i < ROWS; i++)
        write_distribution(p, i);
    compare_draws(p, 0, 1);
    compare_draws(p, 1 + below(39), 1 + below(ESP_MAX_DRAWS));
    compare_combination(p);
    compare_removals(p);
    compare_ratios(p);
}

/* ------------------------------------------------------------------ tests */

TEST(backends_agree_on_vocabularies_of_all_sizes)
{
    static const int sizes[] = {1, 2, 3, 4, 31, 32, 255, 256, 257, 1023, 4095, 4096, 4097};
    const int known = sizeof sizes / sizeof *sizes;
    struct pair p;
    seed = 20;
    open_backends(&p);
    for (int i = 0; i < known + (check_quick() ? 4 : 25); i++) {
        open_rows(&p, i < known ? sizes[i] : 1 + below(5000));
        compare_logits(&p, check_quick() ? 2 : 6);
        compare_distributions(&p);
        close_rows(&p);
    }
    close_backends(&p);
}

/* Uses rows that are divided into parts, and rows that do not fit in softmax's shared
 * memory. */
TEST(backends_agree_on_large_vocabularies)
{
    const int sizes[] = {12289, 20001, check_quick() ? 60000 : MOST};
    struct pair p;
    seed = 21;
    open_backends(&p);
    for (int i = 0; i < 3; i++) {
        open_rows(&p, sizes[i]);
        compare_logits(&p, i < 2 || check_quick() ? 4 : 12);
        for (int kind = 0; kind < HOLES; kind++) {
            write_logits(&p, 0, kind);
            compare_largest(&p, &(int32_t){0}, 1, 64);
        }
        compare_largest(&p, &(int32_t){0}, 1, sizes[i]);
        compare_distributions(&p);
        close_rows(&p);
    }
    close_backends(&p);
}

TEST(a_row_does_not_depend_on_the_others)
{
    enum { N = 9000 };
    const struct esp_sampling sampling = {0.9, 0.9, 0};
    static float alone[N];
    struct pair p;
    int32_t which[ROWS], id, ids[ROWS];
    seed = 22;
    open_backends(&p);
    open_rows(&p, N);
    for (int i = 0; i < ROWS; i++) {
        which[i] = i;
        write_logits(&p, i, SMOOTH);
    }
    CHECK(p.backend[GPU]->ops->argmax(p.rows[GPU], which, ROWS, ids, ESP_NOW) == 0);
    CHECK(p.backend[GPU]->ops->argmax(p.rows[GPU], which + 4, 1, &id, ESP_NOW) == 0 &&
          id == ids[4]);
    CHECK(p.backend[GPU]->ops->read_row(p.rows[GPU], 4, row[0]) == 0);
    CHECK(p.backend[GPU]->ops->softmax(p.rows[GPU], which, ROWS, &sampling) == 0);
    CHECK(p.backend[GPU]->ops->read_row(p.rows[GPU], 4, alone) == 0);
    CHECK(p.backend[GPU]->ops->write_row(p.rows[GPU], 2, row[0]) == 0);
    CHECK(p.backend[GPU]->ops->softmax(p.rows[GPU], which + 2, 1, &sampling) == 0);
    CHECK(p.backend[GPU]->ops->read_row(p.rows[GPU], 2, row[0]) == 0);
    CHECK(memcmp(alone, row[0], sizeof alone) == 0);
    close_rows(&p);
    close_backends(&p);
}

/* Asynchronous calls must not overwrite each other's arguments, no matter in which order the
 * calls are made. */
TEST(asynchronous_calls_keep_their_own_arguments)
{
    const int calls = check_quick() ? 1500 : 6000;
    struct pair p;
    seed = 23;
    open_backends(&p);
    open_rows(&p, 3);
    for (int i = 0; i < ROWS; i++)
        write_logits(&p, i, SMOOTH);
    for (int i = 0; i < calls; i++) {
        const struct esp_sampling sampling = {0.1 + 0.1 * check_uniform(&seed), 1, 0};
        const int32_t which = below(ROWS);
        BOTH(&p, softmax, &which, 1, &sampling);
    }
    for (int i = 0; i < ROWS; i++)
        compare_row(&p, i, "softmax", i);
    close_rows(&p);
    close_backends(&p);
}

/* Makes calls with more entries than the device has rows. The memory for arguments and results
 * must grow. */
TEST(calls_may_be_larger_than_the_rows)
{
    enum { N = 50, MANY = 30000 };
    static int32_t which[MANY], tokens[2][MANY];
    static double u[MANY], values[2][MANY];
    struct pair p;
    seed = 24;
    open_backends(&p);
    open_rows(&p, N);
    for (int i = 0; i < ROWS; i++)
        write_distribution(&p, i);
    for (int i = 0; i < MANY; i++) {
        which[i] = below(ROWS);
        tokens[0][i] = below(N);
        u[i] = check_uniform(&seed);
    }
    BOTH(&p, gather, which, tokens[0], MANY, values[b], ESP_NOW);
    CHECK(memcmp(values[CPU], values[GPU], sizeof values[CPU]) == 0);
    BOTH(&p, sample, which, u, check_quick() ? 50 : 500, 1, NULL, 0, tokens[b], values[b],
         ESP_NOW);
    CHECK(memcmp(tokens[CPU], tokens[GPU], 50 * sizeof **tokens) == 0);
    BOTH(&p, argmax, which, 2000, tokens[b], ESP_NOW);
    CHECK(memcmp(tokens[CPU], tokens[GPU], 2000 * sizeof **tokens) == 0);
    close_rows(&p);
    close_backends(&p);
}

TEST(a_value_that_is_not_a_number_is_reported_once)
{
    const struct esp_sampling plain = {1, 1, 0};
    struct pair p;
    int32_t good = 0, bad = 1, id;
    double value;
    seed = 25;
    open_backends(&p);
    open_rows(&p, 5000);
    write_logits(&p, 0, SMOOTH);
    write_logits(&p, 1, SMOOTH);
    row[0][4999] = NAN;
    BOTH(&p, write_row, 1, row[0]);
    for (int b = 0; b < 2; b++) {
        const struct esp_backend_ops *ops = p.backend[b]->ops;
        int status = ops->softmax(p.rows[b], &bad, 1, &plain);
        if (status == 0)
            status = ops->gather(p.rows[b], &good, &good, 1, &value, ESP_NOW);
        CHECK(status == ESP_E_NUMERIC);
        CHECK(ops->gather(p.rows[b], &good, &good, 1, &value, ESP_NOW) == 0);
        CHECK(ops->argmax(p.rows[b], &good, 1, &id, ESP_NOW) == 0);
        CHECK(ops->argmax(p.rows[b], &bad, 1, &id, ESP_NOW) == ESP_E_NUMERIC);
        CHECK(ops->argmax(p.rows[b], &good, 1, &id, ESP_NOW) == 0);
    }
    close_rows(&p);
    close_backends(&p);
}
