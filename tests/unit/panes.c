/* Tests that the timeline, the mask and the inspector show the data of the iterations. */
#include "tui/view/ui.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "viz/chart.h"
#include "viz/explain.h"
#include "viz/formula.h"
#include "viz/mask_view.h"
#include "viz/walk_view.h"
#include "tests/scene.h"

/* The iterations have different times and counts, so that their bars in the chart differ. */
TEST(the_timeline_and_the_mask_match_their_golden_screens)
{
    struct scene scene;
    scene_open(&scene, 80, 24);
    scene_ready(&scene);
    scene_prompt(&scene);
    for (int i = 0; i < 40; i++) {
        struct esp_iteration it = *scene_king(i);
        it.path_length = i % 4;
        it.committed_count = it.path_length + 1;
        it.tree.verified = 9 - i % 3;
        it.seconds[ESP_STAGE_VERIFY] = 0.001 + 0.0002 * (i % 7);
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    }
    scene.ui.layout.focused = true;
    scene.ui.layout.current = ESP_PANE_timeline;
    scene_golden(&scene, "timeline_80x24");
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    CHECK(scene.ui.look.iteration == 37);
    scene_golden(&scene, "timeline_held_80x24");
    scene.ui.layout.current = ESP_PANE_mask;
    scene_golden(&scene, "mask_80x24");
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "mask_ascii_80x24");
    scene.canvas.glyphs = &esp_glyphs_full;
    CHECK(esp_canvas_resize(&scene.canvas, 120, 50) == 0);
    scene.ui.layout.focused = false;
    scene_golden(&scene, "tall_120x50");
    scene_close(&scene);
}

/* The walk is the order in which a pass computes the states of recurrent layers. If the target
 * has such layers, the mask pane must show the walk beside the mask if there is enough room. */
TEST(the_walk_is_beside_the_mask)
{
    struct scene scene;
    struct esp_iteration it = *scene_king(0);
    it.state_bytes = it.state_read = it.state_written = 49152;
    scene_telling(&scene, 80, 24);
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    scene.ui.layout.focused = true;
    scene.ui.layout.current = ESP_PANE_mask;
    scene_golden(&scene, "walk_80x24");
    CHECK(esp_canvas_resize(&scene.canvas, 40, 12) == 0);
    scene_golden(&scene, "walk_40x12");
    CHECK(esp_walk_levels(&it) == 1 && esp_walk_width(&it) == 26);
    scene_close(&scene);
}

/* If the mask does not fit in its pane, the pane must say so, in ASCII and in braille. */
TEST(a_mask_that_does_not_fit_says_so)
{
    static struct esp_node nodes[150];
    static int32_t path[150], order[150];
    unsigned long long random = 12;
    struct scene scene;
    struct esp_iteration it;
    scene_telling(&scene, 80, 24);
    scene_random(&it, nodes, path, 150, &random);
    for (int i = 0; i < 150; i++)
        order[i] = i;
    it.index = 7;
    it.tree.order = order;
    it.tree.verified = 150;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    scene.ui.layout.current = ESP_PANE_mask;
    scene.ui.layout.focused = true;
    char *braille = scene_dump(&scene, false);
    scene.canvas.glyphs = &esp_glyphs_ascii;
    char *ascii = scene_dump(&scene, false);
    bool said = strstr(braille, " 76 x 150 of 150 x 150 fit ") &&
                strstr(ascii, " 19 x 76 of 150 x 150 fit ");
    free(braille);
    free(ascii);
    scene_close(&scene);
    CHECK(said);
}

/* Returns whether row j is row i or an ancestor of row i. */
static bool sees(const struct esp_tree *tree, int i, int j)
{
    int target = tree->order[j];
    for (int node = tree->order[i]; node >= 0; node = tree->nodes[node].parent)
        if (node == target)
            return true;
    return false;
}

