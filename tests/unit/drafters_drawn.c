/* Tests drafters that sample. Their draws must have the stated joint distribution. Drafter
 * dyspec must always draw where v is largest, and must find the best tree. Verifiers must get
 * the distribution from which the drafter has sampled.
 *
 * The joint distributions prove that the decision to draw is made before the token is known. If
 * it depended on the token, some trees would occur too often.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"

#ifdef __SANITIZE_ADDRESS__
enum { RUNS = 4000 };
#else
enum { RUNS = 20000 };
#endif

static double power(double q, double temperature)
{
    return pow(q, 1 / temperature);
}

/* Computes the draft's distribution after a node at a temperature. */
static void q_at(const struct drafting *d, int node, double temperature, double *q)
{
    double sum = 0;
    drafting_q(d, node, q);
    for (int x = 0; x < d->toy.vocabulary; x++)
        sum += q[x] = power(q[x], temperature);
    for (int x = 0; x < d->toy.vocabulary; x++)
        q[x] /= sum;
}

/* Lists the tokens that were drawn below a node, in order, with -1 after the last token. */
static void drawn(const struct drafting *d, int node, int32_t *tokens, int most)
{
    int32_t nodes[64];
    int n = esp_tree_draws(&d->session->tree, node, nodes, 64);
    for (int i = 0; i < most; i++)
        tokens[i] = i < n ? d->tree->nodes[nodes[i]].token : -1;
}

/* ------------------------------------------------------------------ independent paths */

/* Checks the joint distribution of K=2 paths of length 2. With three tokens, there are 81
 * outcomes, and the recorded sequence of draws identifies the outcome. */
static void check_two_paths(const char *drafter, double temperature)
{
    struct drafting d;
    int seen[81] = {0};
    double p[81], q[3][3], root[3];
    drafting_open(&d, &(struct drafting_setup){
                          .drafter = drafter, .vocabulary = 3, .temperature = temperature});
    for (int run = 0; run < RUNS; run++) {
        int32_t first[2], second[2];
        drafting_restart(&d, (unsigned long long)run);
        CHECK(drafting_step(&d));
        drawn(&d, 0, first, 2);
        if (first[0] == first[1]) {
            int node = esp_tree_find(&d.session->tree, 0, first[0]);
            CHECK(d.tree->nodes[node].copies == 2 && d.session->tree.first_child[0] == node);
            drawn(&d, node, second, 2);
        } else
            for (int i = 0; i < 2; i++)
                drawn(&d, esp_tree_find(&d.session->tree, 0, first[i]), second + i, 1);
        CHECK(first[0] >= 0 && first[1] >= 0 && second[0] >= 0 && second[1] >= 0);
        seen[((first[0] * 3 + first[1]) * 3 + second[0]) * 3 + second[1]]++;
    }
    q_at(&d, 0, 1, root);
    for (int32_t x = 0; x < 3; x++)
        drafting_q_after(&d, &x, 1, q[x]);
    for (int i = 0; i < 81; i++) {
        int a = i / 27, b = i / 9 % 3, c = i / 3 % 3, e = i % 3;
        p[i] = root[a] * root[b] * q[a][c] * q[b][e];
    }
    CHECK(drafting_chi_square(seen, p, 81, RUNS), "%s", drafter);
    drafting_close(&d);
}

TEST(paths_are_drawn_independently)
{
    check_two_paths("iid:K=2,L=2", 1);
    /* if the target's temperature is 0, the draft samples at its own temperature */
    check_two_paths("iid:K=2,L=2", 0);
    check_two_paths("delayed:K=2,L1=0,L2=2", 1);
    check_two_paths("specinfer:expansion=2.1,draws=iid", 0);
}

