/* rows.c - tests the backends' operations on rows over the vocabulary: largest entries,
 * probabilities, and arithmetic of distributions. The results are compared with simple
 * implementations that sort. Some rows have ties, NaN or infinities, and some arguments are out
 * of range. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/each_backend.h"

enum { ROWS = 40, WIDE = 4096 };

struct setup {
    const struct esp_backend_ops *ops;
    struct esp_rows *rows;
};

static void open_setup(struct setup *s, struct esp_backend *backend, int vocabulary)
{
    char err[200] = "";
    s->ops = backend->ops;
    CHECK(s->ops->rows_open(&s->rows, backend, ROWS, vocabulary, err, sizeof err) == 0, "%s",
          err);
}

static void close_setup(struct setup *s)
{
    s->ops->rows_close(s->rows);
}

/* Computes softmax and returns its status. An asynchronous device reports bad values only in a
 * later call, so this function also makes such a call. */
static int softmax(struct setup *s, int32_t row, const struct esp_sampling *sampling)
{
    double value;
    int status = s->ops->softmax(s->rows, &row, 1, sampling);
    return status < 0 ? status
                      : s->ops->gather(s->rows, &row, &(int32_t){0}, 1, &value, ESP_NOW);
}

/* Fills a row. kind: 0 smooth, 1 with many ties, 2 peaked, 3 all equal, 4 ascending. */
static void make_row(float *x, int n, int kind, unsigned long long *state)
{
    for (int i = 0; i < n; i++) {
        double u = check_uniform(state);
        x[i] = (float)(kind == 0   ? 20 * u - 10
                       : kind == 1 ? floor(6 * u) - 3
                       : kind == 2 ? -1 / (u + 1e-3)
                       : kind == 3 ? 1.5
                                   : 0.01 * i);
    }
}

struct ranked {
    double value;
    int id;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->id - y->id;
}

static void rank(const float *x, int n, struct ranked *order)
{
    for (int i = 0; i < n; i++)
        order[i] = (struct ranked){x[i], i};
    qsort(order, (size_t)n, sizeof *order, by_rank);
}

static const int sizes[] = {1, 2, 15, 16, 17, 100, 333, WIDE};

enum { SIZES = sizeof sizes / sizeof *sizes, KINDS = 5 };

EACH_BACKEND(largest_entries_equal_the_first_entries_of_a_sort)
{
    unsigned long long state = 1;
    static float x[WIDE], values[2 * WIDE];
    static int32_t ids[2 * WIDE];
    static struct ranked order[WIDE];
    for (int size = 0; size < SIZES; size++) {
        struct setup s;
        const int n = sizes[size];
        open_setup(&s, backend, n);
        for (int kind = 0; kind < KINDS; kind++) {
            int ks[] = {1, 2, 3, 10, 64, n / 2, n};
            int32_t which[2] = {ROWS - 1, 0}, best[2];
            for (int i = 1; i >= 0; i--) {
                make_row(x, n, kind, &state);
                CHECK(s.ops->write_row(s.rows, which[i], x) == 0);
            }
            rank(x, n, order);
            CHECK(s.ops->argmax(s.rows, which, 2, best, ESP_NOW) == 0);
            CHECK(best[0] == order[0].id, "argmax is %d, not %d", best[0], order[0].id);
            for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
                int k = ks[j];
                if (k < 1 || k > n)
                    continue;
                CHECK(s.ops->top_k(s.rows, which, 2, k, ids, values, ESP_NOW) == 0);
                for (int i = 0; i < k; i++)
                    CHECK(ids[i] == order[i].id && values[i] == order[i].value,
                          "largest %d of %d, row kind %d: position %d has token %d, not %d", k,
                          n, kind, i, ids[i], order[i].id);
            }
        }
        close_setup(&s);
    }
}