/* Every drawing of the mask must show which nodes are ancestors of which nodes. */
TEST(the_mask_is_the_ancestor_relation)
{
    static struct esp_node nodes[90];
    static int32_t path[90], order[90];
    unsigned long long random = 11;
    const int widths[] = {200, 90, 50}, heights[] = {92, 46, 24};
    struct esp_tokens tokens = {scene_text, NULL};
    struct esp_iteration it;
    scene_random(&it, nodes, path, 90, &random);
    for (int i = 0; i < 90; i++)
        order[i] = i;
    it.tree.order = order;
    it.tree.verified = 90;
    for (int form = 0; form < 3; form++) {
        struct esp_canvas canvas;
        CHECK(esp_canvas_open(&canvas, widths[form], heights[form]) == 0);
        esp_mask_draw(&canvas, &it, &tokens, -1);
        for (int i = 0; i < 90; i++)
            for (int j = 0; j < 90; j++) {
                static const int bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
                int x = form == 0 ? 14 + 2 * j : form == 1 ? j : j / 2;
                int y = form == 0 ? i : form == 1 ? i / 2 : i / 4;
                const char *text = canvas.cells[y * widths[form] + x].text;
                unsigned char last = (unsigned char)text[2], middle = (unsigned char)text[1];
                bool drawn =
                    form == 0 ? strcmp(text, "█") == 0
                    : form == 1 ? strcmp(text, "█") == 0 || strcmp(text, i % 2 ? "▄" : "▀") == 0
                                : text[0] != ' ' &&
                                      (((middle & 3) << 6 | (last & 63)) & bits[i % 4][j % 2]);
                CHECK(drawn == sees(&it.tree, i, j), "form %d, %d sees %d", form, i, j);
            }
        esp_canvas_close(&canvas);
    }
}

/* If a verifier samples, sentences must explain its decisions with the right numbers. */
TEST(sampled_decisions_are_explained)
{
    char text[160];
    struct esp_tokens tokens = {scene_text, NULL};
    struct esp_iteration it = *scene_king(0);
    it.verifier = "naive";
    it.tree.nodes[6].u = 0.31f;
    it.tree.nodes[6].acceptance = 0.9f;
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 6, &tokens);
    CHECK(strcmp(text, "accepted: the random number .31 (u) is below its chance of .90") == 0,
          "%s", text);
    esp_formula_text(text, sizeof text, &it, 6);
    CHECK(strcmp(text,
                 "accepted with probability min(1, p/q) = min(1, .64/.71) = .90, u = .31") == 0,
          "%s", text);
    it.tree.nodes[8].u = 0.95f;
    it.tree.nodes[8].acceptance = 0.5f;
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 8, &tokens);
    CHECK(strcmp(text,
                 "rejected: the random number .95 (u) is above its chance of .50; next is \" "
                 "fell\"") == 0,
          "%s", text);
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 3, &tokens);
    CHECK(strcmp(text, "not tested: \" old\" was accepted") == 0, "%s", text);
    esp_explain_node(text, sizeof text, &it, ESP_STAGE_VERIFY, 3, &tokens);
    CHECK(strcmp(text, "drafted: no decision yet") == 0, "%s", text);
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 10, &tokens);
    CHECK(strcmp(text,
                 "cut before the target saw it: path too unlikely; its path has .02 (P)") == 0,
          "%s", text);
}

/* The zoomed controller pane must show charts and the reasons why values changed. One chart
 * must also show the goal of the acceptance rate. */
TEST(the_controller_has_charts)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    for (int i = 7; i < 60; i++) {
        struct esp_iteration it = *scene_king(i);
        it.gauges[0].after = it.gauges[0].before + 0.002 * (i % 20 - 10);
        it.gauges[2].after = it.gauges[2].before + 0.05;
        it.gauges[3] = (struct esp_gauge){"rhostop", 0.1, 0.1, 0, 1};
        it.gauges[4] =
            (struct esp_gauge){"acceptance", 0.6 + 0.002 * i, 0.602 + 0.002 * i, 0, 1};
        it.gauges[5] = (struct esp_gauge){"target", 0.7, 0.7, 0, 1};
        it.gauge_count = 6;
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    }
    scene_golden(&scene, "controller_low_120x36");
    scene_focus(&scene, ESP_PANE_controller, true);
    scene_golden(&scene, "controller_120x36");
    CHECK(esp_canvas_resize(&scene.canvas, 80, 24) == 0);
    scene_golden(&scene, "controller_80x24");
    scene_close(&scene);
}

/* Without the node pane, a sentence under the tree must explain the node at the cursor. */
TEST(the_tree_explains_its_node)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    scene_focus(&scene, ESP_PANE_tree, false);
    esp_look_hold(&scene.ui.look, &scene.state, 6);
    scene_golden(&scene, "held_80x24");
    CHECK(esp_canvas_resize(&scene.canvas, 120, 36) == 0);
    char *text = scene_dump(&scene, false);
    const char *first = strstr(text, "first choice is");
    const bool once = first && !strstr(first + 1, "first choice is");
    free(text);
    scene_close(&scene);
    CHECK(once, "if the node pane is shown, only this pane must have the sentence");
}

