/* Tests what every drafter must do. With any settings, a drafter must give the text of plain
 * decoding and need few passes. Every cut node must have a reason. Changed settings must take
 * effect at the next iteration. In special cases, different drafters must draft the same trees.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"

/* Settings that are far from the defaults. (The defaults of every drafter are tested, too.) */
static const char *const specs[] = {
    "linear:K=64",
    "linear:draws=iid",
    "assisted:confidence=0",
    "assisted:K=64,draws=iid",
    "ngram:n=1",
    "ngram:n=16,K=64,N=1024",
    "recycle:N=256,K=64,cost=off",
    "recycle:N=1,K=1,cost=off,suffix=off",
    "fixed:D=64,B=64,tau=0,N=1024",
    "fixed:D=64,B=3,tau=0.1,prune=stop",
    "dynatree:D0=63,Dmax=64,Bmin=64,Bmid=64,Bmax=64,rhostop=0,rhodeep=0,tau=0,N=1024",
    "dynatree:D0=63,Dmax=64,rhostop=0,rhodeep=0,draws=swor,prune=stop",
    "dynatree:history=proportional",
    "dynatree:history=step,etaD=10",
    "dynatree:history=price,etap=10,price=0.01,tau=0",
    "specinfer:expansion=64.15",
    "specinfer:expansion=5.5,draws=iid",
    "eagle2:k=64,depth=64,N=1024",
    "eagle2:k=1,depth=1,N=1",
    "optimal:N=1024,B=64",
    "optimal:N=1,B=1",
    "salf:N=1024,B=64,th=0",
    "salf:th=1",
    "sequoia:N=1024,depth=24,learn=off",
    "sequoia:N=1,depth=1",
    "sequoia:draws=swor",
    "dyspec:N=1024",
    "dyspec:N=1",
    "dyspec:N=30",
    "goodput",
    "goodput:N=3",
    "dyspec-layer:N=1024",
    "dyspec-layer:threshold=1",
    "dyspec-layer:threshold=0.0001",
    "iid:K=64,L=64",
    "iid:K=1,L=1",
    "delayed:K=64,L1=64,L2=64",
    "delayed:L2=0",
    "delayed:K=64,L1=0,L2=1",
    NULL,
};

static const char *spec_of(int i)
{
    int drafters = 0;
    for (int j = 0; esp_drafters[j]; j++) {
        /* drafter nde needs a selector, and the toy models have none */
        if (esp_drafters[j]->chooser)
            continue;
        if (drafters++ == i)
            return esp_drafters[j]->name;
    }
    return specs[i - drafters];
}

static void plain(const struct toy *toy, int length, int32_t *text)
{
    const int32_t prompt[DRAFTING_PROMPT] = {1, 0, 1};
    double p[256];
    memcpy(text, prompt, sizeof prompt);
    for (int n = DRAFTING_PROMPT; n < length; n++) {
        text[n] = 0;
        toy_distribution(toy, false, text, n, p);
        for (int x = 1; x < toy->vocabulary; x++)
            if (p[x] > p[text[n]])
                text[n] = x;
    }
}

/* Checks that a reason is recorded for every cut node and for every verified leaf, and that the
 * tree stays within its limits. */
static void check_record(const struct drafting *d, const char *what)
{
    const struct esp_iteration *it = &d->session->iteration;
    const struct esp_tree_builder *b = &d->session->tree;
    int remaining = d->toy.engine.context - it->position;
    CHECK(it->tree.verified - 1 <= b->capacity && it->tree.count <= b->record, "%s", what);
    CHECK(it->deepest < remaining, "%s: the tree has depth %d, but only %d tokens may follow",
          what, it->deepest, remaining);
    for (int u = 1; u < it->tree.count; u++) {
        const struct esp_node *node = &it->tree.nodes[u];
        bool leaf = b->first_child[u] < 0, cut = node->verdict == ESP_CUT;
        CHECK(!(cut || leaf) || node->reason != ESP_REASON_NONE ||
                  (leaf && !isnan(node->confidence)),
              "%s: no reason is recorded for node %d", what, u);
        CHECK(isfinite(node->cumulative_log_q) && node->copies >= 1 && node->token >= 0 &&
                  node->token < d->toy.vocabulary,
              "%s: node %d", what, u);
    }
}

/* Runs a session up to the last token of the context. Near the end, trees have depth 1 and
 * 2. */
