/* Compares the gradients of the selector's network and loss with finite differences, and AdamW
 * with its formulas. Also checks the shapes of trees that the selector chooses from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "engine/selector/pass_times.h"
#include "kernels/product.h"
#include "engine/train/selector_net.h"

enum { ROWS = 6 };

static const struct esp_selector_shape small = {{20, 12, 8}};
static const struct esp_selector_loss loss = {1, 0.5, 0.05}, plain_loss = {1, 0.5, 0};

static float expected[ROWS][ESP_ACTIONS], seconds[ROWS][ESP_ACTIONS];
static struct esp_selector_goal goals[ROWS];

static void fill(struct esp_selector_net *net)
{
    unsigned long long state = 7;
    for (int i = 0; i < ESP_SELECTOR_STATES; i++)
        for (int j = 0; j < ROWS * small.hidden[i]; j++)
            net->state[i][j] = 2 * check_uniform(&state) - 1;
    for (int j = 0; j < ROWS * ESP_SCALARS; j++)
        net->scalars[j] = 2 * check_uniform(&state) - 1;
    for (int i = 0; i < ROWS; i++) {
        for (int a = 0; a < ESP_ACTIONS; a++) {
            expected[i][a] =
                esp_action_canonical(a) ? (float)(1 + 3 * check_uniform(&state)) : 0;
            seconds[i][a] = (float)(0.001 * (1 + check_uniform(&state)));
        }
        goals[i] = (struct esp_selector_goal){expected[i], seconds[i], 1500 + 200 * i};
    }
    for (size_t i = 0; i < net->count; i++) /* changes every tensor */
        net->weights[i] += 0.1 * (2 * check_uniform(&state) - 1);
}

static double value(struct esp_selector_net *net, bool dropout)
{
    struct esp_rng rng = {.seed = 5};
    esp_selector_net_forward(net, ROWS, dropout ? &rng : NULL);
    return esp_selector_loss(&loss, net->logits, goals, ROWS, NULL);
}

static void check_gradients(bool dropout)
{
    struct esp_selector_net net;
    unsigned long long state = 11;
    CHECK(esp_selector_net_open(&net, &small, ROWS, 3) == 0);
    fill(&net);
    struct esp_rng rng = {.seed = 5};
    esp_selector_net_forward(&net, ROWS, dropout ? &rng : NULL);
    esp_selector_loss(&loss, net.logits, goals, ROWS, net.logit_gradient);
    esp_selector_net_backward(&net, ROWS);
    for (int t = 0; t < ESP_SELECTOR_TENSOR_COUNT; t++) {
        const struct esp_selector_part part = esp_selector_part(&small, t);
        double largest = 0;
        for (size_t j = 0; j < part.count; j++)
            largest = fmax(largest, fabs(net.gradient[part.offset + j]));
        CHECK(largest > 0, "%s has no gradient", part.name);
        for (int k = 0; k < 12; k++) {
            const size_t at =
                part.offset + (size_t)(check_uniform(&state) * (double)part.count);
            const double was = net.weights[at], step = 1e-5;
            net.weights[at] = was + step;
            const double above = value(&net, dropout);
            net.weights[at] = was - step;
            const double below = value(&net, dropout), slope = (above - below) / (2 * step);
            net.weights[at] = was;
            CHECK(fabs(slope - net.gradient[at]) <
                      1e-4 * (fabs(slope) + 1e-3 * largest) + 1e-11,
                  "%s: %.12g, by differences %.12g", part.name, net.gradient[at], slope);
        }
    }
    esp_selector_net_close(&net);
}

TEST(gradients_match_finite_differences)
{
    check_gradients(false);
}

TEST(gradients_with_dropout_match_finite_differences)
{
    check_gradients(true);
}

/* Computes the loss by the paper's formula, from the probabilities. */
TEST(the_loss_is_equation_12)
{
    static double logits[ROWS * ESP_ACTIONS];
    double r[ROWS], sum = 0, worst = 0;
    unsigned long long state = 2;
    struct esp_selector_net net;
    CHECK(esp_selector_net_open(&net, &small, ROWS, 3) == 0);
    fill(&net);
    for (int i = 0; i < ROWS * ESP_ACTIONS; i++)
        logits[i] = 4 * check_uniform(&state);
    for (int i = 0; i < ROWS; i++) {
        double total = 0, e = 0, t = 0;
        for (int a = 0; a < ESP_ACTIONS; a++) {
            const double weight = expected[i][a] > 0 ? exp(logits[i * ESP_ACTIONS + a]) : 0;
            total += weight;
            e += weight * expected[i][a];
            t += weight * seconds[i][a];
        }
        CHECK(total > 0);
        r[i] = e / t / goals[i].base;
        sum -= log(r[i]) / ROWS;
    }
    /* only the half of the rows with the largest penalties is added up */
    for (int n = 0; n < ROWS / 2; n++) {
        int at = 0;
        for (int i = 0; i < ROWS; i++)
            at = r[i] < r[at] ? i : at;
        worst += pow(fmax(1 - r[at], 0), 2) / (ROWS / 2);
        r[at] = INFINITY;
    }
    const double found = esp_selector_loss(&plain_loss, logits, goals, ROWS, NULL);
    CHECK(worst > 0 && fabs(found - sum - worst) < 1e-12, "%.12g, not %.12g + %.12g", found,
          sum, worst);
    esp_selector_net_close(&net);
}

