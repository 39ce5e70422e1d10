/* Compares the drafters that search for the likeliest nodes (optimal, salf, eagle2) with direct
 * implementations.
 *
 * These implementations work on whole distributions of the toy model. They share no code with
 * the project's tree, queue or pruning. The vocabulary and the depth are small, so that all
 * trees can be tried.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"

enum { DEPTH = 5, MOST = 20000, VOCABULARY = 5 };

/* A node, identified by its path from the root. */
struct path {
    int32_t token[DEPTH];
    int depth;
    double p;
};

static struct path all[MOST], kept[MOST];

static int by_falling_p(const void *a, const void *b)
{
    const struct path *x = a, *y = b;
    return (x->p < y->p) - (x->p > y->p);
}

/* Appends the children of the node to `to`. Returns the new number of nodes in `to`. */
static int add_children(const struct drafting *d, struct path path, struct path *to, int count)
{
    double q[VOCABULARY];
    drafting_q_after(d, path.token, path.depth, q);
    for (int x = 0; x < VOCABULARY; x++) {
        to[count] = path;
        to[count].token[path.depth] = x;
        to[count].depth = path.depth + 1;
        to[count++].p = path.p * q[x];
    }
    return count;
}

static bool same_path(const struct esp_tree *tree, int node, const struct path *path)
{
    if (tree->nodes[node].depth != path->depth)
        return false;
    for (; node > 0; node = tree->nodes[node].parent)
        if (tree->nodes[node].token != path->token[tree->nodes[node].depth - 1])
            return false;
    return true;
}

/* Checks that the verified nodes are exactly the nodes of `want`. */
static void check_tree(const struct drafting *d, const struct path *want, int count,
                       const char *what)
{
    CHECK(d->tree->verified - 1 == count, "%s: %d nodes, want %d", what, d->tree->verified - 1,
          count);
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (int u = 1; u < d->tree->count && !found; u++)
            found = d->tree->nodes[u].verdict != ESP_CUT && same_path(d->tree, u, &want[i]);
        CHECK(found, "%s: a node of depth %d and probability %g is missing", what,
              want[i].depth, want[i].p);
    }
}

/* Runs a drafter on random distributions with a depth limit of DEPTH and checks its first
 * trees. */
static void run(const char *drafter, void (*check)(const struct drafting *, const char *))
{
    for (unsigned long long seed = 1; seed <= 24; seed++) {
        struct drafting d;
        drafting_open(&d, &(struct drafting_setup){.drafter = drafter,
                                                   .vocabulary = VOCABULARY,
                                                   .max_nodes = 100,
                                                   .toy_seed = seed,
                                                   .sharpness = 0.5 + (double)(seed % 6)});
        for (int i = 0; i < 4; i++) {
            esp_session_allow(d.session, DEPTH + 1); /* the last token is the bonus token */
            CHECK(drafting_step(&d));
            check(&d, drafter);
        }
        drafting_close(&d);
    }
}

static int param(const struct drafting *d, const char *name)
{
    char value[32];
    CHECK(esp_session_get(d->session, name, value, sizeof value) == 0);
    return atoi(value);
}

/* ------------------------------------------------------------------ brute force */

static void check_brute_force(const struct drafting *d, const char *what)
{
    int count = 0, first = 0, n = param(d, "N");
    count = add_children(d, (struct path){.p = 1}, all, 0);
    for (int depth = 1; depth < DEPTH; depth++)
        for (int end = count; first < end; first++)
            count = add_children(d, all[first], all, count);
    memcpy(kept, all, (size_t)count * sizeof *all);
    qsort(kept, (size_t)count, sizeof *kept, by_falling_p);
    check_tree(d, kept, n, what);
}

TEST(optimal_finds_the_likeliest_nodes)
{
    run("optimal:N=30", check_brute_force);
    run("optimal:N=11,B=1", check_brute_force);
    run("optimal:N=64,B=64", check_brute_force);
}

TEST(salf_without_threshold_is_optimal)
{
    run("salf:N=30,th=0", check_brute_force);
    run("salf:N=17,B=3,th=0", check_brute_force);
}

/* ------------------------------------------------------------------ SALF */

/* Follows the algorithm line by line, with two exceptions. N does not count the root. With
 * th=0, an empty D also ends the algorithm. */
static void check_salf(const struct drafting *d, const char *what)
{
    static struct path q[MOST], g[MOST], batch[MOST];
    int n = param(d, "N"), b = param(d, "B"), in_q = 1, in_g = 0;
    char th[32];
    CHECK(esp_session_get(d->session, "th", th, sizeof th) == 0);
    q[0] = (struct path){.p = 1}; /* lines 1 and 2 */
    for (;;) {
        int count = 0, left = 0;
        double epsilon = 0, sum = 0;
        qsort(q, (size_t)in_q, sizeof *q, by_falling_p);
        while (count < b && count < in_q) /* lines 5 to 9 */
            batch[count] = g[in_g++] = q[count], count++;
        memmove(q, q + count, (size_t)(in_q - count) * sizeof *q);
        in_q -= count;
        qsort(g, (size_t)in_g, sizeof *g, by_falling_p);
        if (in_g >= n + 1) {
            in_g = n + 1;
            epsilon = g[n].p; /* lines 10 and 11 */
        }
        for (int i = 0; i < count; i++)
            if (batch[i].p > epsilon)
                batch[left++] = batch[i]; /* line 12 */
        for (int i = 0; i < left; i++)
            sum += batch[i].p;
        if (sum < atof(th) || left == 0)
            break; /* line 13 */
        for (int i = 0; i < left; i++)
            if (batch[i].depth < DEPTH)
                in_q = add_children(d, batch[i], q, in_q); /* lines 14 to 20 */
        qsort(q, (size_t)in_q, sizeof *q, by_falling_p);
        in_q = in_q < n ? in_q : n;
    }
    check_tree(d, g + 1, in_g - 1, what); /* g[0] is the root */
}