TEST(a_stem_splits_into_paths)
{
    struct drafting d;
    int seen[27] = {0};
    double p[27], root[3], q[3];
    drafting_open(&d, &(struct drafting_setup){.drafter = "delayed:K=2,L1=1,L2=1",
                                               .vocabulary = 3,
                                               .temperature = 1});
    for (int run = 0; run < RUNS; run++) {
        int32_t stem[2], branch[3];
        drafting_restart(&d, (unsigned long long)run);
        CHECK(drafting_step(&d));
        drawn(&d, 0, stem, 2);
        drawn(&d, 1, branch, 3);
        CHECK(stem[1] == -1 && branch[2] == -1);
        seen[(stem[0] * 3 + branch[0]) * 3 + branch[1]]++;
    }
    q_at(&d, 0, 1, root);
    for (int i = 0; i < 27; i++) {
        int32_t a = i / 9;
        drafting_q_after(&d, &a, 1, q);
        p[i] = root[a] * q[i / 3 % 3] * q[i % 3];
    }
    CHECK(drafting_chi_square(seen, p, 27, RUNS));
    drafting_close(&d);
}

/* If not all paths fit, the number of draws below a node must not depend on the drawn
 * tokens. */
TEST(a_small_tree_leaves_out_draws_by_their_number)
{
    struct drafting d;
    drafting_open(
        &d, &(struct drafting_setup){
                .drafter = "iid:K=4,L=3", .vocabulary = 3, .max_nodes = 6, .temperature = 1});
    for (int run = 0; run < 500; run++) {
        int draws = 0, below = 0;
        drafting_restart(&d, (unsigned long long)run);
        CHECK(drafting_step(&d));
        for (int u = 0; u < d.tree->count; u++) {
            int n = esp_tree_draws(&d.session->tree, u, NULL, 0);
            draws += n;
            below += u > 0 ? n : 0;
        }
        CHECK(draws == 6 && below == 2, "%d draws, %d of them below nodes of depth 1", draws,
              below);
    }
    drafting_close(&d);
}

/* ---------------------------------------------------------------- draws without replacement */

/* Checks the joint distribution of three children of the root. With four tokens, there are 24
 * outcomes. */
static void check_three_children(const char *drafter, double sampling, const char *draft_temp,
                                 double temperature, bool waits)
{
    struct drafting d;
    int seen[64] = {0};
    double p[64] = {0}, q[4];
    drafting_open(&d, &(struct drafting_setup){.drafter = drafter,
                                               .draft_temp = draft_temp,
                                               .vocabulary = 4,
                                               .temperature = sampling,
                                               .waits = waits});
    for (int run = 0; run < RUNS; run++) {
        int32_t token[4];
        drafting_restart(&d, (unsigned long long)run);
        CHECK(drafting_step(&d));
        drawn(&d, 0, token, 4);
        CHECK(token[2] >= 0 && token[3] == -1);
        seen[(token[0] * 4 + token[1]) * 4 + token[2]]++;
    }
    q_at(&d, 0, temperature, q);
    for (int i = 0; i < 64; i++) {
        int a = i / 16, b = i / 4 % 4, c = i % 4;
        if (a != b && a != c && b != c)
            p[i] = q[a] * (q[b] / (1 - q[a])) * (q[c] / (1 - q[a] - q[b]));
    }
    CHECK(drafting_chi_square(seen, p, 64, RUNS), "%s", drafter);
    drafting_close(&d);
}

TEST(children_are_drawn_without_replacement)
{
    for (int waits = 0; waits < 2; waits++) {
        check_three_children("sequoia:N=3,depth=1,draws=swor,learn=off", 1, "off", 1, waits);
        check_three_children("sequoia:N=3,depth=1,draws=swor,learn=off", 0, "off", 1, waits);
        check_three_children("dyspec-layer:N=3,threshold=0.0001", 1, "1", 1, waits);
        check_three_children("dyspec-layer:N=3,threshold=0.0001", 1, "0.7", 0.7, waits);
    }
}