TEST(products_of_any_size_match_plain_loops)
{
    enum { MOST = 13 };
    double a[MOST * MOST], b[MOST * MOST], c[MOST * MOST], turned[MOST * MOST];
    unsigned long long state = 9;
    for (int n = 1; n <= MOST; n++)
        for (int m = 1; m <= MOST; m += 3) {
            const int k = (m + n) % MOST + 1;
            for (int i = 0; i < MOST * MOST; i++) {
                a[i] = check_uniform(&state) - 0.5;
                b[i] = check_uniform(&state) - 0.5;
                c[i] = i;
            }
            esp_product_add(c, (struct esp_strided){a, 1, (size_t)m}, b, m, n, k);
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) {
                    double sum = i * n + j;
                    for (int x = 0; x < k; x++)
                        sum += a[x * m + i] * b[x * n + j];
                    CHECK(fabs(sum - c[i * n + j]) < 1e-12);
                }
            esp_transpose(turned, b, k, n);
            CHECK(turned[(n - 1) * k + k - 1] == b[k * n - 1]);
        }
}

TEST(adamw_follows_its_formulas)
{
    struct esp_selector_net net;
    CHECK(esp_selector_net_open(&net, &small, 1, 3) == 0);
    const size_t count = net.count;
    double *want = calloc(3 * count, sizeof *want), *m = want + count, *v = m + count;
    CHECK(want);
    memcpy(want, net.weights, count * sizeof *want);
    for (int step = 1; step <= 5; step++) {
        double worst = 0;
        for (size_t i = 0; i < count; i++) {
            const double g = i % 2 ? step : net.weights[i] * 2;
            net.gradient[i] = g;
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            want[i] -= 1e-3 * (m[i] / (1 - pow(0.9, step)) /
                                   (sqrt(v[i] / (1 - pow(0.999, step))) + 1e-8) +
                               0.01 * want[i]);
        }
        esp_selector_net_step(&net, 1e-3);
        for (size_t i = 0; i < count; i++)
            worst = fmax(worst, fabs(net.weights[i] - want[i]));
        CHECK(worst < 1e-12, "step %d: %.12g", step, worst);
    }
    free(want);
    esp_selector_net_close(&net);
}

TEST(actions_with_the_same_tree_count_once)
{
    int canonical = 0;
    char text[64];
    for (int i = 0; i < ESP_ACTIONS; i++) {
        const struct esp_action a = esp_action_at(i);
        CHECK(esp_action_index(a) == i);
        const struct esp_action same = esp_action_at(esp_action_same(a));
        CHECK(esp_action_canonical(esp_action_same(a)));
        CHECK(esp_action_depth(a) == esp_action_depth(same));
        if (a.paths > 1 && a.branch > 0)
            CHECK(esp_action_canonical(i));
        canonical += esp_action_canonical(i);
    }
    /* there are 17 chains of 0 to 16 tokens, and 3 * 9 * 8 shapes with branches */
    CHECK(canonical == 17 + 3 * 9 * 8, "%d", canonical);
    esp_action_print((struct esp_action){3, 5, 0}, text, sizeof text);
    CHECK(strcmp(text, "chain of 5") == 0, "%s", text);
    CHECK(esp_action_rows((struct esp_action){4, 8, 8}) == ESP_ACTION_ROWS);
}

TEST(times_lie_between_those_measured)
{
    struct esp_pass_times t = {.choice = 0.1f};
    for (int i = 0; i < ESP_TIME_LENGTHS; i++) {
        t.length[i] = 100.0f * (float)(i + 1);
        for (int j = 0; j < ESP_TIME_DRAFT_ROWS; j++)
            t.draft[i][j] = 1 + 0.5f * (float)j + 0.01f * t.length[i];
        for (int j = 0; j < ESP_TIME_ROWS; j++)
            t.target[i][j] = 10 + (float)esp_time_rows[j] + 0.1f * t.length[i];
    }
    CHECK(esp_pass_times_sound(&t));
    CHECK(fabs(esp_time_target(&t, 5, 250) - 40) < 1e-4);
    CHECK(fabs(esp_time_draft(&t, 3, 150) - 3.5) < 1e-4);
    /* By equation 11, the time consists of draft passes and of a target pass of 6 rows. The
     * draft passes compute the root, the token of the stem, and the two paths. */
    const double want = 2 + 2.01 + 2.52 + 26;
    const double found = esp_time_of_action(&t, (struct esp_action){2, 1, 2}, 100);
    CHECK(fabs(found - want) < 1e-3, "%g, not %g", found, want);
    CHECK(fabs(esp_time_of_action(&t, (struct esp_action){1, 0, 0}, 100) - 23) < 1e-3);
    t.draft[1][1] = NAN;
    CHECK(!esp_pass_times_sound(&t));
}
