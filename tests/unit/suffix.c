/* Compares the suffix automaton and its guesses with a brute-force search of the text. Also
 * tests the drafters that use the automaton. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"
#include "engine/drafters/suffix_automaton.h"

enum { LONGEST = 400 };

static int32_t text[LONGEST];
static unsigned long long seed = 7;

/* Writes a text of random tokens and of copies of earlier passages. Returns its length. */
static int write_text(int length, int vocabulary)
{
    for (int n = 0; n < length;) {
        const int copy =
            n > 4 && check_uniform(&seed) < 0.1 ? (int)(12 * check_uniform(&seed)) : 0;
        const int from = n > 4 ? (int)(check_uniform(&seed) * (n - 1)) : 0;
        for (int i = 0; i < copy && n < length; i++)
            text[n] = text[from + i], n++;
        if (n < length)
            text[n++] = (int32_t)(check_uniform(&seed) * vocabulary);
    }
    return length;
}

/* Returns how often a sequence occurs in the text. Sets *end to the end of its last
 * occurrence. */
static int occurrences(int length, const int32_t *words, int count, int *end)
{
    int n = 0;
    *end = -1;
    for (int i = 0; i + count <= length; i++)
        if (memcmp(text + i, words, (size_t)count * sizeof *words) == 0) {
            n++;
            *end = i + count;
        }
    return n;
}

/* Finds the state of a sequence by following the edges. Returns -1 if the sequence does not
 * occur. */
static int32_t state_of(const struct esp_suffix *s, const int32_t *words, int count)
{
    int32_t state = 0;
    for (int i = 0; i < count && state >= 0; i++) {
        int32_t e = s->state[state].edges;
        while (e >= 0 && s->edge[e].token != words[i])
            e = s->edge[e].next;
        state = e < 0 ? -1 : s->edge[e].to;
    }
    return state;
}

static void check_automaton(const struct esp_suffix *s, int length)
{
    CHECK(s->length == length && s->states <= 2 * length + 1 && s->edges <= 3 * length + 1);
    for (int trial = 0; trial < 300; trial++) {
        int32_t words[12];
        const int count = 1 + (int)(8 * check_uniform(&seed));
        const int from = (int)(check_uniform(&seed) * (length - count + 1));
        int end;
        if (from < 0)
            continue;
        memcpy(words, text + from, (size_t)count * sizeof *words);
        if (trial % 3 == 0) /* after this change, the sequence may not occur in the text */
            words[count - 1] = (words[count - 1] + 1) % 5;
        const int n = occurrences(length, words, count, &end);
        const int32_t state = state_of(s, words, count);
        CHECK((n == 0) == (state < 0),
              "a sequence of %d tokens that occurs %d times has state %d", count, n, state);
        if (n > 0)
            CHECK(s->state[state].count == n && s->state[state].end == end &&
                      s->state[state].length >= count,
                  "the sequence occurs %d times, not %d; it last ends at %d, not %d",
                  s->state[state].count, n, s->state[state].end, end);
    }
}

TEST(the_automaton_knows_every_sequence)
{
    struct esp_suffix s = {0};
    for (int vocabulary = 1; vocabulary <= 5; vocabulary++) {
        const int length = write_text(LONGEST, vocabulary);
        for (int n = 1; n <= length; n += 1 + n / 4) {
            CHECK(esp_suffix_read(&s, text, n) == ESP_OK);
            check_automaton(&s, n);
        }
        CHECK(esp_suffix_read(&s, text, 50) == ESP_OK); /* the text has become shorter */
        check_automaton(&s, 50);
        text[20]++; /* an earlier token has changed */
        CHECK(esp_suffix_read(&s, text, 90) == ESP_OK);
        check_automaton(&s, 90);
    }
    esp_suffix_close(&s);
}

/* ------------------------------------------------------------------ guesses */

/* Holds a guess of the brute-force search, and the path that leads to the guess. */
struct path {
    int32_t words[64]; /* tokens of the match, then of the path */
    int match, depth;
    double d;
};

/* Counts how often each token follows a sequence in the text, and finds the last place where
 * each token follows it. Returns the sum of the counts. */
static int follow(int length, const int32_t *words, int count, int *times, int *end)
{
    int total = 0;
    for (int x = 0; x < 8; x++) {
        int32_t longer[80];
        memcpy(longer, words, (size_t)count * sizeof *words);
        longer[count] = x;
        times[x] = occurrences(length, longer, count + 1, &end[x]);
        total += times[x];
    }
    return total;
}

/* Finds the continuation with the largest score D that is not in the tree yet (SuffixDecoding,
 * sec. 4.2, algorithm 1). Returns false if there is none. */