static void survive(const struct drafting_setup *setup)
{
    struct drafting d;
    int32_t want[256];
    drafting_open(&d, setup);
    plain(&d.toy, setup->context, want);
    esp_session_allow(d.session, setup->context);
    while (drafting_step(&d))
        check_record(&d, setup->drafter);
    CHECK(d.session->length == setup->context, "%s wrote %d tokens", setup->drafter,
          d.session->length);
    if (setup->temperature == 0 || setup->top_k == 1)
        CHECK(memcmp(d.session->text, want, (size_t)setup->context * sizeof *want) == 0,
              "%s: another text", setup->drafter);
    drafting_close(&d);
}

TEST(drafters_survive_small_trees_small_vocabularies_and_certain_drafts)
{
    static const struct drafting_setup extremes[] = {
        {.vocabulary = 12, .max_nodes = 64, .context = 120},
        {.vocabulary = 12, .max_nodes = 3, .context = 60},
        {.vocabulary = 12, .max_nodes = 1, .context = 40},
        {.vocabulary = 3, .max_nodes = 200, .context = 60},
        {.vocabulary = 2, .max_nodes = 64, .context = 60},
        /* both models are nearly certain of the next token */
        {.vocabulary = 12, .max_nodes = 64, .context = 60, .sharpness = 10},
        /* the next token is certain, although the temperature is above 0 */
        {.vocabulary = 12, .max_nodes = 64, .context = 60, .top_k = 1},
        {.vocabulary = 12, .max_nodes = 64, .context = 60, .sharpness = 1e-9}, /* flat */
    };
    for (int i = 0; spec_of(i); i++)
        for (size_t e = 0; e < 2 * sizeof extremes / sizeof *extremes; e++) {
            struct drafting_setup setup = extremes[e / 2];
            setup.drafter = spec_of(i);
            setup.temperature = (double)(e % 2);
            setup.toy_seed = 3;
            survive(&setup);
        }
}

/* A drafter must be able to use the draft cache in the state in which another drafter left it.
 * After plain decoding or lookup, the cache lacks many tokens. */
TEST(drafters_can_take_turns)
{
    struct drafting d;
    int32_t want[256];
    int drafters = 0, turns = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "ar", .max_nodes = 40});
    plain(&d.toy, DRAFTING_PROMPT + DRAFTING_ALLOWED, want);
    while (spec_of(drafters))
        drafters++;
    for (; drafting_step(&d); turns++) {
        check_record(&d, d.session->iteration.drafter);
        drafting_set(&d, "drafter",
                     /* uses each drafter once, in a mixed order */
                     spec_of(turns * 17 % drafters));
    }
    CHECK(turns > drafters, "only %d of %d drafters were used", turns, drafters);
    CHECK(d.session->length == DRAFTING_PROMPT + DRAFTING_ALLOWED);
    CHECK(memcmp(d.session->text, want, (size_t)d.session->length * sizeof *want) == 0);
    drafting_close(&d);
}

/* ------------------------------------------------------------------ draft passes */

static int deepest_in_record(const struct esp_tree *tree)
{
    int deepest = 0;
    for (int u = 0; u < tree->count; u++)
        deepest = tree->nodes[u].depth > deepest ? tree->nodes[u].depth : deepest;
    return deepest;
}

TEST(a_tree_takes_one_pass_per_layer)
{
    for (int i = 0; esp_drafters[i]; i++) {
        const char *name = esp_drafters[i]->name;
        double passes = 0, nodes = 0;
        for (int sharpness = 1; sharpness <= 4 && !esp_drafters[i]->chooser; sharpness++) {
            struct drafting d;
            drafting_open(&d, &(struct drafting_setup){
                                  .drafter = name, .vocabulary = 60, .sharpness = sharpness});
            for (int step = 0; step < 20 && drafting_step(&d); step++) {
                const struct esp_iteration *it = &d.session->iteration;
                int limit = deepest_in_record(&it->tree) + 1;
                if (strcmp(name, "optimal") == 0 || strcmp(name, "salf") == 0)
                    limit += 60 / 10; /* N / B: one more pass for every B nodes */
                if (strcmp(name, "goodput") == 0)
                    /* goodput measures times, so it can expand shallow nodes later */
                    limit += 60 / 10;
                passes += it->draft_passes;
                nodes += it->tree.verified - 1;
                CHECK(strcmp(name, "dyspec") == 0 || it->draft_passes <= limit,
                      "%s: %d draft passes for a tree of depth %d", name, it->draft_passes,
                      limit - 1);
            }
            drafting_close(&d);
        }
        CHECK(strcmp(name, "dyspec") != 0 || passes <= nodes / 4, "%g passes for %g nodes",
              passes, nodes);
    }
}

