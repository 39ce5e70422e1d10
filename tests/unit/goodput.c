/* Tests drafter goodput. Its trees must be nearly as good as the best of all small trees. With
 * the costs that the tests set, the drafter must never be slower than plain decoding. At
 * temperature 0, it must write the same text as plain decoding. Also tests how costs are
 * learned, stored and used. No test reads a clock. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "engine/costs.h"
#include "tests/drafting.h"
#include "viz/explain.h"
#include "engine/support/paths.h"

/* ------------------------------------------------------------------ given costs */

static double draft_first, draft_row, verify_row;
static int verify_class; /* the cost of verifying rises in steps of this many rows */
static int nearly_free;  /* this many rows cost only a tenth of the cost of another row */

static double draft_cost(int rows)
{
    return draft_first + draft_row * (rows - 1);
}

static double verify_cost(int rows)
{
    const int cheap = rows < nearly_free ? rows : nearly_free,
              dear = rows - (cheap ? cheap : 1);
    return 1 + 0.1 * verify_row * (cheap ? cheap - 1 : 0) +
           verify_row * verify_class * (double)((dear + verify_class - 1) / verify_class);
}

static void plant(struct drafting *d)
{
    d->session->costs.planted[ESP_COST_DRAFT] = draft_cost;
    d->session->costs.planted[ESP_COST_VERIFY] = verify_cost;
}

static double cost_of(const struct drafting *d)
{
    const struct esp_draft *draft = &d->session->draft;
    double cost = verify_cost(d->session->iteration.tree.verified);
    for (int i = 0; i < draft->passes; i++)
        cost += draft_cost(draft->work->pass_rows[i]);
    return cost;
}

/* ------------------------------------------------------------------ all small trees */

enum { TOKENS = 5, DEEPEST = 3, TRIED = 4, AT_ONCE = 4, MOST = 64 };

struct candidate {
    double p;
    int32_t path[DEEPEST];
    int depth;
    bool expanded;
};

struct search {
    const struct toy *toy;
    const int32_t *text;
    int length;
    double price, best;
};

static void add_children(const struct search *s, struct candidate *c, int *count,
                         const struct candidate *parent)
{
    int32_t tokens[512];
    double p[256];
    memcpy(tokens, s->text, (size_t)s->length * sizeof *tokens);
    memcpy(tokens + s->length, parent->path, (size_t)parent->depth * sizeof *tokens);
    toy_distribution(s->toy, true, tokens, s->length + parent->depth, p);
    for (int x = 0; x < TOKENS; x++) {
        struct candidate child = *parent;
        child.p *= p[x];
        child.path[child.depth++] = x;
        child.expanded = false;
        int at = (*count)++;
        for (; at > 0 && c[at - 1].p < child.p; at--)
            c[at] = c[at - 1];
        c[at] = child;
    }
}

/* Finds the best tree that continues from these candidates, and stores its value in s->best.
 * Tries every choice of at most AT_ONCE nodes for the next draft pass, and every number of
 * nodes to verify. */
static void search_layer(struct search *s, const struct candidate *c, int count, double spent,
                         int layers)
{
    double sum = 1;
    int open[TRIED], n = 0;
    for (int i = 0; i <= count; i++) {
        s->best = fmax(s->best, sum - s->price * (spent + verify_cost(i + 1)));
        sum += i < count ? c[i].p : 0;
    }
    for (int i = 0; i < count && n < TRIED && layers < DEEPEST; i++)
        if (!c[i].expanded && c[i].depth < DEEPEST)
            open[n++] = i;
    for (int set = 1; set < 1 << n; set++) {
        int width = __builtin_popcount((unsigned)set);
        struct candidate more[MOST];
        int total = count;
        double cost = spent + draft_cost(width);
        /* an upper bound of the gain: in each layer, the children of a node add at most the
         * node's probability */
        double most = 0;
        for (int i = 0; i < n; i++)
            most += set >> i & 1 ? c[open[i]].p * (DEEPEST - c[open[i]].depth) : 0;
        if (width > AT_ONCE || total + width * TOKENS > MOST ||
            most < s->price * (cost - spent))
            continue;
        memcpy(more, c, (size_t)count * sizeof *more);
        for (int i = 0; i < n; i++)
            if (set >> i & 1)
                more[open[i]].expanded = true;
        for (int i = 0; i < n; i++)
            if (set >> i & 1)
                add_children(s, more, &total, &c[open[i]]);
        search_layer(s, more, total, cost, layers + 1);
    }
}