static bool best_next(int length, const struct path *tree, int count, int depth,
                      struct path *best)
{
    int best_end = -1;
    best->d = 0;
    for (int u = 0; u < count; u++) {
        const struct path *p = &tree[u];
        int times[8], end[8], total = 0, n = p->match + p->depth;
        const int32_t *words = p->words;
        if (p->depth == depth)
            continue;
        /* If a match occurs only at the end of the text, nothing follows it, so it is
         * shortened. */
        while (n > 0 && (total = follow(length, words, n, times, end)) == 0) {
            words++;
            n--;
        }
        for (int x = 0; x < 8 && n > 0; x++) {
            bool there = times[x] == 0;
            for (int v = 0; v < count; v++)
                there |= tree[v].depth == p->depth + 1 &&
                         tree[v].words[p->match + p->depth] == x &&
                         memcmp(tree[v].words, p->words,
                                (size_t)(p->match + p->depth) * sizeof *words) == 0;
            const double d = p->d * times[x] / total;
            if (there || d < best->d || (d == best->d && end[x] <= best_end))
                continue;
            *best = *p;
            best->words[p->match + best->depth++] = x;
            best->d = d;
            best_end = end[x];
        }
    }
    return best->d > 0;
}

static double grow_plainly(int length, int match, const struct esp_guess_plan *plan,
                           double *falling, int *count)
{
    static struct path tree[128];
    double sum = 0;
    tree[0] = (struct path){.match = match, .d = 1};
    memcpy(tree[0].words, text + length - match, (size_t)match * sizeof *text);
    *count = 0;
    while (*count < plan->nodes && *count < (int)(plan->factor * match)) {
        struct path *next = &tree[*count + 1];
        if (!best_next(length, tree, *count + 1, plan->depth, next) || next->d < plan->least)
            break;
        falling[(*count)++] = next->d;
        sum += next->d;
    }
    return sum;
}

/* The values D of the guesses must equal those that a plain search finds for the best match.
 * The guesses must be in descending order of D. Nodes with equal D may come in any order. */
TEST(guesses_are_the_likeliest_continuations_of_the_best_match)
{
    static struct esp_guess guesses[ESP_GUESSES];
    const struct esp_guess_plan plan = {.nodes = 12, .depth = 6, .factor = 3, .least = 0.15};
    int some = 0, several = 0;
    for (int trial = 0; trial < 60; trial++) {
        struct esp_suffix s = {0};
        const int length = write_text(30 + trial, 2 + trial % 6);
        double best = 0, want[16] = {0};
        int match, end, want_count = 0, longest = 0;
        CHECK(esp_suffix_read(&s, text, length) == ESP_OK);
        const int count = esp_suffix_guess(&s, &plan, guesses, &match);
        while (longest < 24 && longest < length - 1 &&
               occurrences(length, text + length - longest - 1, longest + 1, &end) > 1)
            longest++;
        for (int m = longest; m > 0; m--) {
            double falling[16];
            int n;
            const double sum = grow_plainly(length, m, &plan, falling, &n);
            if (sum > best + 1e-9) {
                best = sum;
                want_count = n;
                memcpy(want, falling, sizeof want);
            }
        }
        double got = 0;
        for (int i = 0; i < count; i++) {
            const struct esp_guess *g = &guesses[i];
            got += g->d;
            CHECK(g->parent < i &&
                  g->depth == (g->parent < 0 ? 1 : guesses[g->parent].depth + 1));
            CHECK(fabs(g->d - (g->parent < 0 ? 1 : guesses[g->parent].d) * g->q) < 1e-6);
            CHECK(i == 0 || g->d <= guesses[i - 1].d + 1e-12, "D rises");
            CHECK(fabs(g->d - want[i]) < 1e-6, "trial %d: guess %d has D %g, want %g", trial, i,
                  g->d, want[i]);
        }
        CHECK(fabs(got - best) < 1e-6 && count == want_count,
              "trial %d: %d worth %g, want %d, %g", trial, count, got, want_count, best);
        some += count > 0;
        for (int i = 1; i < count; i++)
            several += guesses[i].parent == guesses[i - 1].parent;
        esp_suffix_close(&s);
    }
    CHECK(some > 20 && several > 5, "%d, %d", some, several);
}

TEST(a_text_that_repeats_itself_is_continued)
{
    static struct esp_guess guesses[ESP_GUESSES];
    const struct esp_guess_plan plan = {.nodes = 30, .depth = 20, .factor = 9, .least = 0.5};
    struct esp_suffix s = {0};
    int match;
    for (int i = 0; i < 17; i++)
        text[i] = i % 5;
    CHECK(esp_suffix_read(&s, text, 17) == ESP_OK);
    CHECK(esp_suffix_guess(&s, &plan, guesses, &match) == 20 && match == 12);
    for (int i = 0; i < 20; i++)
        CHECK(guesses[i].token == (17 + i) % 5 && guesses[i].parent == i - 1);
    esp_suffix_close(&s);
}