TEST(salf_follows_the_papers_algorithm)
{
    run("salf:N=30,B=4", check_salf);
    run("salf:N=30,B=2,th=0.3", check_salf);
    run("salf:N=12,B=4,th=0.1", check_salf);
    run("salf:N=60,B=10,th=0.9", check_salf);
}

static double sums[64];
static int rounds, expanded;

static void sum_rounds(void *user, const struct esp_event *event)
{
    struct drafting *d = user;
    if (event->type != ESP_EVENT_LAYER)
        return;
    const struct esp_draft *draft = &d->session->draft;
    double sum = 0;
    for (int u = 0; u < draft->tree->tree.count; u++)
        if (draft->q_row[u] >= expanded)
            sum += exp(draft->tree->tree.nodes[u].cumulative_log_q);
    expanded = draft->expanded;
    CHECK(rounds < 64);
    sums[rounds++] = sum;
}

TEST(the_sum_of_each_salf_round_is_below_that_of_the_round_before)
{
    static const char *const specs[] = {"salf:th=0", "salf:th=0.2,B=3", "optimal:N=40,B=5"};
    int compared = 0;
    for (unsigned long long seed = 1; seed <= 30; seed++) {
        struct drafting d;
        drafting_open(&d, &(struct drafting_setup){.drafter = specs[seed % 3],
                                                   .toy_seed = seed,
                                                   .sharpness = 1 + (double)(seed % 5),
                                                   .observer = sum_rounds});
        for (int i = 0; i < 5; i++) {
            rounds = expanded = 0;
            CHECK(drafting_step(&d));
            for (int r = 2; r < rounds; r++, compared++)
                CHECK(sums[r] < sums[r - 1], "round %d has %g after %g", r, sums[r],
                      sums[r - 1]);
        }
        drafting_close(&d);
    }
    CHECK(compared > 500, "only %d rounds", compared);
}

/* ------------------------------------------------------------------ EAGLE-2 */

static void check_eagle2(const struct drafting *d, const char *what)
{
    static struct path layer[MOST], next[MOST];
    int k = param(d, "k"), depth = param(d, "depth"), n = param(d, "N"), in_layer = 1,
        count = 0;
    layer[0] = (struct path){.p = 1};
    for (int level = 0; level < depth && level < DEPTH; level++) { /* phase 1 */
        int found = 0;
        qsort(layer, (size_t)in_layer, sizeof *layer, by_falling_p);
        for (int i = 0; i < k && i < in_layer; i++) {
            struct path children[VOCABULARY];
            add_children(d, layer[i], children, 0);
            qsort(children, VOCABULARY, sizeof *children, by_falling_p);
            for (int j = 0; j < k && j < VOCABULARY; j++)
                next[found++] = all[count++] = children[j];
        }
        memcpy(layer, next, sizeof *next * (size_t)found);
        in_layer = found;
    }
    memcpy(kept, all, (size_t)count * sizeof *all); /* phase 2 */
    qsort(kept, (size_t)count, sizeof *kept, by_falling_p);
    check_tree(d, kept, n < count ? n : count, what);
}

TEST(eagle2_is_beam_search_and_then_keeps_the_best_nodes)
{
    run("eagle2:k=3,depth=4,N=20", check_eagle2);
    run("eagle2:k=4,depth=5,N=10", check_eagle2);
    run("eagle2:k=2,depth=5,N=60", check_eagle2);
    run("eagle2:k=10,depth=3,N=60", check_eagle2);
    run("eagle2:k=1,depth=4,N=4", check_eagle2);
}

TEST(eagle2_keeps_what_it_cut_and_says_why)
{
    struct drafting d;
    int rerank = 0, beam = 0, deep = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "eagle2:k=4,depth=3,N=30"});
    CHECK(drafting_step(&d));
    for (int u = 1; u < d.tree->count; u++) {
        const struct esp_node *node = &d.tree->nodes[u];
        bool cut = node->verdict == ESP_CUT;
        rerank += cut && node->reason == ESP_REASON_RERANK;
        beam += !cut && node->reason == ESP_REASON_BEAM;
        deep += !cut && node->reason == ESP_REASON_DEPTH;
        CHECK(cut || !isnan(node->confidence) || node->reason != ESP_REASON_NONE, "node %d", u);
        CHECK(!cut || node->reason == ESP_REASON_RERANK, "node %d", u);
    }
    CHECK(rerank > 0 && beam > 0 && deep > 0, "%d %d %d", rerank, beam, deep);
    drafting_close(&d);
}
