/* Tests tokens that were copied from the text. Their origin must be reported correctly, and no
 * pane may show a draft probability for them. Tokens with a draft probability must not be
 * called copied.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"
#include "sessions/event_json.h"
#include "viz/acceptance.h"
#include "viz/explain.h"

enum { TEXT = 4096 };

static const char *token_text(void *user, int32_t token, size_t *length)
{
    static char text[16];
    (void)user;
    *length = (size_t)snprintf(text, sizeof text, "t%d", token);
    return text;
}

static const struct esp_tokens tokens = {token_text, NULL};
static int copied, recycled, drafted, cut, iterations;

static double draft_cost(int rows)
{
    return 0.6 + 0.01 * rows;
}

static double verify_cost(int rows)
{
    return 1 + 0.01 * (rows - 1);
}

/* Writes what the tree pane shows, with one node per line. */
static void dump_rows(const struct esp_iteration *it, char text[TEXT])
{
    struct esp_tree_rows rows;
    struct esp_canvas canvas;
    const struct esp_tree_choice choice = {.stages = ESP_STAGES};
    const struct esp_tree_look look = {.tokens = tokens, .stages = ESP_STAGES, .cursor = -1};
    FILE *file = fmemopen(text, TEXT, "w");
    CHECK(file && esp_canvas_open(&canvas, 120, 3) == 0);
    CHECK(esp_tree_rows_build(&rows, it, &choice) == 0);
    esp_tree_rows_draw(&canvas, &rows, it, &look);
    esp_canvas_dump(&canvas, file, false);
    esp_tree_rows_free(&rows);
    esp_canvas_close(&canvas);
    fclose(file);
}

/* Checks the line that the tree pane shows for a node. The tree has only the root and this
 * node. */
static void check_row(const struct esp_iteration *it, int node)
{
    struct esp_node nodes[2] = {it->tree.nodes[0], it->tree.nodes[node]};
    struct esp_iteration one = *it;
    char text[TEXT], q[8];
    nodes[1].parent = 0;
    nodes[1].depth = 1;
    nodes[1].verdict = ESP_ACCEPTED;
    one.tree.nodes = nodes;
    one.tree.count = 2;
    one.path = &(int32_t){1};
    one.path_length = 1;
    dump_rows(&one, text);
    const bool said = strstr(text, "copied") != NULL;
    snprintf(q, sizeof q, "%.2f", (double)nodes[1].q);
    CHECK(said == (nodes[1].source == ESP_SOURCE_COPIED), "%s", text);
    CHECK((strstr(text, "recycled") != NULL) == (nodes[1].source == ESP_SOURCE_RECYCLED), "%s",
          text);
    CHECK(!said || (!strstr(text, "1.0") && !strstr(text, q + 1)), "%s", text);
}

static void check_copied(const struct drafting *d, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    const int place = it->position - 1 + n->depth, from = place - n->copied;
    char text[400], back[64];
    CHECK(from >= 0 && from < it->position, "%s: %d back of %d", it->drafter, n->copied, place);
    CHECK(d->session->text[from] == n->token, "%s: token %d at %d, not %d", it->drafter,
          d->session->text[from], from, n->token);
    esp_explain_node(text, sizeof text, it, ESP_STAGES, node, &tokens);
    snprintf(back, sizeof back, "copied from the text, %d token%s back", n->copied,
             n->copied == 1 ? "" : "s");
    CHECK(strstr(text, back) && !strstr(text, "(P)"), "%s", text);
    CHECK(isnan(esp_draft_probability(it, node)) && isnan(esp_path_probability(it, node)));
    copied++;
    cut += n->verdict == ESP_CUT;
}

static void check_recycled(const struct esp_iteration *it, int node)
{
    char text[400];
    esp_explain_node(text, sizeof text, it, ESP_STAGES, node, &tokens);
    CHECK(strstr(text, "recycled from an earlier pass") && !strstr(text, "(P)"), "%s", text);
    CHECK(isnan(esp_draft_probability(it, node)) && isnan(esp_path_probability(it, node)));
    recycled++;
}

/* Checks that the node has the draft model's own probability. Drafter hybrid must not apply a
 * temperature to it. */
static void check_drafted(const struct drafting *d, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    double q[64];
    char text[400];
    drafting_q(d, n->parent, q);
    CHECK(fabs(q[n->token] - (double)n->q) < 1e-5, "%s: %g, not %g", it->drafter, (double)n->q,
          q[n->token]);
    CHECK(esp_draft_probability(it, node) == (double)n->q);
    esp_explain_node(text, sizeof text, it, ESP_STAGES, node, &tokens);
    CHECK(!strstr(text, "copied"), "%s", text);
    drafted++;
}

/* Checks that a recording stores the origins of tokens. */
static void check_recorded(const struct esp_iteration *it)
{
    const struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = it};
    struct esp_line line = {.length = 0};
    struct esp_recorded_event read = {.texts = {NULL}};
    struct esp_texts texts = {.count = 0};
    char err[256] = "";
    CHECK(esp_event_to_json(&line, &event, NULL, &tokens) == 0);
    CHECK(esp_event_from_json(&read, &texts, line.text, line.length - 1, 0, err, sizeof err) ==
              1,
          "%s", err);
    for (int i = 0; i < it->tree.count; i++)
        CHECK(read.iteration.it.tree.nodes[i].copied == it->tree.nodes[i].copied &&
              read.iteration.it.tree.nodes[i].source == it->tree.nodes[i].source);
    esp_recorded_event_free(&read);
    esp_texts_free(&texts);
    esp_line_free(&line);
}

/* Checks that the table of acceptance by draft probability counts only nodes that the draft
 * model drafted. */