/* Returns the largest value of any tree after this text. The value of a tree is its expected
 * tokens minus the price times its cost. `behind` is the number of tokens of the text that the
 * draft model has not read yet. */
static double best_tree(const struct drafting *d, const int32_t *text, int length, int behind,
                        double price)
{
    struct search s = {&d->toy, text, length, price, 1 - price * verify_cost(1)};
    struct candidate root = {.p = 1}, c[MOST];
    int count = 0;
    add_children(&s, c, &count, &root);
    search_layer(&s, c, count, draft_cost(behind), 1);
    return s.best;
}

/* Returns the expected number of tokens of the drafted tree. In this test, q equals p. */
static double expected(const struct esp_tree *tree)
{
    double sum = 0;
    for (int i = 0; i < tree->verified; i++)
        sum += exp(tree->nodes[tree->order[i]].cumulative_log_q);
    return sum;
}

enum { CONTEXTS = 40, LEARNING = 400 };

static struct context {
    int32_t text[512];
    int length, behind;
    unsigned long long seed;
} contexts[CONTEXTS];

static void note_context(struct context *at, const struct drafting *d)
{
    at->length = d->session->length;
    at->behind = d->session->length - d->session->draft_cache.length;
    at->seed = d->toy.seed;
    memcpy(at->text, d->session->text, (size_t)at->length * sizeof *at->text);
}

/* Returns the sum of the values of the best trees of all contexts, at this price. */
static double gain_of_all(struct drafting *d, double price)
{
    double gain = 0;
    for (int i = 0; i < CONTEXTS; i++) {
        d->toy.seed = contexts[i].seed;
        gain += best_tree(d, contexts[i].text, contexts[i].length, contexts[i].behind, price);
    }
    return gain;
}

/* Returns the rate of the best trees: tokens divided by cost. The rate is the price at which
 * the value of these trees is 0 (Dinkelbach). The value falls with the price and is convex. So
 * if the search starts below the rate, it never exceeds the rate. */
static double best_rate(struct drafting *d, double price)
{
    const double little = 1e-4;
    for (int round = 0; round < 3; round++) {
        double gain = gain_of_all(d, price);
        price += gain * little / (gain - gain_of_all(d, price + little));
    }
    return price;
}

/* Returns the drafter's rate divided by the best rate. The draft model and the target have
 * equal distributions, and at most DEEPEST tokens are drafted. */
static double share_of_best(double sharpness, unsigned long long seed)
{
    struct drafting d;
    double tokens = 0, cost = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "goodput:N=12",
                                               .vocabulary = TOKENS,
                                               .toy_seed = seed,
                                               .sharpness = sharpness});
    d.toy.closeness = 1;
    d.toy.chancy = true;
    plant(&d);
    for (int i = 0; i < LEARNING + CONTEXTS; i++) {
        if (d.session->length > 180) {
            d.toy.seed += 1000;
            drafting_restart(&d, (unsigned long long)i);
        }
        esp_session_allow(d.session, DEEPEST + 1);
        if (i >= LEARNING)
            note_context(&contexts[i - LEARNING], &d);
        CHECK(drafting_step(&d));
        if (i < LEARNING)
            continue;
        tokens += expected(d.tree);
        cost += cost_of(&d);
    }
    double best = best_rate(&d, tokens / cost);
    drafting_close(&d);
    return tokens / cost / best;
}

TEST(trees_are_within_3_percent_of_the_best_of_all_small_ones)
{
    static const struct {
        double draft_first, draft_row, verify_row;
        int verify_class;
    } costs[] = {
        {0.05, 0.01, 0.05, 1},  {0.05, 0.01, 0.15, 1}, {0.15, 0.05, 0.05, 1},
        {0.02, 0.002, 0.02, 1}, {0.05, 0.01, 0.05, 4}, {0.3, 0.05, 0.1, 1},
    };
    static const double sharpness[] = {1.5, 5};
    double worst = 1, sum = 0;
    int n = 0;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        for (size_t j = 0; j < sizeof sharpness / sizeof *sharpness; j++) {
            draft_first = costs[i].draft_first;
            draft_row = costs[i].draft_row;
            verify_row = costs[i].verify_row;
            verify_class = costs[i].verify_class;
            double share = share_of_best(sharpness[j], 5 + j);
            worst = fmin(worst, share);
            sum += share;
            n++;
        }
    CHECK(worst > 0.97,
          "in the worst case the drafter reaches %g of the best rate, on average %g", worst,
          sum / n);
}

