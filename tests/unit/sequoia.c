/* Tests drafter sequoia. Its shape must be as good as the best shape that an exhaustive
 * search finds, and acceptance rates must be computed correctly. Rates are stored in files
 * in the state folder. These files may have any content. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/drafters/best_shape.h"
#include "tests/check.h"
#include "tests/drafting.h"
#include "engine/drafters/rank_rates.h"
#include "engine/support/paths.h"

/* ------------------------------------------------------------------ the shape */

/* Tries all ordered trees with at most n nodes below the root, and returns the value of the
 * best tree. A tree is represented by the depths of its nodes in depth-first order. */
static double search(const double *rate, int ranks, int n, int depth, double *product,
                     int *children, int at, double sum)
{
    double best = sum;
    if (n == 0)
        return best;
    for (int d = 1; d <= at + 1 && d <= depth; d++) { /* puts the next node at depth d */
        int rank = children[d - 1];
        if (rank >= ranks)
            continue;
        double saved = product[d];
        int below = children[d];
        children[d - 1]++;
        children[d] = 0;
        product[d] = product[d - 1] * rate[rank];
        double value =
            search(rate, ranks, n - 1, depth, product, children, d, sum + product[d]);
        best = value > best ? value : best;
        children[d - 1]--;
        children[d] = below;
        product[d] = saved;
    }
    return best;
}

static double exhaustive(const double *rate, int ranks, int n, int depth)
{
    double product[16] = {1};
    int children[16] = {0};
    return search(rate, ranks, n, depth, product, children, 0, 1);
}

static struct esp_shape_table table;

TEST(shapes_equal_an_exhaustive_search)
{
    unsigned long long state = 5;
    for (int trial = 0; trial < 400; trial++) {
        struct esp_shape shape;
        double rate[ESP_SHAPE_RANKS], left = 1;
        int ranks = 1 + (int)(check_uniform(&state) * 5);
        int nodes = 1 + (int)(check_uniform(&state) * 9);
        int depth = 1 + (int)(check_uniform(&state) * 6);
        for (int k = 0; k < ranks; k++) { /* a later rank can have a higher rate */
            rate[k] = left * check_uniform(&state);
            left -= rate[k] * (trial % 2);
        }
        double value = esp_shape_best(&shape, &table, rate, ranks, nodes, depth), sum = 0;
        double want = exhaustive(rate, ranks, nodes, depth);
        CHECK(fabs(value - want) < 1e-12, "trial %d: %.15g, want %.15g", trial, value, want);
        double product[16] = {1};
        int seen = 1;
        CHECK(shape.nodes <= nodes + 1 && shape.depth[0] == 0);
        for (int u = 0; u < shape.nodes; u++) {
            sum += product[u];
            CHECK(shape.children[u] <= ranks && shape.depth[u] <= depth);
            CHECK(shape.children[u] == 0 || shape.first_child[u] == seen);
            seen += shape.children[u];
            for (int k = 0; k < shape.children[u]; k++) {
                product[shape.first_child[u] + k] = product[u] * rate[k];
                CHECK(shape.depth[shape.first_child[u] + k] == shape.depth[u] + 1);
            }
        }
        CHECK(seen == shape.nodes && fabs(sum - value) < 1e-12);
    }
}

TEST(large_shapes_are_no_worse_than_plain_ones)
{
    static struct esp_shape shape;
    double rate[ESP_SHAPE_RANKS], chain = 1, last = 1;
    for (int k = 0; k < ESP_SHAPE_RANKS; k++)
        rate[k] = 0.6 / ((k + 1) * (k + 1));
    for (int i = 0; i < 12; i++)
        chain += last *= rate[0];
    double value = 1;
    for (int nodes = 12; nodes <= 300; nodes += 48) {
        double more = esp_shape_best(&shape, &table, rate, ESP_SHAPE_RANKS, nodes, 12);
        CHECK(shape.nodes == nodes + 1 && more >= value && more >= chain - 1e-12,
              "%d nodes: %g", nodes, more);
        value = more;
    }
}

/* Returns the expected number of tokens of a drafted tree if the prior's rates are right. */
static double expected_tokens(const struct esp_tree *t)
{
    static double product[4096];
    double sum = product[0] = 1;
    for (int u = 1; u < t->count; u++) {
        int k = t->nodes[u].rank + 1;
        sum += product[u] = product[t->nodes[u].parent] * 0.6 / (k * k);
    }
    return sum;
}

