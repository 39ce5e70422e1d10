/* Tests that verifiers' formulas show the numbers of a node in the right places, and that
 * recordings contain these numbers. */
#include "viz/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "sessions/event_json.h"

static struct esp_node nodes[4];

/* Makes an iteration. Its tree has a path of two nodes below the root, and a sibling of the
 * path's first node. */
static struct esp_iteration make_iteration(const char *verifier)
{
    const struct esp_node plain = {.copies = 1,
                                   .p = 0.4f,
                                   .q = 0.5f,
                                   .acceptance = 0.6f,
                                   .u = 0.31f,
                                   .branching = NAN,
                                   .verdict = ESP_ACCEPTED};
    for (int i = 0; i < 4; i++)
        nodes[i] = plain;
    nodes[0].parent = -1;
    nodes[2].parent = 1;
    nodes[1].depth = nodes[3].depth = 1;
    nodes[2].depth = 2;
    nodes[3].rank = 1;
    nodes[3].q = 0.2f;
    return (struct esp_iteration){.tree = {.nodes = nodes, .count = 4}, .verifier = verifier};
}

static void check_text(const struct esp_iteration *it, int node, const char *want)
{
    char text[400];
    esp_formula_text(text, sizeof text, it, node);
    CHECK(strncmp(text, want, strlen(want)) == 0, "%s: %s", it->verifier, text);
}

TEST(formulas_are_filled_in)
{
    static const struct {
        const char *rule, *text;
    } cases[] = {
        {"nss", "accepted with probability p = .40 = .60, u = .31; the token drawn"},
        {"naive", "accepted with probability min(1, p/q) = min(1, .40/.20) = .60, u = .31"},
        {"naivetree:lossy=allow",
         "accepted with probability min(1, p/q) = min(1, .40/.20) = .60, u = .31; only"},
        {"spectr",
         "accepted with probability min(1, p/(rho q)) = min(1, .40/(3.33 x .20)) = .60, u ="},
        {"specinfer",
         "accepted with probability min(1, p'/q) = min(1, .12/.20) = .60, u = .31; p' is"},
        {"khisti", "accepted with probability min(1, p/r) = min(1, .40/.67) = .60, u = .31; r"},
        {"swor",
         "accepted with probability min(1, P/Q) = min(1, .24/.40) = .60, u = .31; P and Q"},
        {"bv", "accepted with probability S/(S + 1 - w) = .60, u = .31; w = min(1, w' p/q) = "
               "min(1, 1.0 x .40/.20) = 1.0, w' of its parent"},
        {"traversal", "accepted with probability w = .60, u = .31; min(1, w' p'/q)"},
        {"unheard-of", "accepted with probability .60, u = .31"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct esp_iteration it = make_iteration(cases[i].rule);
        check_text(&it, 3, cases[i].text);
    }
    struct esp_iteration it = make_iteration("bv");
    check_text(&it, 2,
               "accepted with probability S/(S + 1 - w) = .60, u = .31; w = min(1, w' "
               "p/q) = min(1, .80 x .40/.50) = .64, ");
    it = make_iteration("specinfer");
    nodes[3].acceptance = 1;
    check_text(&it, 3, "accepted with probability min(1, p'/q) = 1.0, u = .31; p' is");
    nodes[3].drawn = true;
    nodes[3].acceptance = 0.7f;
    check_text(
        &it, 3,
        "drawn from the residual of p after rejected drafts: its share is .70; u = .31 drew "
        "it");
    nodes[3].acceptance = NAN;
    check_text(&it, 3, "");
    it = make_iteration("greedy");
    nodes[3].u = NAN;
    check_text(&it, 3, "accepted if p is the largest");
    nodes[3].verdict = ESP_REJECTED;
    check_text(&it, 3, "rejected unless p is the largest");
}

/* Every verifier must have a formula, and each '$' name in it must be the name of a number. */
TEST(every_verifier_has_a_formula)
{
    struct esp_item item;
    char text[400];
    for (int i = 0; esp_item(ESP_VERIFIERS, i, &item); i++) {
        struct esp_iteration it = make_iteration(item.name);
        CHECK(item.formula && *item.formula, "%s has none", item.name);
        esp_formula_text(text, sizeof text, &it, 2);
        CHECK(strstr(text, item.formula) && !strchr(text, '$'), "%s: %s", item.name, text);
        esp_formula_text(text, 20, &it, 2);
        CHECK(strlen(text) == 19);
    }
    CHECK(esp_item(ESP_DRAFTERS, 0, &item) && !item.formula);
}

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

TEST(a_recording_keeps_what_was_shown)
{
    struct esp_iteration it = make_iteration("specinfer");
    struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = &it};
    struct esp_line line = {.length = 0};
    struct esp_recorded_event recorded = {.texts = {NULL}};
    struct esp_texts texts = {.count = 0};
    struct esp_tokens tokens = {NULL, NULL};
    const int32_t order[] = {0, 1, 3, 2}, path[] = {1}, committed[] = {0, 0};
    char err[256] = "";
    it.tree.order = (int32_t *)order;
    it.tree.verified = 4;
    it.path = path;
    it.path_length = 1;
    it.committed = committed;
    it.committed_count = 2;
    it.drafter = "iid";
    nodes[2].verdict = ESP_UNVISITED;
    nodes[3].verdict = ESP_REJECTED;
    nodes[1].drawn = true;
    for (int i = 0; i < 4; i++) {
        nodes[i].branching = i ? 0.1f * (float)i : NAN;
        nodes[i].acceptance_rate = i < 2 ? 0.3f : NAN;
        nodes[i].ceiling = i < 2 ? 0.7f : NAN;
    }
    CHECK(esp_event_to_json(&line, &event, NULL, &tokens) == 0);
    CHECK(esp_event_from_json(&recorded, &texts, line.text, line.length - 1, 0, err,
                              sizeof err) == 1,
          "%s", err);
    for (int i = 0; i < 4; i++) {
        const struct esp_node *read = &recorded.iteration.it.tree.nodes[i];
        CHECK(same(read->branching, nodes[i].branching) && read->drawn == nodes[i].drawn);
        CHECK(same(read->acceptance_rate, nodes[i].acceptance_rate));
        CHECK(same(read->ceiling, nodes[i].ceiling));
    }
    esp_recorded_event_free(&recorded);
    esp_texts_free(&texts);
    esp_line_free(&line);
}
