/* Tests recycled tokens. The matrix must have the target's likeliest tokens after each token,
 * and trees must be filled with the likeliest paths through the matrix. The file that stores
 * the matrix may affect only the speed, even if it is damaged.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/drafting.h"
#include "engine/drafters/retrieval.h"
#include "engine/recycled.h"
#include "engine/support/paths.h"

enum { WIDTH = ESP_RECYCLED_WIDTH };

static struct esp_recycled one, other;
static char home[128], err[512];

static void in_fresh_home(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/esp-recycled-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(home));
    setenv("XDG_STATE_HOME", home, 1);
}

static void leave_home(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -r '%s'", home);
    CHECK(system(command) == 0);
    unsetenv("XDG_STATE_HOME");
}

/* ------------------------------------------------------------------ the matrix */

/* Stores the tokens `first`, `first` + 1, ... in the row of `token`. */
static void write_row(struct esp_recycled *r, int32_t token, int32_t first, int count)
{
    int32_t next[WIDTH];
    for (int k = 0; k < WIDTH; k++)
        next[k] = first + k;
    esp_recycled_write(r, token, next, count);
}

TEST(a_new_row_of_a_token_replaces_the_old_one)
{
    CHECK(esp_recycled_open(&one, "a", 100, false) == ESP_OK);
    CHECK(!esp_recycled_of(&one, 5) && !esp_recycled_of(&one, -1) &&
          !esp_recycled_of(&one, 100));
    write_row(&one, 5, 20, WIDTH);
    write_row(&one, 5, 30, 3);
    write_row(&one, 100, 30, 3); /* has no effect, because token ids end at 99 */
    const struct esp_recycled_row *row = esp_recycled_of(&one, 5);
    CHECK(row && row->token[0] == 30 && row->token[2] == 32 && row->token[3] == -1);
    esp_recycled_close(&one);
}

/* The test computes the expected rates itself. A new row has class 0. The prior of class 0 has
 * the weight of 16 observed rows. In the prior, the first token of a row is right with
 * probability .2, and the k-th token with probability .8 * .4 / k^2. */
TEST(rates_are_learned_per_class)
{
    CHECK(esp_recycled_open(&one, "a", 100, false) == ESP_OK);
    esp_recycled_learn(&one, 5, 7); /* nothing is learned, because token 5 has no row yet */
    write_row(&one, 5, 20, WIDTH);
    const struct esp_recycled_row *row = esp_recycled_of(&one, 5);
    CHECK(fabs(esp_recycled_rate(&one, row, 0) - 0.2) < 1e-12);
    CHECK(fabs(esp_recycled_rate(&one, row, 1) - 0.32 / 4) < 1e-12);
    esp_recycled_learn(&one, 5, 21);
    CHECK(row->streak == 0);
    CHECK(fabs(esp_recycled_rate(&one, row, 0) - 16 * 0.2 / 17) < 1e-12);
    CHECK(fabs(esp_recycled_rate(&one, row, 1) - (1 + 16 * 0.08) / 17) < 1e-12);
    for (int i = 0; i < 5; i++)
        esp_recycled_learn(&one, 5, 20);
    /* The five calls add one trial in each of the classes 0, 1 and 2, and two in class 3. */
    CHECK(row->streak == 3);
    CHECK(fabs(esp_recycled_rate(&one, row, 0) - (2 + 16 * 0.8) / 18) < 1e-12);
    esp_recycled_learn(&one, 5, 99);
    CHECK(row->streak == 1);
    CHECK(fabs(esp_recycled_rate(&one, row, 0) - (1 + 16 * 0.4) / 17) < 1e-12);
    esp_recycled_close(&one);
}

/* ------------------------------------------------------------------ the filled tree */