/* ------------------------------------------------------------------ never slower */

/* Returns the cost of writing `texts` texts of 200 tokens, divided by the cost of plain
 * decoding. */
static double cost_over_plain(const struct drafting_setup *setup, double closeness, int texts)
{
    struct drafting d;
    double cost = 0, tokens = 0;
    drafting_open(&d, setup);
    d.toy.closeness = closeness;
    plant(&d);
    for (int text = 0; text < texts; text++) {
        d.toy.seed = setup->toy_seed + 1000 * (unsigned long long)text;
        drafting_restart(&d, (unsigned long long)text);
        while (drafting_step(&d)) {
            cost += cost_of(&d);
            tokens += d.session->iteration.committed_count;
        }
        CHECK(cost < 1.02 * tokens, "%s: the cost is %g for %g tokens after text %d",
              setup->drafter, cost, tokens, text);
    }
    drafting_close(&d);
    return cost / (tokens * verify_cost(1));
}

/* Returns the tokens of 40 texts divided by the cost of their passes. */
static double tokens_over_cost(const char *drafter, double temperature)
{
    struct drafting_setup setup = {
        .drafter = drafter, .vocabulary = 40, .toy_seed = 7, .temperature = temperature};
    return 1 / cost_over_plain(&setup, 0.9, 40);
}

/* Nodes that were drawn at random must stay in the tree. So if some rows are nearly free, the
 * drafter must not spend them on siblings where deeper nodes of a chain would gain more. */
TEST(nearly_free_rows_are_used_where_they_gain_most)
{
    draft_first = 0.04;
    draft_row = 0.001;
    verify_row = 0.3;
    verify_class = 1;
    nearly_free = 5;
    for (int cold = 0; cold < 2; cold++) {
        const double temperature = cold ? 0.6 : 1;
        const double goodput = tokens_over_cost("goodput", temperature);
        for (int length = 2; length <= 5; length++) {
            char chain[32];
            snprintf(chain, sizeof chain, "linear:K=%d", length);
            const double fixed = tokens_over_cost(chain, temperature);
            CHECK(goodput > 0.97 * fixed, "%s: %g, goodput %g", chain, fixed, goodput);
        }
    }
    nearly_free = 0;
}

/* Guesses that need no draft pass are available from the first iteration on. The drafter must
 * still try a good draft model. Each text has its own session, because a session learns. */
TEST(recycled_tokens_do_not_replace_a_good_draft_at_the_start)
{
    double cost[2] = {0, 0};
    draft_first = 0.01;
    draft_row = 0.001;
    verify_row = 0.05;
    verify_class = 1;
    for (int recycled = 0; recycled < 2; recycled++)
        for (unsigned long long seed = 1; seed <= 20; seed++) {
            struct drafting_setup setup = {.drafter =
                                               recycled ? "goodput" : "goodput:recycled=off",
                                           .vocabulary = 6,
                                           .toy_seed = seed};
            cost[recycled] += cost_over_plain(&setup, 0.9, 1);
        }
    CHECK(cost[1] < 1.02 * cost[0], "%g with recycled tokens, %g without", cost[1], cost[0]);
}

TEST(a_useless_draft_costs_less_than_2_percent)
{
    static const double temperatures[] = {0, 0.8};
    static const char *const temps[] = {"auto", "off", "0.2"};
    verify_class = 1;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < 3; i++)
            for (int sharp = 1; sharp <= 9; sharp += 4)
                for (int dear = 0; dear < 2; dear++) {
                    struct drafting_setup setup = {.drafter = "goodput",
                                                   .draft_temp = temps[i],
                                                   .vocabulary = 40,
                                                   .toy_seed = 3,
                                                   .sharpness = sharp,
                                                   .temperature = temperatures[t]};
                    draft_first = dear ? 0.3 : 0.05;
                    draft_row = dear ? 0.02 : 0.01;
                    verify_row = dear ? 0.15 : 0.05;
                    double cost = cost_over_plain(&setup, 0, 10);
                    CHECK(cost < 1.02, "%g at temperature %g", cost, temperatures[t]);
                }
}