/* Computes softmax with a sort, as the comment in row_ops.def defines it. */
static void reference_softmax(const float *x, int n, const struct esp_sampling *s, double *p)
{
    static struct ranked order[WIDE];
    double total = 0, sum = 0, kept = 0;
    int k = s->top_k > 0 && s->top_k < n ? s->top_k : n, last = 0;
    rank(x, n, order);
    memset(p, 0, (size_t)n * sizeof *p);
    for (int i = 0; i < k; i++)
        total += p[order[i].id] = exp((order[i].value - order[0].value) / s->temperature);
    for (last = 0; last < k; last++)
        if ((sum += p[order[last].id]) >= s->top_p * total && s->top_p < 1)
            break;
    for (int i = 0; i < k; i++)
        kept += i <= last ? p[order[i].id] : 0;
    for (int i = 0; i < k; i++)
        p[order[i].id] = i <= last ? p[order[i].id] / kept : 0;
}

EACH_BACKEND(probabilities_equal_those_of_a_sort)
{
    static const struct esp_sampling settings[] = {
        {1, 1, 0},     {0.7, 1, 0},    {1, 0.9, 0},  {1, 0.5, 0},    {0.6, 0.95, 20},
        {1, 1, 1},     {1, 0, 0},      {1, 0.3, 7},  {2.5, 0.99, 0}, {1, 0.999999, 0},
        {1, 1, 10000}, {1e-3, 0.8, 0}, {50, 0.8, 0}, {1, 5, 3},
    };
    unsigned long long state = 2;
    static float x[WIDE], got[WIDE];
    static double want[WIDE];
    for (int size = 0; size < SIZES; size++) {
        struct setup s;
        const int n = sizes[size];
        open_setup(&s, backend, n);
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t setting = 0; setting < sizeof settings / sizeof *settings; setting++) {
                int32_t which = 3;
                double sum = 0;
                make_row(x, n, kind, &state);
                CHECK(s.ops->write_row(s.rows, which, x) == 0);
                CHECK(s.ops->softmax(s.rows, &which, 1, &settings[setting]) == 0);
                CHECK(s.ops->read_row(s.rows, which, got) == 0);
                reference_softmax(x, n, &settings[setting], want);
                for (int i = 0; i < n; i++) {
                    sum += got[i];
                    /* the error grows with the absolute value of the exponent */
                    double places = want[i] > 0 ? 1 - log(want[i]) : 1;
                    CHECK(fabs(got[i] - want[i]) <= 5e-7 * places * want[i] + 1e-37,
                          "%d values, kind %d, setting %zu: value %d is %g, not %g", n, kind,
                          setting, i, got[i], want[i]);
                }
                CHECK(fabs(sum - 1) < 1e-6, "the sum is %.9g", sum);
            }
        close_setup(&s);
    }
}

EACH_BACKEND(many_rows_equal_single_rows)
{
    struct setup s;
    unsigned long long state = 3;
    static float x[WIDE], alone[WIDE], together[WIDE];
    int32_t which[ROWS], best[ROWS], ids[ROWS * 5], id[5];
    float values[ROWS * 5], value[5];
    const struct esp_sampling sampling = {0.8, 0.9, 100};
    open_setup(&s, backend, WIDE);
    for (int i = 0; i < ROWS; i++) {
        make_row(x, WIDE, i % KINDS, &state);
        s.ops->write_row(s.rows, i, x);
        which[i] = ROWS - 1 - i;
    }
    CHECK(s.ops->argmax(s.rows, which, ROWS, best, ESP_NOW) == 0);
    CHECK(s.ops->top_k(s.rows, which, ROWS, 5, ids, values, ESP_NOW) == 0);
    for (int i = 0; i < ROWS; i++) {
        CHECK(s.ops->top_k(s.rows, which + i, 1, 5, id, value, ESP_NOW) == 0);
        CHECK(best[i] == id[0] && memcmp(id, ids + 5 * i, sizeof id) == 0 &&
              memcmp(value, values + 5 * i, sizeof value) == 0);
    }
    s.ops->read_row(s.rows, 7, x);
    CHECK(s.ops->softmax(s.rows, which, ROWS, &sampling) == 0);
    s.ops->read_row(s.rows, 7, together);
    s.ops->write_row(s.rows, 0, x);
    CHECK(s.ops->softmax(s.rows, &(int32_t){0}, 1, &sampling) == 0);
    s.ops->read_row(s.rows, 0, alone);
    CHECK(memcmp(alone, together, sizeof alone) == 0);
    close_setup(&s);
}