/* ------------------------------------------------------------------ the drafters */

/* `alone` counts the iterations with a tree but without a draft pass. `asked` counts the
 * iterations with draft passes. */
struct watch {
    int alone, asked;
};

static void count_passes(void *user, const struct esp_event *event)
{
    struct watch *w = user;
    const struct esp_iteration *it = event->iteration;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    CHECK(it->tree.verified - 1 <= 16, "%d nodes", it->tree.verified - 1);
    w->alone += it->draft_passes == 0 && it->tree.verified > 1;
    w->asked += it->draft_passes > 0;
}

static struct watch write_on(struct esp_engine *engine, const char *prompt, const char *drafter)
{
    struct watch w = {0};
    struct esp_session *session;
    struct esp_session_options options = {
        .drafter = drafter, .observer = count_passes, .user = &w};
    int32_t tokens[400];
    char err[300] = "";
    const int n = esp_tokenize(engine, prompt, strlen(prompt), tokens, 400);
    CHECK(n > 0 && n <= 400);
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_prompt(session, tokens, n, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, 100);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    CHECK(!*err, "%s", err);
    esp_session_close(session);
    return w;
}

TEST(hybrid_uses_the_model_where_nothing_is_copied)
{
    const struct esp_engine_options options = {.backend = "cpu", .threads = 1};
    struct esp_engine *engine;
    char err[300] = "";
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    const char *copied = "red blue red blue red blue red blue green red blue red blue",
               *fresh =
                   "The doctor told him to rest for a week, but on the second day he got up";
    const struct watch again = write_on(engine, copied, "hybrid"),
                       anew = write_on(engine, fresh, "hybrid"),
                       plain = write_on(engine, copied, "suffix:N=16");
    CHECK(again.alone > 3, "%d of %d without a pass", again.alone, again.alone + again.asked);
    CHECK(anew.asked > anew.alone, "%d of %d with one", anew.asked, anew.alone + anew.asked);
    CHECK(plain.alone > 0 && plain.asked == 0);
    esp_engine_close(engine);
}

/* If nothing is retrieved, drafter hybrid must draft the tree of salf. Otherwise its tree also
 * has the retrieved nodes. */
TEST(hybrid_joins_two_trees)
{
    static struct esp_guess guesses[ESP_GUESSES];
    static struct esp_suffix suffix;
    const struct esp_guess_plan plan = {.nodes = 40, .depth = 24, .factor = 2, .least = 0.1};
    int same = 0, joined = 0;
    for (unsigned long long toy_seed = 1; toy_seed <= 12; toy_seed++) {
        struct drafting d, model;
        drafting_open(&d,
                      &(struct drafting_setup){.drafter = "hybrid:N=40,B=4,th=0.3,recycled=off",
                                               .toy_seed = toy_seed,
                                               .vocabulary = 9});
        drafting_open(&model, &(struct drafting_setup){.drafter = "salf:N=40,B=4,th=0.3",
                                                       .toy_seed = toy_seed,
                                                       .vocabulary = 9});
        int match = 0, count = 0;
        /* the trees can be compared only when both texts have the same length */
        while (d.session->length < 40) {
            CHECK(esp_suffix_read(&suffix, d.session->text, d.session->length) == ESP_OK);
            count = esp_suffix_guess(&suffix, &plan, guesses, &match);
            const int length = d.session->length;
            CHECK(drafting_step(&d));
            while (model.session->length < length)
                CHECK(drafting_step(&model));
            if (d.session->iteration.draft_passes == 0 || model.session->length != length)
                continue;
            CHECK(drafting_step(&model));
            same += count == 0 && d.tree->verified == model.tree->verified;
            CHECK(count > 0 || d.tree->verified == model.tree->verified);
            if (d.tree->verified < 41) { /* there was room for all nodes of both trees */
                int32_t node[ESP_GUESSES];
                for (int i = 0; i < count; i++) {
                    const int32_t parent = guesses[i].parent < 0 ? 0 : node[guesses[i].parent];
                    node[i] = esp_tree_find(&d.session->tree, parent, guesses[i].token);
                    CHECK(node[i] > 0, "guess %d is missing", i);
                }
                CHECK(d.tree->verified >= model.tree->verified &&
                      d.tree->verified <= model.tree->verified + count);
                joined += d.tree->verified > model.tree->verified;
            }
        }
        drafting_close(&d);
        drafting_close(&model);
    }
    esp_suffix_close(&suffix);
    CHECK(same > 3 && joined > 3, "%d the same, %d joined", same, joined);
}