static void check_table(const struct esp_iteration *it)
{
    struct esp_acceptance a = {.iterations = 0};
    int64_t counted = 0;
    int nodes = 0;
    esp_acceptance_add(&a, it);
    for (int i = 0; i < ESP_ACCEPT_BINS; i++)
        counted += a.share[i].nodes;
    for (int i = 1; i < it->tree.count; i++)
        nodes += it->tree.nodes[i].verdict != ESP_CUT &&
                 it->tree.nodes[i].source == ESP_SOURCE_DRAFT;
    CHECK(counted == nodes, "%d nodes, not %d", (int)counted, nodes);
    CHECK(a.source[ESP_SOURCE_DRAFT].nodes == nodes);
}

static void check_stage(const struct esp_iteration *it)
{
    char text[700];
    int count[ESP_SOURCES] = {0};
    const int nodes = it->tree.count - 1;
    for (int i = 1; i <= nodes; i++)
        count[it->tree.nodes[i].source]++;
    esp_explain_stop(text, sizeof text, it, ESP_EVENT_STAGE, ESP_STAGE_DRAFT + 1, &tokens);
    const int copies = count[ESP_SOURCE_COPIED], own = count[ESP_SOURCE_DRAFT];
    CHECK((strstr(text, "The tree is copied") != NULL) == (copies > 0 && copies == nodes), "%s",
          text);
    CHECK((strstr(text, " of them ") != NULL) == (own > 0 && own < nodes), "%s", text);
    CHECK((strstr(text, "did not run") != NULL) ==
              (nodes > 0 && it->draft_passes == 0 && own == 0),
          "%s", text);
    CHECK(own > 0 || !strstr(text, "passes"), "%s", text);
    CHECK((strstr(text, "recycled from") != NULL) == (count[ESP_SOURCE_RECYCLED] > 0), "%s",
          text);
}

static void check_tree(void *user, const struct esp_event *event)
{
    const struct esp_iteration *it = event->iteration;
    if (event->type != ESP_EVENT_STAGE || event->stage != ESP_STAGE_SELECT)
        return;
    for (int i = 1; i < it->tree.count; i++) {
        if (it->tree.nodes[i].source == ESP_SOURCE_COPIED)
            check_copied(user, it, i);
        else if (it->tree.nodes[i].source == ESP_SOURCE_RECYCLED)
            check_recycled(it, i);
        else
            check_drafted(user, it, i);
        check_row(it, i);
    }
    check_recorded(it);
    check_table(it);
    check_stage(it);
    iterations++;
}

static void run(const char *drafter, double temperature)
{
    struct drafting d;
    copied = recycled = drafted = cut = iterations = 0;
    for (unsigned seed = 1; seed <= 3; seed++) {
        drafting_open(&d, &(struct drafting_setup){.drafter = drafter,
                                                   .vocabulary = 6,
                                                   .toy_seed = seed,
                                                   .sharpness = 6,
                                                   .temperature = temperature,
                                                   .observer = check_tree});
        d.session->costs.planted[ESP_COST_DRAFT] = draft_cost;
        d.session->costs.planted[ESP_COST_VERIFY] = verify_cost;
        while (drafting_step(&d))
            continue;
        drafting_close(&d);
    }
    CHECK(iterations > 30, "%s: %d iterations", drafter, iterations);
}

TEST(suffix_copies_every_token)
{
    run("suffix", 0);
    CHECK(copied > 100 && drafted == 0, "%d, %d", copied, drafted);
}

TEST(ngram_copies_every_token)
{
    run("ngram:N=6", 0.8);
    CHECK(copied > 100 && cut > 0 && drafted == 0, "%d, %d, %d", copied, cut, drafted);
}

TEST(hybrid_copies_some_tokens)
{
    run("hybrid", 0);
    CHECK(copied > 50 && recycled > 20 && drafted > 50, "%d, %d, %d", copied, recycled,
          drafted);
}

TEST(recycle_copies_and_recycles_tokens)
{
    run("recycle:cost=off,N=6", 0.8);
    CHECK(copied > 5 && recycled > 100 && drafted == 0, "%d, %d, %d", copied, recycled,
          drafted);
}

TEST(goodput_copies_whole_trees)
{
    run("goodput:recycled=off", 0);
    CHECK(copied > 50 && recycled == 0 && drafted > 50, "%d, %d, %d", copied, recycled,
          drafted);
}

TEST(goodput_also_recycles_tokens)
{
    run("goodput", 0);
    CHECK(copied > 50 && recycled > 50 && drafted > 10, "%d, %d, %d", copied, recycled,
          drafted);
}

TEST(salf_copies_no_token)
{
    run("salf", 0);
    CHECK(copied == 0 && drafted > 50, "%d, %d", copied, drafted);
}

/* In recordings of earlier versions, only the root records that tokens were copied. */
TEST(in_an_old_recording_the_root_says_that_tokens_are_copied)
{
    struct esp_node nodes[2] = {{.parent = -1, .reason = ESP_REASON_RETRIEVED},
                                {.depth = 1, .q = 1, .verdict = ESP_ACCEPTED, .p = 0.7f}};
    struct esp_iteration it = {.tree = {.nodes = nodes, .count = 2},
                               .path = &(int32_t){1},
                               .path_length = 1,
                               .verifier = "greedy"};
    char text[TEXT];
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 1, &tokens);
    CHECK(strcmp(text, "accepted: it is the target's first choice; copied from the text") == 0,
          "%s", text);
    dump_rows(&it, text);
    CHECK(strstr(text, "copied") && !strstr(text, "1.0"), "%s", text);
}