/* ------------------------------------------------------------------ special cases */

static void same_trees(const char *a, const char *b, double temperature, int vocabulary)
{
    for (unsigned long long seed = 1; seed <= 5; seed++) {
        struct drafting_setup setup = {.drafter = a,
                                       .toy_seed = seed,
                                       .seed = seed,
                                       .temperature = temperature,
                                       .vocabulary = vocabulary};
        struct drafting one, other;
        drafting_open(&one, &setup);
        setup.drafter = b;
        drafting_open(&other, &setup);
        while (drafting_step(&one)) {
            CHECK(drafting_step(&other));
            CHECK(one.tree->count == other.tree->count, "%s and %s: %d and %d nodes", a, b,
                  one.tree->count, other.tree->count);
            for (int u = 0; u < one.tree->count; u++) {
                const struct esp_node *x = &one.tree->nodes[u], *y = &other.tree->nodes[u];
                CHECK(x->token == y->token && x->parent == y->parent &&
                          x->copies == y->copies && x->q == y->q && x->verdict == y->verdict,
                      "%s and %s: node %d", a, b, u);
            }
        }
        CHECK(!drafting_step(&other));
        drafting_close(&one);
        drafting_close(&other);
    }
}

TEST(some_drafters_are_special_cases_of_others)
{
    same_trees("linear:K=6", "fixed:B=1,D=6,tau=0", 0, 12);
    same_trees("specinfer:expansion=1.1.1.1", "linear:K=4", 0, 12);
    same_trees("specinfer:expansion=2.2.2", "fixed:D=3,B=2,tau=0", 0, 12);
    same_trees("delayed:L1=0,K=4,L2=4", "iid:K=4,L=4", 0, 12);
    same_trees("delayed:L1=0,K=4,L2=4", "iid:K=4,L=4", 1, 4);
    same_trees("delayed:L1=2,K=3,L2=2", "specinfer:expansion=1.1.3.1,draws=iid", 1, 4);
    same_trees("iid:K=3,L=3", "specinfer:expansion=3.1.1,draws=iid", 0, 4);
    same_trees("linear:K=4,draws=iid", "iid:K=1,L=4", 0, 12);
    same_trees("optimal:N=30", "salf:N=30,th=0", 0, 12);
    same_trees("optimal:N=7", "optimal:N=7,B=7", 0, 12); /* B is at most N */
    same_trees("salf:N=3", "salf:N=3,B=3", 0, 12);
    same_trees("linear:K=5,draws=auto", "linear:K=5,draws=topk", 0, 12);
    same_trees("linear:K=5,draws=auto", "linear:K=5,draws=iid", 1, 12);
    same_trees("sequoia:learn=off", "sequoia:learn=off,draws=swor", 1, 12);
}

/* ------------------------------------------------------------------ settings */