EACH_BACKEND(values_that_are_not_numbers_are_reported)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    const struct esp_sampling plain = {1, 1, 0}, cut = {1, 0.5, 3};
    for (int n = 1; n < 70; n += 3) {
        struct setup s;
        open_setup(&s, backend, n);
        for (int at = 0; at < n; at += 1 + n / 5)
            for (int b = 0; b < 4; b++) {
                float x[70] = {0}, p[70];
                int32_t which = 0, id;
                float value;
                x[at] = bad[b];
                s.ops->write_row(s.rows, 0, x);
                CHECK(s.ops->argmax(s.rows, &which, 1, &id, ESP_NOW) == ESP_E_NUMERIC);
                CHECK(s.ops->top_k(s.rows, &which, 1, 1, &id, &value, ESP_NOW) ==
                      (b < 2 ? ESP_E_NUMERIC : 0));
                CHECK(b != 2 || (id == at && value == INFINITY));
                if (b < 3) {
                    CHECK(softmax(&s, which, &plain) == ESP_E_NUMERIC);
                    CHECK(softmax(&s, which, &cut) == ESP_E_NUMERIC);
                } else if (n == 1) {
                    CHECK(softmax(&s, which, &plain) == ESP_E_NUMERIC);
                } else {
                    CHECK(softmax(&s, which, &plain) == 0);
                    s.ops->read_row(s.rows, 0, p);
                    CHECK(p[at] == 0 && fabs(p[(at + 1) % n] - 1.0 / (n - 1)) < 1e-6);
                }
            }
        close_setup(&s);
    }
}

EACH_BACKEND(extreme_logits_and_temperatures_stay_finite)
{
    struct setup s;
    const double temperatures[] = {1e-300, 1e-45, 1e-20, 1, 1e20, 1e300};
    const float x[5] = {3e38f, -3e38f, 1e-40f, 3e38f, -1e30f};
    int32_t which = 0;
    open_setup(&s, backend, 5);
    for (int i = 0; i < 6; i++) {
        float p[5];
        const struct esp_sampling sampling = {temperatures[i], 1, 0};
        double sum = 0;
        s.ops->write_row(s.rows, 0, x);
        CHECK(s.ops->softmax(s.rows, &which, 1, &sampling) == 0);
        s.ops->read_row(s.rows, 0, p);
        for (int j = 0; j < 5; j++)
            sum += p[j];
        CHECK(fabs(sum - 1) < 1e-6 && p[0] == p[3] && p[0] >= p[2], "temperature %g",
              temperatures[i]);
    }
    close_setup(&s);
}

/* ------------------------------------------------------------------ distributions */

static void make_distribution(float *p, int n, unsigned long long *state)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += p[i] = check_uniform(state) < 0.4 ? 0 : (float)check_uniform(state);
    for (int i = 0; i < n && sum > 0; i++)
        p[i] = (float)(p[i] / sum);
}

/* Checks that the random number u draws this token from the `n` probabilities `p`. Then sets
 * the token's probability to 0. */
static void check_draw(float *p, int n, double u, int32_t token, double value)
{
    double total = 0, sum = 0;
    for (int i = 0; i < n; i++)
        total += p[i];
    if (total == 0) {
        CHECK(token == -1 && value == 0);
        return;
    }
    CHECK(token >= 0 && p[token] > 0 && value == p[token]);
    for (int i = 0; i < token; i++)
        sum += p[i];
    CHECK(sum <= u * total + 1e-12 && sum + p[token] >= u * total - 1e-12,
          "%d values, u = %g: drew %d", n, u, token);
    p[token] = 0;
}