TEST(a_draft_as_large_as_the_target_costs_less_than_2_percent)
{
    struct drafting_setup setup = {.drafter = "goodput", .vocabulary = 40, .toy_seed = 4};
    draft_first = 1;
    draft_row = verify_row = 0.05;
    verify_class = 1;
    CHECK(cost_over_plain(&setup, 0.9, 5) < 1.02);
    CHECK(cost_over_plain(&setup, 0, 5) < 1.02);
}

TEST(a_good_draft_is_used_again_after_it_was_useless)
{
    struct drafting d;
    double before = 0, after = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "goodput",
                                               .draft_temp = "auto",
                                               .vocabulary = 40,
                                               .context = 2048,
                                               .sharpness = 5});
    draft_first = 0.05;
    draft_row = 0.002; /* also the cost of reading a token that was written without the draft */
    verify_row = 0.05;
    verify_class = 1;
    plant(&d);
    esp_session_allow(d.session, 2000);
    d.toy.closeness = 0;
    while (d.session->length < 400) /* at first, the draft is noise */
        CHECK(drafting_step(&d));
    d.toy.closeness = 1;
    double cost = 0;
    while (d.session->length < 1200) {
        CHECK(drafting_step(&d));
        cost += cost_of(&d);
    }
    before = 800 / cost;
    for (cost = 0; d.session->length < 1900;) {
        CHECK(drafting_step(&d));
        cost += cost_of(&d);
    }
    after = 700 / cost;
    CHECK(before > 1.2 && after > 2,
          "%g, then %g tokens were written for the cost of one target pass", before, after);
    drafting_close(&d);
}

/* When the draft is used again, it must first read the tokens that were written without it.
 * Here this costs more than was saved while the draft was not used. */
TEST(a_good_draft_is_used_again_even_if_catching_up_is_expensive)
{
    struct drafting d;
    double cost = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "goodput",
                                               .draft_temp = "auto",
                                               .vocabulary = 40,
                                               .context = 2048,
                                               .sharpness = 5});
    draft_first = 0.1;
    draft_row = 0.03;
    verify_row = 0.1;
    verify_class = 1;
    plant(&d);
    esp_session_allow(d.session, 2000);
    while (d.session->length < 1900) { /* the draft is good, then noise, then good again */
        d.toy.closeness = d.session->length < 400 || d.session->length > 700;
        CHECK(drafting_step(&d));
        cost += d.session->length > 1100 ? cost_of(&d) : 0;
    }
    CHECK(800 / cost > 1.3, "%g tokens were written for the cost of one target pass",
          800 / cost);
    drafting_close(&d);
}

/* If rows and passes cost almost nothing, there are more candidates than the drafter can store.
 * It must not drop the root. */
TEST(the_root_stays_if_there_are_too_many_candidates)
{
    struct drafting d;
    int most = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "goodput:N=256,retrieval=off",
                                               .vocabulary = 200,
                                               .context = 512});
    draft_first = draft_row = verify_row = 1e-7;
    verify_class = 1;
    plant(&d);
    esp_session_allow(d.session, 200);
    for (int i = 0; i < 40 && drafting_step(&d); i++) {
        const struct esp_tree *tree = &d.session->iteration.tree;
        CHECK(tree->nodes[0].verdict != ESP_CUT, "iteration %d", i);
        most = tree->count > most ? tree->count : most;
    }
    CHECK(most > 64, "%d", most);
    drafting_close(&d);
}

/* ------------------------------------------------------------------ recorded costs, texts */