TEST(settings_take_effect_at_the_next_iteration)
{
    static const struct {
        const char *drafter, *key, *value;
        /* the limits of trees after the change; trees before the change are larger */
        int nodes, depth;
    } cases[] = {
        {"linear", "K", "2", 2, 2},
        {"assisted:confidence=0", "K", "2", 2, 2},
        {"ngram:n=1", "K", "1", 32, 1},
        {"ngram:n=1", "N", "2", 2, 10},
        {"fixed:tau=0", "N", "5", 5, 6},
        {"dynatree:rhostop=0,tau=0", "N", "3", 3, 8},
        {"specinfer", "expansion", "2.1", 4, 2},
        {"eagle2", "N", "7", 7, 7},
        {"eagle2:k=2", "depth", "2", 60, 2},
        {"optimal", "N", "11", 11, 11},
        {"salf:th=0", "N", "12", 12, 12},
        {"salf:th=0", "th", "1", 20, 2},
        {"sequoia", "N", "4", 4, 4},
        {"sequoia", "depth", "1", 16, 1},
        {"dyspec", "N", "6", 6, 6},
        {"dyspec-layer:threshold=0.0001", "N", "8", 8, 8},
        {"dyspec-layer:threshold=0.0001", "threshold", "1", 1, 1},
        {"iid", "L", "2", 8, 2},
        {"iid", "K", "2", 8, 4},
        {"delayed", "L1", "0", 9, 3},
        {"delayed", "K", "1", 5, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct drafting d;
        char value[64];
        const struct esp_iteration *it;
        bool larger = false;
        drafting_open(&d,
                      &(struct drafting_setup){.drafter = cases[i].drafter, .sharpness = 1});
        it = &d.session->iteration;
        for (int step = 0; step < 6; step++) {
            CHECK(drafting_step(&d));
            larger |= it->tree.verified - 1 > cases[i].nodes || it->deepest > cases[i].depth;
        }
        CHECK(larger, "%s: no tree before the change exceeds the new limits", cases[i].drafter);
        drafting_set(&d, cases[i].key, cases[i].value);
        CHECK(esp_session_get(d.session, cases[i].key, value, sizeof value) == 0 &&
                  strcmp(value, cases[i].value) == 0,
              "%s", value);
        CHECK(drafting_step(&d));
        CHECK(it->tree.verified - 1 <= cases[i].nodes && it->deepest <= cases[i].depth,
              "%s %s=%s: %d nodes, depth %d", cases[i].drafter, cases[i].key, cases[i].value,
              it->tree.verified - 1, it->deepest);
        drafting_close(&d);
    }
}

TEST(parameters_are_checked_against_each_other)
{
    static const char *const wrong[][2] = {
        {"salf:B=65", "B takes 1 to 64"},
        {"delayed:L1=0,L2=0", "are both 0"},
        {"specinfer:expansion=", "dots"},
        {"specinfer:expansion=1..2", "dots"},
        {"specinfer:expansion=1.2.", "dots"},
        {"specinfer:expansion=0", "dots"},
        {"specinfer:expansion=65", "dots"},
        {"specinfer:expansion=1x2", "dots"},
        {"specinfer:expansion=-1", "dots"},
        {"specinfer:expansion= 1", "dots"},
        {"specinfer:expansion=99999999999999999999", "dots"},
        {"specinfer:expansion=64.64", "more than"},
        {"specinfer:expansion=64.64.64.64.64.64.64.64.64.64.64.64.64", "more than"},
        {"linear:draws=swor", "auto|topk|iid"},
        {"sequoia:draws=iid", "auto|topk|swor"},
        {"iid:draws=topk", "no parameter"},
        {"dyspec:N=0", "1 to"},
        {"dyspec:draft_temp=1", "draft_temp"},
    };
    struct toy toy;
    toy_open(&toy, 12, 64, 16, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct esp_session *session;
        char err[512] = "";
        struct esp_session_options options = {.drafter = wrong[i][0]};
        CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) ==
                  ESP_E_ARGUMENT,
              "%s", wrong[i][0]);
        CHECK(strstr(err, wrong[i][1]) && !strchr(err, '\n'), "%s: %s", wrong[i][0], err);
    }
    toy_close(&toy);
}

/* -------------------------------------------------------------- drafters assisted and ngram */

/* Returns the largest depth that a tree can have with the remaining tokens. */
static int left_of(const struct esp_iteration *it)
{
    return DRAFTING_PROMPT + DRAFTING_ALLOWED - it->position - 1;
}

TEST(assisted_follows_success)
{
    struct drafting d;
    int grown = 0, shrunk = 0, unsure = 0;
    drafting_open(
        &d, &(struct drafting_setup){.drafter = "assisted:confidence=0.3", .sharpness = 3});
    d.toy.closeness = 0.9;
    CHECK(drafting_step(&d) && drafting_gauge(&d, "K", true) == 5);
    do {
        const struct esp_iteration *it = &d.session->iteration;
        double k = drafting_gauge(&d, "K", true), now = drafting_gauge(&d, "K", false);
        bool all = it->path_length == it->deepest;
        if (left_of(it) <= k)
            break; /* near the end of the text, the depth is limited */
        CHECK(now == (all ? fmin(k + 2, 64) : fmax(k - 1, 1)), "%g after %g", now, k);
        grown += all;
        shrunk += !all;
        for (int u = 1; u < d.tree->count; u++) {
            bool last = u == d.tree->count - 1, low = d.tree->nodes[u].q < 0.3f;
            CHECK(last ? u == k || low : !low, "the chain with K = %g ends at node %d", k, u);
            unsure += low;
            CHECK(!last ||
                  d.tree->nodes[u].reason == (low ? ESP_REASON_CONFIDENCE : ESP_REASON_DEPTH));
        }
    } while (drafting_step(&d));
    CHECK(grown > 3 && shrunk > 3 && unsure > 3, "%d %d %d", grown, shrunk, unsure);
    drafting_close(&d);
}