EACH_BACKEND(draws_invert_the_cumulative_sum)
{
    enum { EACH = 3 };
    unsigned long long state = 4;
    static float p[WIDE], after[WIDE];
    for (int size = 0; size < SIZES; size++) {
        struct setup s;
        const int n = sizes[size];
        open_setup(&s, backend, n);
        for (int trial = 0; trial < 60; trial++) {
            int32_t which = 2, excluded[4] = {-1, -1, -1, -1}, tokens[EACH];
            double u[EACH], values[EACH];
            for (int i = 0; i < EACH; i++)
                u[i] = trial == i       ? 0
                       : trial == i + 3 ? 0x1.fffffffffffffp-1
                                        : check_uniform(&state);
            make_distribution(p, n, &state);
            for (int i = 0; i < trial % 5; i++)
                excluded[i] = (int32_t)(check_uniform(&state) * n);
            s.ops->write_row(s.rows, which, p);
            CHECK(s.ops->sample(s.rows, &which, u, 1, EACH, excluded, 4, tokens, values,
                                ESP_NOW) == 0);
            s.ops->read_row(s.rows, which, after);
            CHECK(memcmp(p, after, (size_t)n * sizeof *p) == 0, "the row changed");
            for (int i = 0; i < 4; i++)
                if (excluded[i] >= 0)
                    p[excluded[i]] = 0;
            for (int i = 0; i < EACH; i++)
                check_draw(p, n, u[i], tokens[i], values[i]);
        }
        close_setup(&s);
    }
}

EACH_BACKEND(combinations_and_removals_equal_plain_loops)
{
    static const struct esp_combination all[] = {{1, -1, 0, 0},    {0.3, -1, 0, 0},
                                                 {0, 0, 1, 1},     {1, 0, -1, 2},
                                                 {0, 0.5, 0.5, 0}, {-1, 0, 0, 0}};
    unsigned long long state = 6;
    static float p[WIDE], q[WIDE], out[WIDE], zeros[WIDE];
    for (int size = 0; size < SIZES; size++) {
        struct setup s;
        const int n = sizes[size];
        open_setup(&s, backend, n);
        for (int c = 0; c < 6; c++) {
            int to = c % 3, gone = n / 2;
            const struct esp_combination f = all[c];
            double want = 0, sum, left, rest = 0;
            make_distribution(p, n, &state);
            make_distribution(q, n, &state);
            s.ops->write_row(s.rows, 0, p);
            s.ops->write_row(s.rows, 1, q);
            s.ops->write_row(s.rows, 2, zeros);
#define F(i) fmax(0, f.a *p[i] + f.b * q[i] + f.c * fmin(f.d * p[i], q[i]))
            for (int i = 0; i < n; i++)
                want += F(i);
            CHECK(s.ops->combine(s.rows, 0, s.rows, 1, &f, NULL, 0, &sum) == 0);
            CHECK(fabs(sum - want) < 1e-12, "sum %g, not %g", sum, want);
            CHECK(s.ops->combine(s.rows, 0, s.rows, 1, &f, s.rows, to, &sum) == 0);
            CHECK(fabs(sum - want) < 1e-12);
            s.ops->read_row(s.rows, to, out);
            for (int i = 0; i < n; i++) {
                double before = to == 0 ? p[i] : to == 1 ? q[i] : 0;
                double value = want > 0 ? F(i) / want : before;
                CHECK(fabs(out[i] - value) <= 1e-7 * value + 1e-16, "%d is %g, not %g", i,
                      out[i], value);
            }
#undef F
            for (int i = 0; i < n; i++)
                rest += i == gone ? 0 : out[i];
            CHECK(s.ops->remove(s.rows, to, gone, &left) == 0);
            CHECK(fabs(left - rest) < 1e-12, "left %g, not %g", left, rest);
            s.ops->read_row(s.rows, to, q);
            for (int i = 0; i < n; i++)
                CHECK(fabs(q[i] - (i == gone || rest == 0 ? 0 : out[i] / rest)) < 1e-7);
        }
        close_setup(&s);
    }
}