TEST(cut_and_expanded_nodes_record_their_costs)
{
    struct drafting d;
    int refused = 0, plain = 0, leaves = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "goodput", .vocabulary = 40});
    draft_first = 0.05;
    draft_row = 0.01;
    verify_row = 0.1;
    verify_class = 1;
    plant(&d);
    while (drafting_step(&d)) {
        const struct esp_tree *tree = d.tree;
        double row = drafting_gauge(&d, "row", false), sum = 1;
        for (int u = 0; u < tree->count; u++) {
            const struct esp_node *node = &tree->nodes[u];
            if (u == 0) {
                plain += node->reason == ESP_REASON_PLAIN;
                continue;
            }
            CHECK(node->value >= 0 && node->value <= 1 + 1e-6, "node %d has P = %g", u,
                  node->value);
            if (node->verdict == ESP_CUT) {
                CHECK(node->reason == ESP_REASON_PRICE);
                CHECK(node->value <= row + 1e-6,
                      "node %d was cut, but its P, %g, is above the cost of a row, %g", u,
                      node->value, row);
                refused++;
            } else {
                sum += node->value;
                leaves += node->reason == ESP_REASON_LAYER;
            }
        }
        if (d.session->iteration.draft_passes > 0)
            CHECK(fabs(drafting_gauge(&d, "expected", false) - sum) < 1e-5);
        CHECK(drafting_gauge(&d, "obtained", false) == d.session->iteration.committed_count);
    }
    CHECK(refused > 20 && leaves > 20, "%d refused, %d leaves, %d plain", refused, leaves,
          plain);
    drafting_close(&d);
}

TEST(the_text_at_temperature_0_is_that_of_plain_decoding)
{
    static const double rows[] = {0.001, 0.05, 0.3};
    draft_first = 0.02;
    draft_row = 0.002;
    for (int i = 0; i < 3; i++)
        for (int nodes = 1; nodes <= 65; nodes += 8) {
            struct drafting plain, d;
            struct drafting_setup setup = {.drafter = "ar", .max_nodes = nodes};
            verify_row = rows[i];
            verify_class = 1 + i;
            drafting_open(&plain, &setup);
            setup.drafter = "goodput";
            setup.draft_temp = "auto";
            drafting_open(&d, &setup);
            plant(&d);
            while (drafting_step(&plain))
                continue;
            while (drafting_step(&d))
                continue;
            CHECK(plain.session->length == d.session->length &&
                  memcmp(plain.session->text, d.session->text,
                         (size_t)d.session->length * sizeof *d.session->text) == 0);
            drafting_close(&plain);
            drafting_close(&d);
        }
}

/* ------------------------------------------------------------------ costs */

static struct esp_costs costs, again;

TEST(costs_rise_with_rows_and_single_samples_count_little)
{
    memset(&costs, 0, sizeof costs);
    CHECK(esp_costs_verify(&costs, 1) == 0 && esp_costs_draft(&costs, 1) == 0);
    /* The first pass of a program must be ignored. */
    esp_costs_took(&costs, ESP_COST_VERIFY, 1, 5 * ESP_COST_WARM_UP);
    CHECK(esp_costs_verify(&costs, 1) == 0);
    esp_costs_took(&costs, ESP_COST_VERIFY, 1, 1);
    CHECK(esp_costs_verify(&costs, 1) == 1 && esp_costs_verify(&costs, 9) < 1.5);
    esp_costs_took(&costs, ESP_COST_VERIFY, 8, 20); /* one pass that was slow by chance */
    double once = esp_costs_verify(&costs, 8);
    CHECK(once > 1 && once < 10, "%g", once);
    for (int i = 0; i < 8; i++)
        esp_costs_took(&costs, ESP_COST_VERIFY, 8, 2);
    CHECK(fabs(esp_costs_verify(&costs, 8) - 2) < 0.01, "%g", esp_costs_verify(&costs, 8));
    /* If 4 rows take longer than 8 rows, the two times must be averaged. */
    for (int i = 0; i < 8; i++)
        esp_costs_took(&costs, ESP_COST_VERIFY, 4, 3);
    for (int rows = 2; rows < 2000; rows++)
        CHECK(esp_costs_verify(&costs, rows) >= esp_costs_verify(&costs, rows - 1), "%d", rows);
    costs.relative = 0.25;
    const double one = esp_costs_verify(&costs, 1);
    CHECK(one > 0 && one < 3, "%g", one);
    CHECK(esp_costs_draft(&costs, 1) == 0.25 * one);
    /* For longer texts, estimates must start from the known costs. */
    esp_costs_at(&costs, 5000);
    CHECK(fabs(esp_costs_verify(&costs, 1) - one) < 0.2 * one, "%g",
          esp_costs_verify(&costs, 1));
    esp_costs_took(&costs, ESP_COST_VERIFY, 1, 7);
    esp_costs_took(&costs, ESP_COST_VERIFY, 1, 7);
    esp_costs_at(&costs, 100);
    CHECK(esp_costs_verify(&costs, 1) == one);
}