/* Above temperature 0, sentences must say that a token was drawn at random. At temperature 0,
 * they must never say so. */
TEST(sentences_name_random_draws)
{
    char text[768] = "";
    struct esp_tokens tokens = {scene_text, NULL};
    struct esp_iteration it = *scene_king(0);
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_STAGE, ESP_STAGE_SELECT + 1, &tokens);
    CHECK(!strstr(text, "random"), "%s", text);
    it.verifier = "traversal";
    it.drafter = "iid";
    it.bonus_u = 0.4f;
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_STAGE, ESP_STAGE_SELECT + 1, &tokens);
    CHECK(strstr(text, "of its own, drawn at random"), "%s", text);
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_LAYER, 0, &tokens);
    CHECK(strstr(text, ", drawn at random."), "%s", text);
    it.drafter = "fixed";
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_LAYER, 0, &tokens);
    CHECK(!strstr(text, "random"), "%s", text);
    it.seconds[ESP_STAGE_VERIFY] = 0;
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_STAGE, ESP_STAGE_VERIFY + 1, &tokens);
    CHECK(!strstr(text, "ms"), "an unknown time must be left out: %s", text);
}

/* Each pass reads the states of recurrent layers. Whether it also writes them depends on the
 * text. */
TEST(step_mode_says_how_often_states_were_read_and_written)
{
    char text[768] = "";
    struct esp_tokens tokens = {scene_text, NULL};
    struct esp_iteration it = *scene_king(0);
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_STAGE, ESP_STAGE_VERIFY + 1, &tokens);
    CHECK(!strstr(text, "states"), "there are none: %s", text);
    it.state_bytes = it.state_read = 1000000;
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_STAGE, ESP_STAGE_VERIFY + 1, &tokens);
    CHECK(strstr(text, "(1 MB) were read once and not written."), "%s", text);
    it.state_written = 1000000;
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_STAGE, ESP_STAGE_VERIFY + 1, &tokens);
    CHECK(strstr(text, "were read once and written once."), "%s", text);
    it.state_written = 1500000;
    esp_explain_stop(text, sizeof text, &it, ESP_EVENT_STAGE, ESP_STAGE_VERIFY + 1, &tokens);
    CHECK(strstr(text, "and written 1.5 times."), "%s", text);
}

/* Small probabilities must not be shown as 0. */
TEST(small_probabilities_are_not_shown_as_0)
{
    char text[8];
    CHECK(strcmp(esp_probability(text, 0.0049), "<.01") == 0, "%s", text);
    CHECK(strcmp(esp_probability(text, 1e-30), "<.01") == 0, "%s", text);
    CHECK(strcmp(esp_probability(text, 0.0051), ".01") == 0, "%s", text);
    CHECK(strcmp(esp_probability(text, 0), ".00") == 0, "%s", text);
}

/* For a verifier that samples, the inspector must show formulas beside the numbers, in panes of
 * all sizes. */
TEST(the_inspector_shows_the_formulas)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    struct esp_iteration it = *scene_king(7);
    it.verifier = "specinfer";
    for (int i = 1; i < it.tree.count; i++)
        if (it.tree.nodes[i].verdict != ESP_CUT)
            it.tree.nodes[i].branching = 0.95f * it.tree.nodes[i].p;
    it.tree.nodes[4].acceptance_rate = 0.74f;
    it.tree.nodes[4].ceiling = 0.79f;
    it.tree.nodes[4].acceptance = 0.66f;
    it.tree.nodes[4].u = 0.31f;
    it.tree.nodes[4].copies = 2;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    esp_look_hold(&scene.ui.look, &scene.state, 7);
    scene.ui.look.node = 4;
    scene_golden(&scene, "node_low_120x36");
    scene.ui.layout.current = ESP_PANE_node;
    scene.ui.layout.focused = scene.ui.layout.zoomed = true;
    scene_golden(&scene, "node_formulas_120x36");
    CHECK(esp_canvas_resize(&scene.canvas, 80, 24) == 0);
    scene_golden(&scene, "node_formulas_80x24");
    scene_close(&scene);
}