/* The drafter needs more children of a node than it draws at a time. */
TEST(no_child_is_drawn_twice)
{
    static const char *const specs[] = {"dyspec:N=40", "dyspec-layer:N=40,threshold=0.001"};
    for (int i = 0; i < 4; i++) {
        struct drafting d;
        int most = 0;
        drafting_open(&d, &(struct drafting_setup){.drafter = specs[i / 2],
                                                   .draft_temp = "2",
                                                   .vocabulary = 30,
                                                   .temperature = 1,
                                                   .sharpness = 0.3,
                                                   .waits = i % 2});
        for (int run = 0; run < 20; run++) {
            drafting_restart(&d, (unsigned long long)run);
            CHECK(drafting_step(&d));
            for (int u = 0; u < d.tree->count; u++) {
                int children = esp_tree_draws(&d.session->tree, u, NULL, 0);
                most = children > most ? children : most;
                CHECK(d.tree->nodes[u].copies == 1, "%s", specs[i / 2]);
            }
        }
        CHECK(most > 8, "%s: no node has more than %d children", specs[i / 2], most);
        drafting_close(&d);
    }
}

/* Enumerates every tree that three draws of dyspec can give, and its probability. This is a
 * direct implementation of algorithm 1. A tree is represented as a sequence of pairs (parent
 * draw, token). */
struct draw {
    int parent, token; /* `parent` is the number of the parent's draw, or 0 for the root */
    double v, r;
};

struct cells {
    const struct drafting *d;
    double temperature;
    int count;
    long code[4096];
    double p[4096];
};

static void path_of(const struct draw *draws, int u, int32_t *path, int *depth)
{
    int32_t back[8];
    *depth = 0;
    for (; u > 0; u = draws[u].parent)
        back[(*depth)++] = draws[u].token;
    for (int i = 0; i < *depth; i++)
        path[i] = back[*depth - 1 - i];
}

static long code_of(const struct draw *draws, int count)
{
    long code = 0;
    for (int i = 1; i <= count; i++)
        code = (code * 8 + draws[i].parent) * 8 + draws[i].token;
    return code;
}

/* Returns the value v of the next draw below draw u, after the earlier draws. */
static double next_v(const struct draw *draws, int count, int u)
{
    double v = u == 0 ? 1 : draws[u].v * draws[u].r;
    for (int i = 1; i <= count; i++)
        if (draws[i].parent == u)
            v = draws[i].v * (1 - draws[i].r);
    return v;
}

static void follow(struct cells *c, struct draw *draws, int count, int most, double p)
{
    int32_t path[8] = {0};
    int depth, best = 0;
    double q[8], sum = 0, left = 1;
    if (count == most) {
        c->code[c->count] = code_of(draws, count);
        c->p[c->count++] = p;
        return;
    }
    for (int u = 1; u <= count; u++)
        if (next_v(draws, count, u) > next_v(draws, count, best))
            best = u;
    path_of(draws, best, path, &depth);
    drafting_q_after(c->d, path, depth, q);
    int n = c->d->toy.vocabulary;
    for (int x = 0; x < n; x++)
        sum += q[x] = power(q[x], c->temperature);
    for (int i = 1; i <= count; i++)
        if (draws[i].parent == best)
            left -= q[draws[i].token] / sum;
    for (int x = 0; x < n; x++) {
        bool used = false;
        for (int i = 1; i <= count; i++)
            used |= draws[i].parent == best && draws[i].token == x;
        if (used)
            continue;
        double r = q[x] / sum / left;
        draws[count + 1] = (struct draw){best, x, next_v(draws, count, best), r};
        follow(c, draws, count + 1, most, p * r);
    }
}

