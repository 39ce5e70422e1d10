/* Tests ratio classes, which group tokens by p / q. Tests their order, and the ceiling that
 * verifier khisti reaches with them. The backends' sums over the classes are compared with
 * plain loops. */
#include <math.h>
#include <stdlib.h>

#include "tests/each_backend.h"
#include "engine/verifiers/verifier.h"

enum { N = 5003 }; /* not a multiple of the width of a vector register */

static unsigned long long seed;
static float p_row[N], q_row[N], left_row[N];
static double p[N], q[N];

static void make_rows(double power, int holes)
{
    double p_sum = 0, q_sum = 0;
    for (int x = 0; x < N; x++) {
        double both = pow(check_uniform(&seed), power);
        p[x] = both * (0.2 + check_uniform(&seed));
        q[x] = both * (0.2 + check_uniform(&seed));
        if (holes && x % holes == 0)
            *(x % (2 * holes) ? &p[x] : &q[x]) = 0;
        p_sum += p[x];
        q_sum += q[x];
    }
    for (int x = 0; x < N; x++) {
        p[x] = p_row[x] = (float)(p[x] / p_sum);
        q[x] = q_row[x] = (float)(q[x] / q_sum);
    }
}

TEST(classes_increase_with_the_ratio)
{
    int before = 0;
    for (double ratio = 1e-6; ratio < 1e6; ratio *= 1.001) {
        int class = esp_ratio_class(ratio * 1e-3, 1e-3);
        CHECK(class >= before && class < ESP_RATIO_CLASSES);
        before = class;
    }
    CHECK(before == ESP_RATIO_CLASSES - 1);
    CHECK(esp_ratio_class(0, 0.5) == 0);
    CHECK(esp_ratio_class(0, 0) == 0);
    CHECK(esp_ratio_class(0.5, 0) == ESP_RATIO_CLASSES - 1);
    CHECK(esp_ratio_class(1e-30, 1) == 0);
    CHECK(esp_ratio_class(1.02, 1) > esp_ratio_class(1, 1));
}

EACH_BACKEND(sums_over_classes_equal_those_of_plain_loops)
{
    const struct esp_backend_ops *ops = backend->ops;
    struct esp_rows *rows;
    char err[256];
    double p_mass[ESP_RATIO_CLASSES], q_mass[ESP_RATIO_CLASSES], factor[ESP_RATIO_CLASSES];
    seed = 3;
    CHECK(ops->rows_open(&rows, backend, 3, N, err, sizeof err) == ESP_OK, "%s", err);
    for (int trial = 0; trial < 4; trial++) {
        double want_p[ESP_RATIO_CLASSES] = {0}, want_q[ESP_RATIO_CLASSES] = {0}, sum = 0, got;
        make_rows(1 + 3 * trial, trial);
        ops->write_row(rows, 0, p_row);
        ops->write_row(rows, 1, q_row);
        CHECK(ops->ratio_masses(rows, 0, rows, 1, p_mass, q_mass) == ESP_OK);
        for (int x = 0; x < N; x++) {
            want_p[esp_ratio_class(p[x], q[x])] += p[x];
            want_q[esp_ratio_class(p[x], q[x])] += q[x];
        }
        for (int c = 0; c < ESP_RATIO_CLASSES; c++) {
            CHECK(fabs(p_mass[c] - want_p[c]) < 1e-14 && fabs(q_mass[c] - want_q[c]) < 1e-14);
            factor[c] = check_uniform(&seed) * 2;
        }
        for (int x = 0; x < N; x++)
            sum += fmax(p[x] - factor[esp_ratio_class(p[x], q[x])] * q[x], 0);
        CHECK(ops->ratio_residual(rows, 0, rows, 1, factor, rows, 2, &got) == ESP_OK);
        CHECK(fabs(got - sum) < 1e-12, "%g, want %g", got, sum);
        ops->read_row(rows, 2, left_row);
        for (int x = 0; x < N; x++) {
            double want = fmax(p[x] - factor[esp_ratio_class(p[x], q[x])] * q[x], 0) / sum;
            CHECK(fabs(left_row[x] - want) <= 1e-7 * want);
        }
    }
    CHECK(ops->ratio_masses(rows, 3, rows, 1, p_mass, q_mass) == ESP_E_ARGUMENT);
    int status = ops->ratio_residual(rows, 0, rows, -1, factor, NULL, 0, p_mass);
    CHECK(status == ESP_E_ARGUMENT);
    ops->rows_close(rows);
}

/* Every set of tokens gives an upper bound on the acceptance rate. The ceiling is the smallest
 * of these bounds. */
TEST(the_ceiling_is_the_smallest_bound_over_all_sets)
{
    enum { SMALL = 10 };
    seed = 8;
    for (int trial = 0; trial < 200; trial++) {
        int k = 1 + trial % 4;
        double best = 1, p_sum = 0, q_sum = 0;
        for (int x = 0; x < SMALL; x++) {
            p_sum += p[x] = trial % 7 == x ? 0 : check_uniform(&seed);
            q_sum += q[x] = trial % 5 == x ? 0 : check_uniform(&seed);
        }
        for (int x = 0; x < SMALL; x++) {
            p[x] /= p_sum;
            q[x] /= q_sum;
        }
        for (unsigned s = 0; s < 1u << SMALL; s++) {
            double in_p = 0, in_q = 0;
            for (int x = 0; x < SMALL; x++) {
                in_p += s >> x & 1 ? p[x] : 0;
                in_q += s >> x & 1 ? q[x] : 0;
            }
            best = fmin(best, in_p + 1 - pow(in_q, k));
        }
        CHECK(fabs(esp_acceptance_ceiling(p, q, SMALL, k) - best) < 1e-12);
    }
}

TEST(khisti_reaches_the_ceiling_of_a_large_vocabulary)
{
    const struct esp_verifier_ops *khisti = esp_verifier_find("khisti");
    seed = 12;
    for (int trial = 0; trial < 5; trial++)
        for (int k = 1; k <= 8; k *= 2) {
            make_rows(1 + 4 * trial, 0);
            double best = esp_acceptance_ceiling(p, q, N, k);
            double rate = khisti->acceptance_rate(p, q, N, k);
            CHECK(rate < best + 1e-6 && rate > best - 0.006, "k = %d: %g of %g", k, rate, best);
            for (int i = 0; esp_verifiers[i]; i++)
                if (esp_verifiers[i]->acceptance_rate)
                    CHECK(esp_verifiers[i]->acceptance_rate(p, q, N, k) < best + 1e-6, "%s",
                          esp_verifiers[i]->name);
        }
}