/* Finds all guesses with a simple search: every place where the last n tokens of the text occur
 * earlier, for the largest possible n. A guess copies the tokens after one of these places. If
 * it reaches the end of the text, it continues by copying from its own beginning. */
static int guesses(const int32_t *text, int length, int longest, int depth, int32_t guess[][16])
{
    for (int n = longest; n > 0; n--) {
        int count = 0;
        for (int end = length - 2; end >= n - 1; end--) {
            bool same = true;
            for (int i = 0; i < n; i++)
                same &= text[end - i] == text[length - 1 - i];
            if (!same)
                continue;
            int32_t whole[600];
            memcpy(whole, text, (size_t)length * sizeof *whole);
            for (int i = 0; i < depth; i++)
                guess[count][i] = whole[length + i] = whole[end + 1 + i];
            count++;
        }
        if (count > 0)
            return count;
    }
    return 0;
}

/* Returns how many guesses begin with the path of this node. */
static int agreeing(const struct esp_tree *tree, int node, int32_t guess[][16], int count)
{
    int agree = 0;
    for (int i = 0; i < count; i++) {
        bool same = true;
        for (int u = node; u > 0; u = tree->nodes[u].parent)
            same &= guess[i][tree->nodes[u].depth - 1] == tree->nodes[u].token;
        agree += same;
    }
    return agree;
}

TEST(ngram_copies_the_tokens_that_followed_a_match)
{
    static int32_t guess[300][16];
    int several = 0, single = 0, none = 0, full = 0;
    for (int vocabulary = 3; vocabulary <= 30; vocabulary += 9) {
        struct drafting d;
        drafting_open(&d, &(struct drafting_setup){.drafter = "ngram:K=6,N=20",
                                                   .vocabulary = vocabulary});
        while (drafting_step(&d)) {
            const struct esp_iteration *it = &d.session->iteration;
            if (left_of(it) <= 6)
                break;
            int count = guesses(d.session->text, it->position, 3, 6, guess), least = 1000;
            CHECK(it->draft_passes == 0 && (count > 0) == (d.tree->count > 1));
            for (int u = 1; u < d.tree->count; u++) {
                int agree = agreeing(d.tree, u, guess, count);
                int above = agreeing(d.tree, d.tree->nodes[u].parent, guess, count);
                CHECK(agree > 0 && fabs(d.tree->nodes[u].q - (double)agree / above) < 1e-6);
                if (d.tree->nodes[u].verdict != ESP_CUT)
                    least = agree < least ? agree : least;
                else
                    CHECK(agree <= least, "a node was cut although more guesses agree with it "
                                          "than with a kept node");
            }
            for (int i = 0; i < count && it->tree.verified < 21; i++) {
                int u = 0;
                for (int depth = 0; depth < 6; depth++)
                    CHECK((u = esp_tree_find(&d.session->tree, u, guess[i][depth])) > 0,
                          "guess %d is missing", i);
            }
            none += count == 0;
            single += count == 1;
            several += count > 1;
            full += it->tree.verified == 21;
        }
        drafting_close(&d);
    }
    CHECK(none > 5 && single > 5 && several > 5 && full > 0, "%d %d %d %d", none, single,
          several, full);
}

TEST(ngram_needs_no_draft_model)
{
    struct toy toy;
    struct esp_session *session;
    char err[256];
    int32_t prompt[6] = {1, 2, 3, 1, 2, 3}, want[64] = {1, 2, 3, 1, 2, 3};
    toy_open(&toy, 12, 64, 16, 1);
    toy.engine.draft = NULL;
    struct esp_session_options options = {.drafter = "ngram"};
    CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_prompt(session, prompt, 6, err, sizeof err) == 0);
    esp_session_allow(session, 50);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    for (int n = 6; n < 56; n++) {
        double p[12];
        toy_distribution(&toy, false, want, n, p);
        for (int x = 1; x < 12; x++)
            if (p[x] > p[want[n]])
                want[n] = x;
    }
    CHECK(session->length == 56 && memcmp(session->text, want, 56 * sizeof *want) == 0);
    options.drafter = "linear";
    struct esp_session *other;
    CHECK(esp_session_open(&other, &toy.engine, &options, err, sizeof err) == ESP_E_ARGUMENT);
    esp_session_close(session);
    toy_close(&toy);
}