/* The machine becomes three times slower, and from then on only passes of four rows are
 * measured. The estimated cost of eight rows must rise in proportion. */
TEST(costs_without_recent_samples_follow_the_costs_of_other_sizes)
{
    memset(&costs, 0, sizeof costs);
    esp_costs_took(&costs, ESP_COST_VERIFY, 1, 5 * ESP_COST_WARM_UP);
    for (int i = 0; i < 10; i++) {
        esp_costs_took(&costs, ESP_COST_VERIFY, 1, 1);
        esp_costs_took(&costs, ESP_COST_VERIFY, 4, 1.2);
        esp_costs_took(&costs, ESP_COST_VERIFY, 8, 2.4);
    }
    for (int i = 0; i < 40; i++)
        esp_costs_took(&costs, ESP_COST_VERIFY, 4, i < 20 ? 1.2 : 3.6);
    const double four = esp_costs_verify(&costs, 4), eight = esp_costs_verify(&costs, 8);
    CHECK(fabs(four - 3.6) < 0.2, "%g", four);
    CHECK(fabs(eight / four - 2) < 0.2, "%g, %g", four, eight);
}

/* While trees are faster than plain decoding, plain decoding is seldom timed. So the times of
 * trees must correct the estimated time of plain decoding. */
TEST(the_line_through_all_sizes_corrects_an_old_time_of_plain_decoding)
{
    memset(&costs, 0, sizeof costs);
    for (int i = 0; i < 3; i++)
        esp_costs_took(&costs, ESP_COST_VERIFY, 1, 2); /* the machine was busy */
    for (int i = 0; i < 50; i++)
        for (int rows = 3; rows <= 6; rows++)
            esp_costs_took(&costs, ESP_COST_VERIFY, rows, 1 + 0.1 * (rows - 1));
    CHECK(esp_costs_verify(&costs, 1) < 1.35, "%g", esp_costs_verify(&costs, 1));
}

/* On some processors, the second row is nearly free, but the third row is not. So the cost of
 * two rows is not on the line through the costs of all sizes. */
TEST(a_cost_off_the_line_is_used_if_its_samples_agree)
{
    static const double seconds[] = {0, 1, 1.2, 2, 2.3};
    memset(&costs, 0, sizeof costs);
    for (int i = 0; i < 9; i++)
        for (int rows = 1; rows <= 4; rows++)
            esp_costs_took(&costs, ESP_COST_VERIFY, rows, seconds[rows] * (1 + 0.01 * (i % 3)));
    for (int rows = 1; rows <= 4; rows++)
        CHECK(fabs(esp_costs_verify(&costs, rows) - seconds[rows]) < 0.04, "%d: %g", rows,
              esp_costs_verify(&costs, rows));
    memset(&costs, 0, sizeof costs);
    for (int i = 0; i < 9; i++)
        for (int rows = 1; rows <= 4; rows++) /* now the noise hides the differences */
            esp_costs_took(&costs, ESP_COST_VERIFY, rows, seconds[rows] * (1 + 0.5 * (i % 3)));
    CHECK(esp_costs_verify(&costs, 2) > 1.25, "%g", esp_costs_verify(&costs, 2));
}

/* If a number of rows was never tried, its cost must be estimated from the costs of other
 * numbers of rows. The estimate must be a little lower than these costs suggest. */
TEST(an_untried_size_costs_about_the_cost_of_its_additional_rows)
{
    memset(&costs, 0, sizeof costs);
    for (int i = 0; i < 4; i++)
        for (int rows = 1; rows <= 4; rows++)
            esp_costs_took(&costs, ESP_COST_VERIFY, rows, 1 + 0.25 * (rows - 1));
    const double row = (esp_costs_verify(&costs, 12) - esp_costs_verify(&costs, 4)) / 8;
    CHECK(row > 0.12 && row < 0.25, "%g", row);
}

