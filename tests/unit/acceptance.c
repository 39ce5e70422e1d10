/* Tests acceptance statistics. The counts of a small tree are compared with the expected
 * counts. In whole sessions, the counts by depth, by path length, by rank and by draft
 * probability must have equal sums. Acceptance by depth is compared with the verifier's
 * formula. Also tests the expected number of tokens of a tree. */
#include "viz/acceptance.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"
#include "viz/formula.h"

/* Makes an iteration with a tree of depth 2. The root has three children. One child is cut. The
 * second child is accepted, and its two children are both rejected. */
static struct esp_iteration small_tree(void)
{
    static struct esp_node nodes[6];
    static int32_t path[1] = {2};
    const struct {
        int parent, depth, rank;
        float q, p, branching;
        uint8_t verdict;
    } rows[6] = {
        {-1, 0, 0, 1, NAN, NAN, ESP_UNVISITED},    {0, 1, 0, 0.55f, 0.1f, 0.25f, ESP_REJECTED},
        {0, 1, 1, 0.3f, 0.8f, 0.5f, ESP_ACCEPTED}, {0, 1, 2, 0.05f, NAN, NAN, ESP_CUT},
        {2, 2, 0, 1, 0.2f, 0.5f, ESP_REJECTED},    {2, 2, 1, 0, NAN, 0.25f, ESP_REJECTED},
    };
    for (int i = 0; i < 6; i++)
        nodes[i] = (struct esp_node){.parent = rows[i].parent,
                                     .depth = rows[i].depth,
                                     .rank = rows[i].rank,
                                     .q = rows[i].q,
                                     .p = rows[i].p,
                                     .branching = rows[i].branching,
                                     .acceptance_rate = i == 2 ? 0.75f
                                                        : i    ? NAN
                                                               : 0.25f,
                                     .ceiling = i == 2 ? 1 : 0.5f,
                                     .verdict = rows[i].verdict};
    return (struct esp_iteration){.tree = {.nodes = nodes, .count = 6, .verified = 5},
                                  .path = path,
                                  .path_length = 1,
                                  .deepest = 2,
                                  .mask_blocks = 3};
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

TEST(the_counts_of_a_tree_match_the_expected_counts)
{
    struct esp_acceptance a = {.iterations = 0};
    struct esp_iteration it = small_tree();
    CHECK(isnan(esp_acceptance_error(&a)));
    esp_acceptance_add(&a, &it);
    esp_acceptance_add(&a, &it);
    CHECK(a.iterations == 2 && a.drafted == 8 && a.accepted == 2 && a.deepest == 4);
    CHECK(a.most_nodes == 4 && a.mask_blocks == 6);
    CHECK(a.length[1] == 2 && a.length[0] == 0 && a.length[2] == 0);
    CHECK(a.depth[0].nodes == 4 && a.depth[0].tried == 2 && a.depth[0].accepted == 2);
    CHECK(a.depth[1].nodes == 4 && a.depth[1].tried == 2 && a.depth[1].accepted == 0);
    CHECK(a.depth[2].nodes == 0 && a.depth[2].tried == 0 && a.depth[2].rated == 0);
    CHECK(a.depth[0].rated == 2 && near(a.depth[0].rate, 0.5) && near(a.depth[0].ceiling, 1));
    CHECK(a.depth[1].rated == 2 && near(a.depth[1].rate, 1.5) && near(a.depth[1].ceiling, 2));
    CHECK(a.rank[0].tried == 4 && a.rank[0].accepted == 0 && near(a.rank[0].q, 3.1));
    CHECK(a.rank[1].tried == 4 && a.rank[1].accepted == 2 && near(a.rank[1].p, 1.6));
    CHECK(a.rank[1].with_p == 2 && a.rank[2].tried == 0 && a.rank[2].nodes == 0);
    CHECK(a.rank[0].nodes == 4 && a.rank[1].nodes == 4 && a.share[9].nodes == 2);
    CHECK(a.share[5].tried == 2 && a.share[3].tried + a.share[2].tried == 2);
    CHECK(a.share[9].tried == 2 && a.share[0].tried == 2);
    /* In the four bins, the mean q is .55, .3, 1 and 0, and the accepted fraction is 0, 1, 0
     * and 0. */
    CHECK(near(esp_acceptance_error(&a), (0.55 + 0.7 + 1 + 0) / 4));
    CHECK(near(esp_formula_tokens(&it), 1 + 0.25 + 0.5 * (1 + 0.5 + 0.25)));
    CHECK(a.known == 2 && near(a.expected / 2, 2.125) && near(a.obtained, 4));
    it.tree.nodes[4].branching = it.tree.nodes[4].q = NAN;
    esp_acceptance_add(&a, &it);
    CHECK(isnan(esp_formula_tokens(&it)) && a.known == 2 && a.iterations == 3);
    CHECK(a.rank[0].tried == 6 && a.rank[0].with_q == 5 && a.share[9].tried == 2);
    CHECK(isfinite(esp_acceptance_error(&a)));
}

TEST(a_long_path_and_an_empty_tree_are_counted)
{
    enum { LONG = ESP_ACCEPT_DEPTHS + 10 };
    static struct esp_node nodes[LONG + 1];
    static int32_t path[LONG];
    struct esp_acceptance a = {.iterations = 0};
    for (int i = 0; i <= LONG; i++)
        nodes[i] = (struct esp_node){.parent = i - 1, .depth = i, .q = 1, .p = 1};
    for (int i = 0; i < LONG; i++)
        path[i] = i + 1;
    struct esp_iteration it = {
        .tree = {.nodes = nodes, .count = LONG + 1, .verified = LONG + 1},
        .path = path,
        .path_length = LONG,
        .deepest = LONG};
    esp_acceptance_add(&a, &it);
    CHECK(a.length[ESP_ACCEPT_DEPTHS] == 1 && a.accepted == LONG);
    CHECK(a.depth[ESP_ACCEPT_DEPTHS - 1].accepted == 1 && a.rank[0].tried == LONG);
    it = (struct esp_iteration){.tree = {.nodes = nodes, .count = 1, .verified = 1}};
    esp_acceptance_add(&a, &it);
    CHECK(a.length[0] == 1 && a.depth[0].tried == 1 && a.drafted == LONG);
    /* `known` counts only the long path, because the other tree has no drafted nodes */
    CHECK(near(esp_formula_tokens(&it), 1) && a.known == 1);
    it.tree.verified = 0; /* as in a recording that lacks the order of the nodes */
    esp_acceptance_add(&a, &it);
    CHECK(a.drafted == LONG && a.iterations == 3);
}

/* ------------------------------------------------------------------ whole sessions */

static struct esp_acceptance counted;
/* `wanted` has the expected number of accepted nodes at each depth, `spread` its variance. */
static double wanted[8], spread[8];

static void add(void *user, const struct esp_event *event)
{
    (void)user;
    if (event->type == ESP_EVENT_ITERATION)
        esp_acceptance_add(&counted, event->iteration);
}

static void check_sums(const char *what)
{
    const struct esp_acceptance *a = &counted;
    int64_t by_depth = 0, by_length = 0, by_share = 0, by_rank = 0, iterations = 0, nodes = 0;
    for (int i = 0; i <= ESP_ACCEPT_DEPTHS; i++) {
        by_length += i * a->length[i];
        iterations += a->length[i];
    }
    for (int i = 0; i < ESP_ACCEPT_DEPTHS; i++) {
        by_depth += a->depth[i].accepted;
        nodes += a->depth[i].nodes;
        CHECK(a->depth[i].accepted <= a->depth[i].tried && a->depth[i].tried <= iterations);
        CHECK(i == 0 || a->depth[i].tried <= a->depth[i - 1].accepted, "%s", what);
    }
    for (int i = 0; i < ESP_ACCEPT_BINS; i++)
        by_share += a->share[i].accepted;
    for (int i = 0; i < ESP_ACCEPT_RANKS; i++)
        by_rank += a->rank[i].accepted;
    CHECK(a->accepted > 10 && iterations == a->iterations, "%s", what);
    /* copied tokens have no draft probability */
    const bool copies = strcmp(what, "ngram") == 0;
    CHECK(by_share == (copies ? 0 : a->accepted), "%s", what);
    CHECK(by_length == a->accepted && by_depth == a->accepted && by_rank == a->accepted &&
              nodes == a->drafted,
          "%s", what);
}

TEST(sums_agree_over_whole_sessions)
{
    static const char *const drafters[] = {"dynatree", "iid:K=3,L=3", "dyspec:N=12",
                                           "eagle2:k=3,depth=4,N=12", "ngram"};
    for (int i = 0; i < 10; i++) {
        struct drafting d;
        memset(&counted, 0, sizeof counted);
        drafting_open(&d, &(struct drafting_setup){.drafter = drafters[i / 2],
                                                   .temperature = i % 2,
                                                   .sharpness = 4,
                                                   .observer = add});
        while (drafting_step(&d))
            continue;
        check_sums(drafters[i / 2]);
        drafting_close(&d);
    }
}

/* For each depth that verifier naive reaches, adds its acceptance probability at that depth,
 * which is the sum of min(p, q). */
static void add_formula(void *user, const struct esp_event *event)
{
    const struct drafting *d = user;
    add(NULL, event);
    if (event->type != ESP_EVENT_STAGE || event->stage != ESP_STAGE_SELECT)
        return;
    const struct esp_iteration *it = event->iteration;
    for (int i = 0; i <= it->path_length && i < it->deepest; i++) {
        double rate = it->tree.nodes[i == 0 ? 0 : it->path[i - 1]].acceptance_rate;
        CHECK(rate >= 0 && rate <= 1 + 1e-6 && i < 8, "%g", rate);
        wanted[i] += rate;
        spread[i] += rate * (1 - rate);
    }
    (void)d;
}

TEST(acceptance_by_depth_matches_the_formula)
{
    memset(&counted, 0, sizeof counted);
    for (unsigned long long seed = 1; seed <= (check_quick() ? 4 : 30); seed++) {
        struct drafting d;
        drafting_open(&d, &(struct drafting_setup){.drafter = "linear:K=4",
                                                   .temperature = 1,
                                                   .seed = seed,
                                                   .toy_seed = seed,
                                                   .observer = add_formula});
        drafting_set(&d, "verifier", "naive");
        esp_session_explain(d.session, true);
        while (drafting_step(&d))
            continue;
        drafting_close(&d);
    }
    for (int i = 0; i < 4; i++) {
        double off = (double)counted.depth[i].accepted - wanted[i];
        CHECK(counted.depth[i].tried > 30 && fabs(off) < 4.5 * sqrt(spread[i]),
              "depth %d: %lld of %lld were accepted, expected %.1f", i + 1,
              (long long)counted.depth[i].accepted, (long long)counted.depth[i].tried,
              wanted[i]);
    }
}

/* ------------------------------------------------------------ the expected number of tokens */

static double difference, variance;

static void add_expected(void *user, const struct esp_event *event)
{
    (void)user;
    if (event->type != ESP_EVENT_STAGE || event->stage != ESP_STAGE_SELECT)
        return;
    double expected = esp_formula_tokens(event->iteration);
    double off = event->iteration->path_length + 1 - expected;
    CHECK(expected >= 1 && expected <= event->iteration->deepest + 1 + 1e-5);
    difference += off;
    variance += off * off;
}

/* On average, the accepted path is as long as the tree's branching probabilities predict.
 * lossless/exact_tree.c proves this by enumeration. */
TEST(trees_give_the_expected_number_of_tokens)
{
    static const char *const pairs[][2] = {{"iid:K=3,L=3", "specinfer"},
                                           {"iid:K=3,L=3", "khisti"},
                                           {"dyspec:N=10", "swor"},
                                           {"dynatree", "nss"},
                                           {"delayed", "spectr"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        difference = variance = 0;
        for (unsigned long long seed = 1; seed <= (check_quick() ? 3 : 12); seed++) {
            struct drafting d;
            drafting_open(&d, &(struct drafting_setup){.drafter = pairs[i][0],
                                                       .temperature = 1,
                                                       .seed = seed,
                                                       .toy_seed = seed,
                                                       .observer = add_expected});
            drafting_set(&d, "verifier", pairs[i][1]);
            esp_session_explain(d.session, true);
            while (drafting_step(&d))
                continue;
            drafting_close(&d);
        }
        CHECK(variance > 10 && fabs(difference) < 4.5 * sqrt(variance), "%s: off by %g +- %g",
              pairs[i][1], difference, sqrt(variance));
    }
}