enum { TOKENS = 30, DEPTH = 4, NODES = 40 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Writes the probabilities of all paths through the matrix from `token`. Returns the number of
 * paths. */
static int list_paths(int32_t token, double above, int depth, double *value)
{
    const struct esp_recycled_row *row = esp_recycled_of(&one, token);
    int count = 0;
    for (int k = 0; row && k < WIDTH && depth < DEPTH; k++) {
        const double here = above * esp_recycled_rate(&one, row, k);
        value[count++] = here;
        count += list_paths(row->token[k], here, depth + 1, value + count);
    }
    return count;
}

/* Fills the matrix. Token t is most often followed by t + 1 and less often by t + 2, ..., t +
 * 8. Every third row has made one right prediction. */
static void plant_chain(void)
{
    CHECK(esp_recycled_open(&one, "a", 100, false) == ESP_OK);
    for (int32_t t = 0; t < TOKENS; t++)
        write_row(&one, t, t + 1, WIDTH);
    for (int32_t t = 0; t < TOKENS; t += 3)
        esp_recycled_learn(&one, t, t + 1);
}

TEST(the_tree_has_the_likeliest_paths_of_a_planted_chain)
{
    static double value[5000];
    static struct esp_retrieval r;
    struct esp_tree_builder tree;
    struct esp_draft_context context = {.recycled = &one};
    const int32_t text[] = {50, 51, 3};
    struct esp_draft d = {
        .tree = &tree, .text = text, .text_length = 3, .max_depth = DEPTH, .context = &context};
    struct esp_guess_plan plan = {.nodes = NODES, .depth = 24};
    plant_chain();
    CHECK(esp_tree_open(&tree, 64, err, sizeof err) == 0);
    esp_tree_reset(&tree, 3);
    CHECK(esp_retrieval_find(&r, &d, &plan, true) == ESP_OK && r.count == NODES);
    const int paths = list_paths(3, 1, 0, value);
    CHECK(paths == 8 + 64 + 512 + 4096);
    qsort(value, (size_t)paths, sizeof *value, by_value);
    for (int i = 0; i < NODES; i++) {
        const struct esp_guess *g = &r.guesses[i];
        const int32_t above = g->parent < 0 ? 3 : r.guesses[g->parent].token;
        CHECK(fabs(r.value[i] - value[i]) < 1e-6, "guess %d: %g, not %g", i, r.value[i],
              value[i]);
        CHECK(g->parent < i && g->source == ESP_SOURCE_RECYCLED && g->depth <= DEPTH);
        CHECK(g->token > above && g->token <= above + WIDTH);
    }
    /* Without recycled tokens, there are no guesses. */
    CHECK(esp_retrieval_find(&r, &d, &plan, false) == ESP_OK && r.count == 0);
    esp_retrieval_close(&r);
    esp_tree_close(&tree);
    esp_recycled_close(&one);
}

/* A token that is both copied and recycled must be one guess. Recycled tokens may also be
 * guessed below copied tokens. */
TEST(sources_join_in_one_tree)
{
    static struct esp_retrieval r;
    struct esp_tree_builder tree;
    struct esp_draft_context context = {.recycled = &one};
    const int32_t text[] = {3, 4, 60, 9, 3, 4, 60, 9, 3};
    struct esp_draft d = {
        .tree = &tree, .text = text, .text_length = 9, .max_depth = 20, .context = &context};
    struct esp_guess_plan plan = {.nodes = NODES, .depth = 24, .factor = 9, .least = 0.001};
    int fours = 0, below_copies = 0;
    plant_chain();
    r.prior = 0.9;
    CHECK(esp_tree_open(&tree, 64, err, sizeof err) == 0);
    esp_tree_reset(&tree, 3);
    CHECK(esp_retrieval_find(&r, &d, &plan, true) == ESP_OK && r.match == 5);
    for (int i = 0; i < r.count; i++) {
        const struct esp_guess *g = &r.guesses[i];
        CHECK(i == 0 || r.value[i] <= r.value[i - 1] + 1e-12,
              "the guesses are not in descending order of value");
        CHECK(g->parent < i);
        fours += g->parent < 0 && g->token == 4;
        below_copies += g->source == ESP_SOURCE_RECYCLED && g->parent >= 0 &&
                        r.guesses[g->parent].source == ESP_SOURCE_COPIED;
        for (int j = 0; j < i; j++)
            CHECK(r.guesses[j].parent != g->parent || r.guesses[j].token != g->token);
    }
    CHECK(fours == 1 && r.guesses[0].token == 4 && r.guesses[0].source == ESP_SOURCE_COPIED);
    CHECK(below_copies > 0);
    esp_retrieval_close(&r);
    esp_tree_close(&tree);
    esp_recycled_close(&one);
}

/* ------------------------------------------------------------------ the toy backend */

/* Writes the likeliest tokens after a node of the last tree, the likeliest first. */
static void likeliest(const struct drafting *d, int node, int32_t tokens[WIDTH])
{
    int32_t context[1024];
    double p[64];
    const int length = d->session->iteration.position, depth = d->tree->nodes[node].depth;
    memcpy(context, d->session->text, (size_t)length * sizeof *context);
    for (int u = node; u > 0; u = d->tree->nodes[u].parent)
        context[length - 1 + d->tree->nodes[u].depth] = d->tree->nodes[u].token;
    toy_distribution(&d->toy, false, context, length + depth, p);
    for (int k = 0; k < WIDTH; k++) {
        int best = 0;
        for (int x = 1; x < d->toy.vocabulary; x++)
            best = p[x] > p[best] ? x : best;
        tokens[k] = best;
        p[best] = -1;
    }
}

static void check_rows(const struct drafting *d)
{
    const struct esp_tree *tree = d->tree;
    for (int i = 0; i < tree->verified; i++) {
        const int32_t token = tree->nodes[tree->order[i]].token;
        int32_t want[WIDTH];
        bool last = true; /* true if no later node has the same token */
        for (int j = i + 1; j < tree->verified; j++)
            last = last && tree->nodes[tree->order[j]].token != token;
        if (!last)
            continue;
        likeliest(d, tree->order[i], want);
        const struct esp_recycled_row *row =
            esp_recycled_of(&d->session->recycling.matrix, token);
        CHECK(row && memcmp(row->token, want, sizeof want) == 0, "row %d", i);
    }
}

static int recycled_nodes(const struct drafting *d)
{
    int count = 0;
    for (int u = 1; u < d->tree->count; u++)
        count += d->tree->nodes[u].source == ESP_SOURCE_RECYCLED;
    return count;
}

TEST(the_matrix_has_the_targets_likeliest_tokens_of_all_rows)
{
    for (int warm = 0; warm < 2; warm++) {
        struct drafting d;
        int nodes = 0, wide = 0;
        drafting_open(&d, &(struct drafting_setup){.drafter = "recycle:cost=off,N=20",
                                                   .vocabulary = 40,
                                                   .temperature = warm ? 0.8 : 0});
        while (drafting_step(&d)) {
            check_rows(&d);
            nodes += recycled_nodes(&d);
            wide += d.tree->verified > 12;
        }
        CHECK(nodes > 100 && wide > 5, "%d nodes, %d wide trees", nodes, wide);
        drafting_close(&d);
    }
}

TEST(recycling_off_reads_nothing_from_the_target)
{
    struct drafting d;
    int nodes = 0;
    drafting_open(&d, &(struct drafting_setup){.drafter = "recycle:cost=off,N=20"});
    drafting_step(&d);
    CHECK(d.session->recycling.matrix.writes > 0);
    drafting_set(&d, "recycle", "off");
    CHECK(!d.session->recycling.matrix.row);
    while (drafting_step(&d))
        nodes += recycled_nodes(&d);
    CHECK(nodes == 0 && !d.session->recycling.matrix.row);
    drafting_close(&d);
    drafting_open(&d, &(struct drafting_setup){.drafter = "suffix"});
    while (drafting_step(&d))
        continue;
    CHECK(!d.session->recycling.matrix.row, "suffix recycles nothing");
    drafting_close(&d);
}

/* ------------------------------------------------------------------ random contents */

static double cheap_rows(int rows)
{
    return 1 + 0.01 * rows;
}

/* Writes rows of random tokens, some of them twice, and random rates. */
static void scramble(struct esp_recycled *r, unsigned long long *state)
{
    for (int32_t token = 0; token < r->vocabulary; token++) {
        int32_t next[WIDTH];
        for (int k = 0; k < WIDTH; k++)
            next[k] = (int32_t)(check_uniform(state) * r->vocabulary);
        esp_recycled_write(r, token, next, (int)(check_uniform(state) * (WIDTH + 1)));
        esp_recycled_learn(r, token, next[(int)(check_uniform(state) * WIDTH)]);
    }
}

/* Writes a text, and fills the matrix with random rows before each iteration. Returns the
 * length of the text. */
static int write_scrambled(const char *drafter, double temperature, int32_t *text)
{
    struct drafting d;
    unsigned long long state = 1;
    int nodes = 0;
    drafting_open(&d, &(struct drafting_setup){
                          .drafter = drafter, .temperature = temperature, .seed = 7});
    if (temperature > 0)
        drafting_set(&d, "verifier", "nss");
    d.session->costs.planted[ESP_COST_DRAFT] = cheap_rows;
    d.session->costs.planted[ESP_COST_VERIFY] = cheap_rows;
    do {
        nodes += recycled_nodes(&d);
        if (d.session->recycling.matrix.row)
            scramble(&d.session->recycling.matrix, &state);
    } while (drafting_step(&d));
    CHECK(nodes > 50 || strcmp(drafter, "ar") == 0, "%s: only %d nodes", drafter, nodes);
    const int length = d.session->length;
    memcpy(text, d.session->text, (size_t)length * sizeof *text);
    drafting_close(&d);
    return length;
}

/* Sampled texts must be equal, too, because verifier nss uses one random number for each token
 * of the text. With verifiers that use more random numbers, only the distribution stays the
 * same (tests/lossless/exact_session.c). */
TEST(random_contents_do_not_change_the_text)
{
    static const char *const drafters[] = {"recycle:cost=off,N=16", "recycle:suffix=off",
                                           "hybrid:N=12", "goodput:N=12"};
    static int32_t want[1024], text[1024];
    for (int warm = 0; warm < 2; warm++) {
        const int length = write_scrambled("ar", 0.8 * warm, want);
        for (size_t i = 0; i < sizeof drafters / sizeof *drafters; i++)
            CHECK(write_scrambled(drafters[i], 0.8 * warm, text) == length &&
                      memcmp(text, want, (size_t)length * sizeof *text) == 0,
                  "%s: another text%s", drafters[i], warm ? ", drawn" : "");
    }
}

/* ------------------------------------------------------------------ the file */

static void check_permissions(const char *name, bool group)
{
    char path[400];
    struct stat about;
    snprintf(path, sizeof path, "%s/espalier/%s", home, name);
    CHECK(stat(path, &about) == 0 && (about.st_mode & 0777) == 0600, "%o", about.st_mode);
    if (group)
        CHECK(chmod(path, 0644) == 0);
}

/* Opens the stored matrix of key "a". Returns the number of its rows. */
static int load(int vocabulary, char notice[300])
{
    int rows = 0;
    CHECK(esp_recycled_open(&other, "a", vocabulary, true) == ESP_OK);
    for (int32_t t = 0; t < vocabulary; t++)
        rows += esp_recycled_of(&other, t) != NULL;
    snprintf(notice, 300, "%s", other.notice);
    other.learned = false;
    esp_recycled_close(&other);
    return rows;
}

TEST(the_stored_matrix_is_readable_only_by_its_owner)
{
    char notice[300], name[64];
    in_fresh_home();
    for (int again = 0; again < 2; again++) {
        CHECK(esp_recycled_open(&one, "a", 100, true) == ESP_OK && !*one.notice);
        snprintf(name, sizeof name, "%s", one.file);
        write_row(&one, 5, 20, WIDTH);
        write_row(&one, 7 + again, 30, 2);
        esp_recycled_learn(&one, 5, 20);
        esp_recycled_close(&one);
        check_permissions(name, true);
        CHECK(load(100, notice) == 2 + again && !*notice, "%s", notice);
    }
    CHECK(esp_recycled_open(&one, "a", 100, true) == ESP_OK);
    const struct esp_recycled_row *row = esp_recycled_of(&one, 7);
    CHECK(row && row->token[1] == 31 && row->token[2] == -1 && row->streak == 0);
    CHECK(esp_recycled_of(&one, 5)->streak == 2);
    esp_recycled_close(&one);
    CHECK(esp_recycled_open(&one, "b", 100, true) == ESP_OK && !esp_recycled_of(&one, 5));
    esp_recycled_close(&one);
    CHECK(esp_recycled_open(&one, "a", 100, false) == ESP_OK && !esp_recycled_of(&one, 5));
    write_row(&one, 9, 30, 2);
    esp_recycled_close(&one);
    CHECK(load(100, notice) == 3, "a matrix opened without `kept` must not be stored");
    leave_home();
}

TEST(only_the_newest_rows_are_kept)
{
    enum { VOCABULARY = ESP_RECYCLED_KEPT + 500 };
    char notice[300];
    in_fresh_home();
    CHECK(esp_recycled_open(&one, "a", VOCABULARY, true) == ESP_OK);
    for (int32_t t = VOCABULARY - 1; t >= 0; t--)
        write_row(&one, t, 1, WIDTH);
    esp_recycled_close(&one);
    CHECK(load(VOCABULARY, notice) == ESP_RECYCLED_KEPT && !*notice);
    CHECK(esp_recycled_open(&one, "a", VOCABULARY, true) == ESP_OK);
    CHECK(esp_recycled_of(&one, 0) && !esp_recycled_of(&one, VOCABULARY - 1));
    esp_recycled_close(&one);
    leave_home();
}

static void check_damaged(const char *bytes, size_t length, const char *what, size_t where)
{
    char notice[300];
    CHECK(esp_state_write_private(one.file, bytes, length) == ESP_OK);
    CHECK(load(100, notice) == 0, "%s at %zu: rows", what, where);
    CHECK(strstr(notice, "damaged") && strstr(notice, one.file), "%s at %zu: '%s'", what, where,
          notice);
}

TEST(a_damaged_file_gives_one_sentence)
{
    char bytes[400], notice[300], path[400];
    in_fresh_home();
    CHECK(esp_recycled_open(&one, "a", 100, true) == ESP_OK);
    for (int32_t t = 0; t < 5; t++)
        write_row(&one, 10 * t, 20, WIDTH);
    struct esp_recycled kept = one;
    esp_recycled_close(&one);
    snprintf(one.file, sizeof one.file, "%s", kept.file);
    const int length = esp_state_read(kept.file, bytes, sizeof bytes);
    CHECK(length == 4 * (8 + 5 * 10) && load(100, notice) == 5);
    for (int at = 0; at < length; at++) {
        bytes[at] ^= 0x40;
        check_damaged(bytes, (size_t)length, "a flipped bit", (size_t)at);
        bytes[at] ^= 0x40;
        if (at > 0)
            check_damaged(bytes, (size_t)at, "an early end", (size_t)at);
    }
    char longer[sizeof bytes + 40] = "";
    memcpy(longer, bytes, (size_t)length);
    check_damaged(longer, (size_t)length + 1, "a byte more", 0);
    check_damaged(longer, (size_t)length + 40, "a row more", 0);
    CHECK(esp_state_write_private(one.file, bytes, (size_t)length) == ESP_OK);
    CHECK(load(99, notice) == 0 && *notice, "another vocabulary");
    CHECK(esp_state_write_private(one.file, "", 0) == ESP_OK);
    CHECK(load(100, notice) == 0 && !*notice,
          "an empty file is treated like a missing one: '%s'", notice);
    snprintf(path, sizeof path, "%s/espalier/%s", home, kept.file);
    CHECK(remove(path) == 0 && mkdir(path, 0700) == 0);
    CHECK(load(100, notice) == 0 && *notice, "a folder");
    memset(&one, 0, sizeof one);
    leave_home();
}

/* ------------------------------------------------------------------ stored matrices */

static struct esp_engine *engine;

struct written {
    int32_t tokens[200];
    int count, recycled, iterations;
    char notice[400];
};

static struct written write_with(const char *drafter, bool repeatable, int keep)
{
    static const char prompt[] = "The old king lived in a castle by the sea";
    struct written w = {.count = 0};
    struct esp_session *session;
    struct esp_stats stats;
    struct esp_session_options options = {
        .drafter = drafter, .repeatable = repeatable, .values.recycle = keep};
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    esp_session_get(session, "notice", w.notice, sizeof w.notice);
    CHECK(esp_session_say(session, prompt, sizeof prompt - 1, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, 60);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    const int32_t *tokens = esp_session_tokens(session, &w.count);
    CHECK(w.count <= 200);
    memcpy(w.tokens, tokens, (size_t)w.count * sizeof *tokens);
    esp_session_stats(session, &stats);
    w.recycled = (int)stats.source_nodes[ESP_SOURCE_RECYCLED];
    w.iterations = stats.iterations;
    esp_session_close(session);
    return w;
}

static void check_same(const struct written *a, const struct written *b, const char *what)
{
    CHECK(a->count == b->count && memcmp(a->tokens, b->tokens, sizeof a->tokens) == 0, "%s",
          what);
}

TEST(a_stored_matrix_changes_only_the_speed)
{
    static const char drafter[] = "recycle:cost=off,N=12,suffix=off";
    const struct esp_engine_options options = {.backend = "cpu", .threads = 1};
    char path[400], command[500];
    in_fresh_home();
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    const struct written plain = write_with("ar", true, ESP_RECYCLE_KEEP);
    const struct written repeated = write_with(drafter, true, ESP_RECYCLE_KEEP);
    const struct written alone = write_with(drafter, false, ESP_RECYCLE_SESSION);
    snprintf(command, sizeof command, "ls '%s/espalier' | grep -q recycled", home);
    snprintf(path, sizeof path, "%s/espalier", home);
    CHECK(access(path, F_OK) < 0 || system(command) != 0,
          "these settings must not store a matrix");
    const struct written first = write_with(drafter, false, ESP_RECYCLE_KEEP);
    CHECK(system(command) == 0, "kept");
    const struct written second = write_with(drafter, false, ESP_RECYCLE_KEEP);
    const struct written again = write_with(drafter, true, ESP_RECYCLE_KEEP);
    const struct written never = write_with(drafter, false, ESP_RECYCLE_OFF);
    snprintf(command, sizeof command, "cd '%s/espalier' && echo x >>$(ls | grep recycled)",
             home);
    CHECK(system(command) == 0);
    const struct written damaged = write_with(drafter, false, ESP_RECYCLE_KEEP);
    const struct written mended = write_with(drafter, false, ESP_RECYCLE_KEEP);
    const struct written *const all[] = {&repeated, &alone, &first,   &second,
                                         &again,    &never, &damaged, &mended};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_same(&plain, all[i], "another text");
    CHECK(first.iterations == repeated.iterations && alone.iterations == first.iterations);
    CHECK(second.iterations < first.iterations, "%d and %d", second.iterations,
          first.iterations);
    CHECK(again.iterations == repeated.iterations, "a repeatable run must not read the matrix");
    CHECK(never.recycled == 0 && never.iterations == plain.iterations);
    CHECK(strstr(damaged.notice, "damaged") && !*second.notice && !*mended.notice);
    CHECK(damaged.iterations == first.iterations && mended.iterations < first.iterations);
    esp_engine_close(engine);
    leave_home();
}