TEST(dyspec_trees_have_the_distribution_of_algorithm_1)
{
    static struct cells c;
    static int seen[4096];
    for (int trial = 0; trial < 8; trial++) {
        struct drafting d;
        struct draw draws[8] = {{0}};
        drafting_open(&d, &(struct drafting_setup){.drafter = "dyspec:N=3",
                                                   .draft_temp = trial % 2 ? "1" : "0.6",
                                                   .vocabulary = 4,
                                                   .toy_seed = 10 + (unsigned)trial,
                                                   .temperature = trial / 2 % 2,
                                                   .sharpness = 1,
                                                   .waits = trial / 4});
        memset(seen, 0, sizeof seen);
        c.count = 0;
        for (int run = 0; run < RUNS; run++) {
            drafting_restart(&d, (unsigned long long)run);
            CHECK(drafting_step(&d));
            if (run == 0) {
                c.d = &d;
                c.temperature = trial % 2 ? 1 : 0.6;
                follow(&c, draws, 0, 3, 1);
            }
            struct draw got[4] = {{0}};
            CHECK(d.tree->count == 4);
            for (int u = 1; u < 4; u++)
                got[u] = (struct draw){d.tree->nodes[u].parent, d.tree->nodes[u].token, 0, 0};
            int cell = 0;
            while (cell < c.count && c.code[cell] != code_of(got, 3))
                cell++;
            CHECK(cell < c.count, "an impossible tree");
            seen[cell]++;
        }
        CHECK(drafting_chi_square(seen, c.p, c.count, RUNS), "trial %d, %d trees", trial,
              c.count);
        drafting_close(&d);
    }
}

/* ------------------------------------------------------------------ what dyspec draws */

/* Returns R of a node: its q divided by the probability that remains after its earlier
 * siblings. */
static double share(const struct esp_tree *t, int node)
{
    double left = 1;
    for (int u = 1; u < node; u++)
        if (t->nodes[u].parent == t->nodes[node].parent)
            left -= t->nodes[u].q;
    return t->nodes[node].q / left;
}

/* Returns the value v of the next draw below node u in the tree of the first `count` nodes. */
static double pending(const struct esp_tree *t, int count, int u)
{
    double v = u == 0 ? 1 : t->nodes[u].value * share(t, u);
    for (int c = 1; c < count; c++)
        if (t->nodes[c].parent == u)
            v = t->nodes[c].value * (1 - share(t, c));
    return v;
}

TEST(dyspec_draws_in_descending_order_of_v)
{
    for (unsigned long long seed = 1; seed <= 20; seed++) {
        struct drafting d;
        drafting_open(&d, &(struct drafting_setup){.drafter = "dyspec:N=40",
                                                   .toy_seed = seed,
                                                   .seed = seed,
                                                   .sharpness = 0.5 * (double)(seed % 7),
                                                   .temperature = (double)(seed % 2)});
        for (int i = 0; i < 8; i++) {
            CHECK(drafting_step(&d));
            CHECK(d.tree->verified == 41, "%d nodes", d.tree->verified - 1);
            for (int u = 1; u < d.tree->count; u++) {
                double v = d.tree->nodes[u].value,
                       own = pending(d.tree, u, d.tree->nodes[u].parent);
                CHECK(u == 1 || v <= d.tree->nodes[u - 1].value, "v rises at node %d", u);
                CHECK(fabs(v - own) < 1e-5, "node %d has v %g, want %g", u, v, own);
                for (int w = 0; w < u; w++)
                    CHECK(pending(d.tree, u, w) < v + 1e-5, "a larger v was possible");
            }
        }
        drafting_close(&d);
    }
}

/* A draw that dyspec could make. If the drafted tree contains this draw, R is the R of the
 * drawn node. Otherwise R is random. best_sum() returns the largest sum of v over `left`
 * draws that form a tree. A tree that contains a draw also contains the draws of its parent
 * and of its earlier sibling. The sum is the expected number of accepted tokens, because all
 * draws have the same acceptance rate (dyspec, app. D, eq. 7 and 11). */
struct place {
    int node; /* the drawn node, or -1 if the drafted tree lacks this draw */
    double v;
};