TEST(the_policy_drafts_the_best_shape)
{
    double rate[ESP_SHAPE_RANKS];
    for (int k = 0; k < ESP_SHAPE_RANKS; k++)
        rate[k] = 0.6 / ((k + 1) * (k + 1));
    for (int i = 0; i < 4; i++) {
        static const char *const specs[] = {
            "sequoia:N=8,learn=off", "sequoia:N=9,depth=2,learn=off",
            "sequoia:N=8,learn=off,draws=swor", "sequoia:N=5,depth=1,learn=off"};
        static const int nodes[] = {8, 9, 8, 5}, depth[] = {9, 2, 9, 1};
        struct drafting d;
        drafting_open(&d, &(struct drafting_setup){.drafter = specs[i], .vocabulary = 20});
        double want = exhaustive(rate, 6, nodes[i], depth[i]);
        for (int step = 0; step < 5; step++) {
            CHECK(drafting_step(&d));
            CHECK(d.tree->count == nodes[i] + 1, "%d nodes", d.tree->count - 1);
            CHECK(fabs(expected_tokens(d.tree) - want) < 1e-12, "%s: %g, want %g", specs[i],
                  expected_tokens(d.tree), want);
            CHECK(fabs(drafting_gauge(&d, "expected", false) - want) < 1e-12);
        }
        drafting_close(&d);
    }
}

/* ------------------------------------------------------------------ learning */

TEST(rates_are_accepted_nodes_divided_by_tested_nodes)
{
    struct drafting d;
    double tried[ESP_RANKS] = {0}, accepted[ESP_RANKS] = {0};
    drafting_open(&d, &(struct drafting_setup){.drafter = "sequoia:N=20"});
    while (drafting_step(&d)) {
        const struct esp_iteration *it = &d.session->iteration;
        for (int u = 1; u < d.tree->count; u++) {
            bool parent = d.tree->nodes[u].parent == 0, own = false;
            for (int i = 0; i < it->path_length; i++) {
                parent |= d.tree->nodes[u].parent == it->path[i];
                own |= it->path[i] == u;
            }
            tried[d.tree->nodes[u].rank] += parent;
            accepted[d.tree->nodes[u].rank] += own;
        }
        for (int k = 0; k < 4; k++) {
            static const char *const names[] = {"r1", "r2", "r3", "r4"};
            double prior = 0.6 / ((k + 1) * (k + 1));
            double want = (accepted[k] + 16 * prior) / (tried[k] + 16);
            CHECK(fabs(drafting_gauge(&d, names[k], false) - want) < 1e-12, "%s", names[k]);
        }
    }
    CHECK(tried[0] > 50 && accepted[0] > 5 && tried[1] > 20);
    drafting_close(&d);
}

TEST(the_shape_follows_what_is_learned)
{
    struct drafting d;
    int deepest = 0, shallow = 100;
    drafting_open(&d, &(struct drafting_setup){.drafter = "sequoia:N=12"});
    d.toy.closeness = 1; /* the draft is always right, so a chain is best */
    while (drafting_step(&d) && d.session->iteration.index < 15)
        deepest = d.session->iteration.deepest;
    CHECK(deepest == 12, "depth %d", deepest);
    d.toy.closeness = 0; /* the draft only guesses, so the root gets many children */
    drafting_restart(&d, 1);
    while (drafting_step(&d))
        if (d.session->iteration.position < 180)
            shallow = d.session->iteration.deepest;
    CHECK(shallow <= 6, "depth %d", shallow);
    drafting_set(&d, "learn", "off");
    drafting_restart(&d, 1);
    CHECK(drafting_step(&d));
    CHECK(fabs(drafting_gauge(&d, "r1", false) - 0.6) < 1e-12, "learn=off must keep the prior");
    drafting_close(&d);
}

/* ------------------------------------------------------------------ the state folder */

static char home[256], folder[300];

static void in_fresh_home(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/esp-sequoia-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(home));
    setenv("XDG_STATE_HOME", home, 1);
    snprintf(folder, sizeof folder, "%s/espalier", home);
}

static void leave_home(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -r '%s'", home);
    CHECK(system(command) == 0);
    unsetenv("XDG_STATE_HOME");
}

/* Counts the files in the state folder, except those of the session itself. `name` receives the
 * name of the last file that was counted. */
static int list_files(char *name, size_t size)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.' && strncmp(e->d_name, "costs-", 6) != 0 &&
            strncmp(e->d_name, "calibration-", 12) != 0) {
            snprintf(name, size, "%s", e->d_name);
            count++;
        }
    if (dir)
        closedir(dir);
    return count;
}

static void open_pair(struct drafting *d, const char *drafter, double temperature)
{
    static char target[] = "large", draft[] = "small";
    drafting_open(d, &(struct drafting_setup){.drafter = drafter, .temperature = temperature});
    esp_session_close(d->session); /* opened again below, with different names of models */
    d->toy.target.name = target;
    d->toy.draft.name = draft;
    struct esp_session_options options = {.drafter = drafter,
                                          .values.temperature = temperature};
    CHECK(esp_session_open(&d->session, &d->toy.engine, &options, d->err, sizeof d->err) == 0);
    d->tree = &d->session->tree.tree;
    drafting_restart(d, 1);
}