EACH_BACKEND(arguments_out_of_range_are_refused)
{
    struct setup s;
    const struct esp_sampling plain = {1, 1, 0};
    const struct esp_combination f = {1, -1, 0, 0};
    struct esp_rows *other;
    int32_t low = -1, high = ROWS, good = 0, id, ids[11];
    float values[11];
    double u = 0.5, value;
    char err[200];
    open_setup(&s, backend, 10);
    CHECK(s.ops->argmax(s.rows, &low, 1, &id, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->argmax(s.rows, &high, 1, &id, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->argmax(s.rows, &good, -1, &id, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->argmax(s.rows, &good, 0, &id, ESP_NOW) == 0);
    CHECK(s.ops->top_k(s.rows, &good, 1, 0, ids, values, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->top_k(s.rows, &good, 1, 11, ids, values, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->softmax(s.rows, &high, 1, &plain) == ESP_E_ARGUMENT);
    const struct esp_sampling wrong[] = {{0, 1, 0},        {-1, 1, 0}, {NAN, 1, 0}, {1, NAN, 0},
                                         {INFINITY, 1, 0}, {1, -1, 0}, {1, 1, -1}};
    for (int i = 0; i < 7; i++)
        CHECK(s.ops->softmax(s.rows, &good, 1, &wrong[i]) == ESP_E_ARGUMENT, "setting %d", i);
    CHECK(s.ops->gather(s.rows, &good, &low, 1, &value, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->gather(s.rows, &good, &(int32_t){10}, 1, &value, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->gather(s.rows, &high, &good, 1, &value, ESP_NOW) == ESP_E_ARGUMENT);
    CHECK(s.ops->sample(s.rows, &good, &u, 1, 1, &(int32_t){10}, 1, &id, &value, ESP_NOW) ==
          ESP_E_ARGUMENT);
    for (int draws = 0; draws <= ESP_MAX_DRAWS + 1; draws += ESP_MAX_DRAWS + 1)
        CHECK(s.ops->sample(s.rows, &good, &u, 1, draws, NULL, 0, &id, &value, ESP_NOW) ==
              ESP_E_ARGUMENT);
    CHECK(s.ops->sample(s.rows, &high, &u, 1, 1, NULL, 0, &id, &value, ESP_NOW) ==
          ESP_E_ARGUMENT);
    CHECK(s.ops->sample(s.rows, &good, &(double){1}, 1, 1, NULL, 0, &id, &value, ESP_NOW) ==
          ESP_E_ARGUMENT);
    CHECK(s.ops->sample(s.rows, &good, &(double){NAN}, 1, 1, NULL, 0, &id, &value, ESP_NOW) ==
          ESP_E_ARGUMENT);
    CHECK(s.ops->combine(s.rows, 0, s.rows, ROWS, &f, NULL, 0, &value) == ESP_E_ARGUMENT);
    CHECK(s.ops->combine(s.rows, 0, s.rows, 1, &f, s.rows, -1, &value) == ESP_E_ARGUMENT);
    CHECK(s.ops->remove(s.rows, 0, 10, &value) == ESP_E_ARGUMENT);
    CHECK(s.ops->remove(s.rows, -1, 0, &value) == ESP_E_ARGUMENT);
    CHECK(s.ops->read_row(s.rows, ROWS, values) == ESP_E_ARGUMENT);
    CHECK(s.ops->write_row(s.rows, -1, values) == ESP_E_ARGUMENT);
    CHECK(s.ops->rows_open(&other, backend, 0, 5, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(s.ops->rows_open(&other, backend, 5, 0, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(s.ops->rows_open(&other, backend, 1, 11, err, sizeof err) == 0);
    CHECK(s.ops->combine(s.rows, 0, other, 0, &f, NULL, 0, &value) == ESP_E_ARGUMENT);
    s.ops->rows_close(other);
    close_setup(&s);
}