TEST(costs_are_stored_and_damaged_files_do_no_harm)
{
    static const char *const files[] = {
        "",
        "{",
        "[1]",
        "{\"key\":\"a\"}",
        "{\"key\":\"a\",\"draft\":1,\"verify\":[1,[2],[[3]]]}",
        "{\"key\":\"a\",\"verify\":[[[-1,1],[48,1],[1e99,1],[0,-1],[0,1e99],[0,\"x\"],[null]]]"
        "}",
    };
    char home[128], command[200];
    const char *base = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/esp-goodput-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(home));
    setenv("XDG_STATE_HOME", home, 1);
    memset(&costs, 0, sizeof costs);
    memset(&again, 0, sizeof again);
    esp_costs_turn(&costs, "a");
    esp_costs_turn(&again, "a");
    for (int i = 0; i < 3; i++) { /* few samples have little weight */
        esp_costs_took(&costs, ESP_COST_VERIFY, 1, 0.5);
        esp_costs_took(&again, ESP_COST_VERIFY, 4, 0.75);
    }
    esp_costs_save(&costs);
    /* must add the measurements of `again` to the file without losing those of `costs` */
    esp_costs_save(&again);
    memset(&costs, 0, sizeof costs);
    esp_costs_turn(&costs, "a");
    CHECK(fabs(esp_costs_verify(&costs, 1) - 0.5) < 0.02 && esp_costs_verify(&costs, 4) > 0.6 &&
          esp_costs_verify(&costs, 4) < 0.76);
    esp_costs_turn(&costs, "b");
    CHECK(esp_costs_verify(&costs, 1) == 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CHECK(esp_state_write(again.file, files[i]) == ESP_OK);
        memset(&costs, 0, sizeof costs);
        esp_costs_turn(&costs, "a");
        CHECK(esp_costs_verify(&costs, 1) == 0, "%s", files[i]);
    }
    /* In the file, two rows took several times as long as one row, because the machine was
     * busy. Now the machine is idle, and the estimates must follow. */
    CHECK(esp_state_write(again.file,
                          "{\"key\":\"a\",\"verify\":[[[0,3e-3,8],[1,20e-3,8],[2,25e-3,8],"
                          "[3,27e-3,8],[4,30e-3,8]]]}") == ESP_OK);
    memset(&costs, 0, sizeof costs);
    esp_costs_turn(&costs, "a");
    CHECK(esp_costs_verify(&costs, 2) > 2 * esp_costs_verify(&costs, 1));
    for (int i = 0; i < 150; i++)
        esp_costs_took(&costs, ESP_COST_VERIFY, 1, 5e-3);
    CHECK(esp_costs_verify(&costs, 2) < 1.3 * 5e-3, "%g", esp_costs_verify(&costs, 2));
    CHECK(esp_costs_verify(&costs, 5) < 1.6 * 5e-3, "%g", esp_costs_verify(&costs, 5));
    snprintf(command, sizeof command, "rm -r '%s'", home);
    CHECK(system(command) == 0);
    unsetenv("XDG_STATE_HOME");
}

/* ------------------------------------------------------------------ sentences about costs */

TEST(sentences_about_cut_nodes_have_their_numbers)
{
    struct esp_node nodes[3] = {{.parent = -1},
                                {.parent = 0,
                                 .depth = 1,
                                 .value = 0.31f,
                                 .reason = ESP_REASON_LAYER,
                                 .p = NAN,
                                 .u = NAN},
                                {.parent = 0,
                                 .depth = 1,
                                 .value = 0.12f,
                                 .verdict = ESP_CUT,
                                 .reason = ESP_REASON_PRICE}};
    struct esp_iteration it = {
        .tree = {.nodes = nodes, .count = 3},
        .gauges = {{.name = "row", .after = 0.19}, {.name = "layer", .after = 0.4}},
        .gauge_count = 2};
    struct esp_tokens tokens = {0};
    char text[300];
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 2, &tokens);
    CHECK(strstr(text, "not drafted") && strstr(text, ".12") && strstr(text, ".19"), "%s",
          text);
    CHECK(esp_explain_refusal(text, sizeof text, &it, 1) && strstr(text, ".31") &&
              strstr(text, "0.4") && strstr(text, "draft pass"),
          "%s", text);
    nodes[0].reason = ESP_REASON_PLAIN;
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 0, &tokens);
    CHECK(strstr(text, "does not pay"), "%s", text);
    it.gauge_count = 0; /* as in a recording without gauges */
    CHECK(!esp_explain_refusal(text, sizeof text, &it, 1));
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 2, &tokens);
    CHECK(strstr(text, "not worth a row"), "%s", text);
}