TEST(rates_are_stored_per_pair_temperature_and_kind_of_draws)
{
    char name[256];
    struct drafting d;
    in_fresh_home();
    open_pair(&d, "sequoia:N=12", 0);
    CHECK(drafting_step(&d) && list_files(name, sizeof name) == 0,
          "rates were written too early");
    while (drafting_step(&d))
        continue;
    double rate = drafting_gauge(&d, "r1", false);
    drafting_close(&d);
    CHECK(list_files(name, sizeof name) == 1 && strncmp(name, "sequoia-", 8) == 0, "%s", name);

    open_pair(&d, "sequoia:N=12", 0);
    CHECK(drafting_step(&d) && fabs(drafting_gauge(&d, "r1", true) - 0.6) < 1e-12);
    CHECK(drafting_step(&d));
    CHECK(fabs(drafting_gauge(&d, "r1", true) - rate) < 0.02, "%g after %g",
          drafting_gauge(&d, "r1", true), rate);
    /* from the next iteration on, there are separate counts for this temperature */
    drafting_set(&d, "temp", "0.5");
    CHECK(drafting_step(&d));
    CHECK(list_files(name, sizeof name) == 1,
          "the old counts must be written to the same file");
    drafting_set(&d, "drafter", "linear");
    CHECK(list_files(name, sizeof name) == 2,
          "when the drafter is changed, the counts of the old drafter must be stored");
    drafting_close(&d);
    leave_home();
}

TEST(without_learning_nothing_is_written)
{
    char name[256];
    struct drafting d;
    in_fresh_home();
    open_pair(&d, "sequoia:learn=off", 0);
    while (drafting_step(&d))
        continue;
    drafting_close(&d);
    CHECK(list_files(name, sizeof name) == 0, "%s", name);
    leave_home();
}

TEST(a_state_file_with_any_contents_does_no_harm)
{
    static const char *const contents[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"key\":1}",
        "\xff\xfe",
        "{\"key\":\"large\",\"tried\":[1]}",
        "{\"key\":\"K\",\"tried\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],\"accepted\":[]}",
        "{\"key\":\"K\",\"tried\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"
        "\"accepted\":[2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
        "{\"key\":\"K\",\"tried\":[1e300,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"
        "\"accepted\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
        "{\"key\":\"K\",\"tried\":[-1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"
        "\"accepted\":[-2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
        "{\"key\":\"K\",\"tried\":[\"1\",2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"
        "\"accepted\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
    };
    struct esp_rank_rates rates = {0};
    char file[64];
    in_fresh_home();
    esp_rank_rates_turn(&rates, "K");
    snprintf(file, sizeof file, "%s", rates.file);
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        CHECK(esp_state_write(file, contents[i]) == 0);
        esp_rank_rates_turn(&rates, "");
        esp_rank_rates_turn(&rates, "K");
        CHECK(fabs(esp_rank_rate(&rates, 0) - 0.6) < 1e-12, "the damaged file %zu was used", i);
    }
    CHECK(esp_state_write(file,
                          "{\"key\":\"K\",\"tried\":[4,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"
                          "\"accepted\":[4,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}") == 0);
    esp_rank_rates_turn(&rates, "");
    esp_rank_rates_turn(&rates, "K");
    CHECK(fabs(esp_rank_rate(&rates, 0) - (4 + 9.6) / 20) < 1e-12, "a valid file was not used");
    leave_home();
}

TEST(state_files_are_replaced_whole_and_stay_in_their_folder)
{
    static const char *const names[] = {"", ".", "..", "../x", "a/b", ".hidden"};
    char text[32], name[256], path[600];
    struct stat status;
    in_fresh_home();
    CHECK(esp_state_read("a", text, sizeof text) == ESP_E_FILE);
    CHECK(esp_state_write("a", "one") == 0 && esp_state_read("a", text, sizeof text) == 3);
    CHECK(esp_state_write("a", "other") == 0 && esp_state_read("a", text, sizeof text) == 5);
    CHECK(strcmp(text, "other") == 0 && list_files(name, sizeof name) == 1);
    CHECK(esp_state_read("a", text, 5) == ESP_E_FILE,
          "5 characters and a NUL must not fit into 5 bytes");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(esp_state_write(names[i], "x") == ESP_E_FILE, "%s", names[i]);
        CHECK(esp_state_read(names[i], text, sizeof text) == ESP_E_FILE, "%s", names[i]);
    }
    CHECK(stat(folder, &status) == 0 && (status.st_mode & 0777) == 0700);
    snprintf(path, sizeof path, "%s/b", folder);
    CHECK(mkdir(path, 0700) == 0);
    CHECK(esp_state_read("b", text, sizeof text) == ESP_E_FILE, "a folder was read");
    CHECK(esp_state_write("b", "x") == ESP_E_FILE && list_files(name, sizeof name) == 2,
          "a write failed, but left a file");
    CHECK(rmdir(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(esp_state_read("b", text, sizeof text) == ESP_E_FILE, "a pipe was read");
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", home, 1);
    CHECK(esp_state_write("c", "x") == 0);
    snprintf(path, sizeof path, "%s/.local/state/espalier/c", home);
    CHECK(stat(path, &status) == 0, "a relative XDG_STATE_HOME was not ignored");
    leave_home();
}