static double best_sum(const struct esp_tree *t, struct place *open, int count, int from,
                       int left, unsigned long long *state)
{
    double best = 0;
    if (left == 0)
        return 0;
    /* The next draw is open[i]. Earlier entries of `open` are excluded from now on. */
    for (int i = from; i < count; i++) {
        struct place place = open[i];
        unsigned long long own = *state + (unsigned long long)(long long)(place.v * 1e9);
        double r = place.node >= 0 ? share(t, place.node) : check_uniform(&own);
        int child = -1, sibling = -1;
        for (int u = 1; u < t->count && place.node >= 0; u++) {
            if (t->nodes[u].parent == place.node && child < 0)
                child = u;
            if (t->nodes[u].parent == t->nodes[place.node].parent && u > place.node &&
                sibling < 0)
                sibling = u;
        }
        open[count] = (struct place){child, place.v * r};
        open[count + 1] = (struct place){sibling, place.v * (1 - r)};
        double sum = place.v + best_sum(t, open, count + 2, i + 1, left - 1, state);
        best = sum > best ? sum : best;
    }
    return best;
}

TEST(no_other_choice_of_draws_is_expected_to_accept_more)
{
    for (unsigned long long seed = 1; seed <= 60; seed++) {
        struct drafting d;
        struct place open[64];
        double got = 0;
        drafting_open(&d, &(struct drafting_setup){.drafter = "dyspec:N=7",
                                                   .toy_seed = seed,
                                                   .seed = seed,
                                                   .vocabulary = 5,
                                                   .sharpness = 0.5 * (double)(seed % 5)});
        CHECK(drafting_step(&d));
        for (int u = 1; u < d.tree->count; u++)
            got += d.tree->nodes[u].value;
        open[0] = (struct place){1, 1};
        double best = best_sum(d.tree, open, 1, 0, 7, &seed);
        CHECK(got > best - 1e-5, "the sum of v is %g in the drafted tree, %g in another tree",
              got, best);
        CHECK(got < best + 1e-5,
              "the search missed the drafted tree: its sum of v is %g, the largest found is %g",
              got, best);
        drafting_close(&d);
    }
}

/* ------------------------------------------------------------------ drafter dyspec-layer */

TEST(dyspec_layer_draws_all_above_the_threshold)
{
    int small = 0, limited = 0;
    for (unsigned long long seed = 1; seed <= 20; seed++) {
        struct drafting d;
        drafting_open(&d,
                      &(struct drafting_setup){.drafter = "dyspec-layer:threshold=0.04,N=60",
                                               .toy_seed = seed,
                                               .seed = seed,
                                               .sharpness = 1 + (double)(seed % 4)});
        for (int i = 0; i < 8; i++) {
            CHECK(drafting_step(&d));
            for (int u = 1; u < d.tree->count; u++)
                CHECK(d.tree->nodes[u].value >= 0.04f - 1e-6, "node %d has v %g", u,
                      d.tree->nodes[u].value);
            bool all = d.tree->verified < 61;
            for (int u = 0; u < d.tree->count && all; u++)
                CHECK(pending(d.tree, d.tree->count, u) < 0.04 + 1e-6, "a draw is missing");
            small += all;
            limited += !all;
        }
        drafting_close(&d);
    }
    CHECK(small > 20 && limited > 0, "%d trees have fewer than N nodes, %d have N", small,
          limited);
}

/* The value of a tree is the sum of v over its draws. With the predicted threshold, it must be
 * close to that of the best tree with the same number of draws. The trees must have N nodes on
 * average. */
TEST(dyspec_layer_finds_the_threshold_of_n_nodes)
{
    static const char *const specs[] = {"dyspec:N=30", "dyspec-layer:N=30"};
    for (unsigned long long seed = 1; seed <= 5; seed++) {
        double worth[2] = {0}, nodes[2] = {0};
        for (int i = 0; i < 2; i++) {
            struct drafting d;
            drafting_open(&d, &(struct drafting_setup){.drafter = specs[i],
                                                       .toy_seed = seed,
                                                       .seed = seed,
                                                       .sharpness = 1 + (double)(seed % 4)});
            for (int step = 0; step < 40 && drafting_step(&d); step++) {
                CHECK(d.tree->verified - 1 <= 60, "%d nodes", d.tree->verified - 1);
                if (step < 5)
                    continue;
                nodes[i] += (d.tree->verified - 1) / 35.0;
                for (int u = 1; u < d.tree->count; u++)
                    worth[i] += d.tree->nodes[u].value / 35;
            }
            if (i == 1)
                CHECK(fabs(drafting_gauge(&d, "threshold", false) - 4.0 / 30) > 1e-3);
            drafting_close(&d);
        }
        CHECK(nodes[1] > 25 && nodes[1] < 35, "seed %llu: %g nodes", seed, nodes[1]);
        CHECK(worth[1] > 0.9 * worth[0], "seed %llu: the sum of v is %g, that of dyspec %g",
              seed, worth[1], worth[0]);
    }
}

TEST(dyspec_layer_takes_one_pass_per_depth)
{
    struct drafting d;
    drafting_open(&d, &(struct drafting_setup){.drafter = "dyspec-layer"});
    for (int i = 0; i < 20; i++) {
        CHECK(drafting_step(&d));
        const struct esp_iteration *it = &d.session->iteration;
        CHECK(it->draft_passes <= it->deepest + 1 && it->draft_passes >= 1);
    }
    drafting_close(&d);
}

/* ----------------------------------------------------- the distributions that verifiers get */

/* Counts the rows of q that were compared. The test compares the rows when drafting ends,
 * because a verifier can change them later. */
static int rows_compared;
static double drafted_at;

static void compare_rows(void *user, const struct esp_event *event)
{
    const struct drafting *d = user;
    if (event->type != ESP_EVENT_STAGE || event->stage != ESP_STAGE_DRAFT)
        return;
    const struct esp_tree_builder *b = &d->session->tree;
    for (int u = 0; u < d->tree->count; u++) {
        double want[12];
        int row = d->session->draft.q_row[u];
        if (row < 0) {
            CHECK(b->first_child[u] < 0, "node %d has children, but no row of q", u);
            continue;
        }
        rows_compared++;
        double learned = d->session->beta;
        if (d->session->set.sampling.temperature > 0)
            learned /= d->session->set.sampling.temperature;
        q_at(d, u, drafted_at > 0 ? drafted_at : 1 / learned, want);
        for (int x = 0; x < 12; x++)
            CHECK(fabs(toy_row(d->session->q, row)[x] - want[x]) < 1e-9,
                  "node %d token %d has q %g, want %g", u, x, toy_row(d->session->q, row)[x],
                  want[x]);
        for (int c = b->first_child[u]; c >= 0; c = b->next_sibling[c])
            CHECK(fabs(d->tree->nodes[c].q - want[d->tree->nodes[c].token]) < 1e-6);
    }
}

TEST(verifiers_get_the_distribution_that_was_sampled_from)
{
    static const struct {
        const char *drafter, *draft_temp;
        double sampling, temperature; /* 0 means the learned temperature */
    } cases[] = {
        {"dyspec", "0.6", 1, 0.6},
        {"dyspec", "1.3", 0.5, 1.3},
        {"dyspec-layer", "0.6", 1, 0.6},
        {"iid", "off", 0.8, 0.8},
        {"iid", "off", 0, 1},
        {"iid", "auto", 0.8, 0},
        {"delayed", "off", 1.5, 1.5},
        {"sequoia:learn=off", "off", 0.7, 0.7},
        {"sequoia:learn=off", "auto", 0, 0},
        {"linear", "off", 0.9, 0.9},
        {"linear", "0.4", 0.9, 0.4},
        {"specinfer", "off", 1, 1},
        {"assisted:confidence=0", "off", 2, 2},
        {"dyspec", "0.6", 0, 0.6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct drafting d;
        rows_compared = 0;
        drafted_at = cases[i].temperature;
        drafting_open(&d, &(struct drafting_setup){.drafter = cases[i].drafter,
                                                   .draft_temp = cases[i].draft_temp,
                                                   .temperature = cases[i].sampling,
                                                   .observer = compare_rows});
        for (int step = 0; step < 5; step++)
            CHECK(drafting_step(&d));
        CHECK(rows_compared > 10, "%s", cases[i].drafter);
        drafting_close(&d);
    }
}
