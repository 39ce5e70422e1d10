/* Whole screens, drawn from events made by hand: golden screens for the sizes of the design,
 * and no crash, no control character and no foreign byte at any size. */
#include "ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "check.h"
#include "explain.h"
#include "formula.h"
#include "mask_view.h"
#include "scene.h"

/* Some iterations into a text. */
static void telling(struct scene *scene, int width, int height)
{
    scene_open(scene, width, height);
    scene_ready(scene);
    scene_prompt(scene);
    for (int i = 0; i < 7; i++)
        scene_iteration(scene, i);
}

TEST(wide_120x36)
{
    struct scene scene;
    telling(&scene, 120, 36);
    scene_golden(&scene, "wide_120x36");
    scene_close(&scene);
}

TEST(normal_80x24)
{
    struct scene scene;
    telling(&scene, 80, 24);
    scene_golden(&scene, "normal_80x24");
    scene.ui.wish.stacked = true;
    scene_golden(&scene, "stacked_80x24");
    scene_close(&scene);
}

/* The cursor holds the tree while others come; the inspector follows it; Esc lets go. */
TEST(the_cursor_explains_nodes)
{
    struct scene scene;
    telling(&scene, 120, 36);
    while (scene.ui.wish.current != ESP_PANE_tree || !scene.ui.wish.focused)
        esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_NEXT_PANE, 120, 36);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_UP, 120, 36);
    CHECK(scene.ui.look.iteration == 6 && scene.ui.look.node == 8);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_UP, 120, 36);
    CHECK(scene.ui.look.node == 6, "the cursor is at node %d", scene.ui.look.node);
    scene_iteration(&scene, 7);
    scene_golden(&scene, "held_120x36");
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_TOGGLE, 120, 36);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_ZOOM, 120, 36);
    scene_golden(&scene, "folded_120x36");
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_TOGGLE, 120, 36);
    const int nodes[] = {0, 1, 2, 3, 4, 5, 6, 8, 10};
    scene.ui.wish.current = ESP_PANE_node;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        scene.ui.look.node = nodes[i];
        free(scene_dump(&scene, false));
    }
    scene_golden(&scene, "node_120x36");
    scene.ui.wish.current = ESP_PANE_tree;
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_EARLIER, 120, 36);
    CHECK(scene.ui.look.iteration == 5);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEAVE_PANE, 120, 36);
    CHECK(scene.ui.look.iteration == -1 && scene.ui.wish.focused);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEAVE_PANE, 120, 36);
    CHECK(!scene.ui.wish.focused && !scene.ui.wish.zoomed);
    scene_close(&scene);
}

static void stop(struct scene *scene, int type, int stage, int nodes)
{
    struct esp_iteration it = *scene_king(2);
    struct esp_node early[11];
    memcpy(early, it.tree.nodes, sizeof early);
    if (type == ESP_EVENT_LAYER || stage < ESP_STAGE_SELECT) {
        for (int i = 0; i < 11; i++) /* nothing is decided yet */
            if (early[i].verdict != ESP_CUT || type == ESP_EVENT_LAYER)
                early[i].verdict = ESP_UNVISITED;
        it.tree.nodes = early;
        it.path_length = it.committed_count = 0;
    }
    it.tree.count = nodes;
    if (type == ESP_EVENT_LAYER) {
        it.tree.verified = 0;
        it.draft_passes = 2;
    }
    scene_event(scene, &(struct esp_event){.type = type, .stage = stage, .iteration = &it});
}

/* What step mode says after a draft pass and after each of the six stages. */
TEST(step_mode_teaches)
{
    struct scene scene;
    telling(&scene, 120, 36);
    scene.ui.stepping = true;
    scene_phase(&scene, ESP_PHASE_WAITING, "", 0);
    stop(&scene, ESP_EVENT_LAYER, 0, 5);
    scene_golden(&scene, "step_layer_120x36");
    static const char *const names[] = {"step_draft_120x36",  "step_flatten_120x36",
                                        "step_verify_120x36", "step_select_120x36",
                                        "step_commit_120x36", "step_adapt_120x36"};
    for (int stage = 0; stage < ESP_STAGES; stage++) {
        stop(&scene, ESP_EVENT_STAGE, stage, 11);
        scene_golden(&scene, names[stage]);
    }
    CHECK(esp_canvas_resize(&scene.canvas, 80, 24) == 0);
    scene_golden(&scene, "step_adapt_80x24");
    scene_iteration(&scene, 2);
    scene_close(&scene);
}

/* Iterations whose numbers differ, so that a chart has something to show. */
TEST(the_timeline_and_the_mask)
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
    scene.ui.wish.focused = true;
    scene.ui.wish.current = ESP_PANE_timeline;
    scene_golden(&scene, "timeline_80x24");
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    CHECK(scene.ui.look.iteration == 37);
    scene_golden(&scene, "timeline_held_80x24");
    scene.ui.wish.current = ESP_PANE_mask;
    scene_golden(&scene, "mask_80x24");
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "mask_ascii_80x24");
    scene.canvas.glyphs = &esp_glyphs_full;
    CHECK(esp_canvas_resize(&scene.canvas, 120, 50) == 0);
    scene.ui.wish.focused = false;
    scene_golden(&scene, "tall_120x50");
    scene_close(&scene);
}

/* A mask that has no room in its pane says so, in ASCII and in braille. */
TEST(a_mask_that_does_not_fit_says_so)
{
    static struct esp_node nodes[150];
    static int32_t path[150], order[150];
    unsigned long long random = 12;
    struct scene scene;
    struct esp_iteration it;
    telling(&scene, 80, 24);
    scene_random(&it, nodes, path, 150, &random);
    for (int i = 0; i < 150; i++)
        order[i] = i;
    it.index = 7;
    it.tree.order = order;
    it.tree.verified = 150;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    scene.ui.wish.current = ESP_PANE_mask;
    scene.ui.wish.focused = true;
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

/* The picture of the mask is the ancestor relation, in every form it is drawn in. */
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
                bool drawn = form == 0   ? strcmp(text, "█") == 0
                             : form == 1 ? strcmp(text, "█") == 0 ||
                                               strcmp(text, i % 2 ? "▄" : "▀") == 0
                             : text[0] != ' ' &&
                                   (((middle & 3) << 6 | (last & 63)) & bits[i % 4][j % 2]);
                CHECK(drawn == esp_mask_sees(&it.tree, i, j), "form %d, %d sees %d", form, i,
                      j);
            }
        esp_canvas_close(&canvas);
    }
}

/* Sentences of sampling rules, with their numbers. */
TEST(sampled_decisions_are_explained)
{
    char text[160];
    struct esp_tokens tokens = {scene_text, NULL};
    struct esp_iteration it = *scene_king(0);
    it.verifier = "naive";
    it.tree.nodes[6].u = 0.31f;
    it.tree.nodes[6].acceptance = 0.9f;
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 6, &tokens);
    CHECK(strcmp(text, "accepted: u = .31 is below its chance of .90") == 0, "%s", text);
    esp_formula_text(text, sizeof text, &it, 6);
    CHECK(strcmp(text,
                 "accepted with probability min(1, p/q) = min(1, .64/.71) = .90, u = .31") == 0,
          "%s", text);
    it.tree.nodes[8].u = 0.95f;
    it.tree.nodes[8].acceptance = 0.5f;
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 8, &tokens);
    CHECK(strcmp(text, "rejected: u = .95 is above its chance of .50; next is \" fell\"") == 0,
          "%s", text);
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 3, &tokens);
    CHECK(strcmp(text, "not tried: \" old\" came first") == 0, "%s", text);
    esp_explain_node(text, sizeof text, &it, ESP_STAGE_VERIFY, 3, &tokens);
    CHECK(strcmp(text, "drafted: no decision yet") == 0, "%s", text);
    esp_explain_node(text, sizeof text, &it, ESP_STAGES, 10, &tokens);
    CHECK(strcmp(text, "cut before the target saw it: P < threshold (P = .02)") == 0, "%s",
          text);
}

/* The inspector with a rule that draws: formulas beside the numbers, in all its sizes. */
TEST(the_inspector_shows_the_formulas)
{
    struct scene scene;
    telling(&scene, 120, 36);
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
    scene.ui.wish.current = ESP_PANE_node;
    scene.ui.wish.focused = scene.ui.wish.zoomed = true;
    scene_golden(&scene, "node_formulas_120x36");
    CHECK(esp_canvas_resize(&scene.canvas, 80, 24) == 0);
    scene_golden(&scene, "node_formulas_80x24");
    scene_close(&scene);
}

/* ------------------------------------------------------------------ growing to the right */

static void focus(struct scene *scene, int pane, bool zoomed)
{
    scene->ui.wish.current = pane;
    scene->ui.wish.focused = true;
    scene->ui.wish.zoomed = zoomed;
}

static void act(struct scene *scene, int action)
{
    esp_ui_act(&scene->ui, &scene->state, action, scene->canvas.width, scene->canvas.height);
}

TEST(a_tree_that_grows_to_the_right)
{
    struct scene scene;
    telling(&scene, 80, 24);
    act(&scene, ESP_ACTION_TREE_LAYOUT);
    scene_golden(&scene, "right_80x24");
    CHECK(esp_canvas_resize(&scene.canvas, 120, 36) == 0);
    scene_golden(&scene, "right_120x36");
    focus(&scene, ESP_PANE_tree, false);
    act(&scene, ESP_ACTION_DOWN);
    CHECK(scene.ui.look.node == 8);
    act(&scene, ESP_ACTION_DOWN);
    CHECK(scene.ui.look.node == 9, "down: the next of the same depth, not node %d",
          scene.ui.look.node);
    act(&scene, ESP_ACTION_LEFT);
    act(&scene, ESP_ACTION_LEFT);
    CHECK(scene.ui.look.node == 4, "left: the parent, not node %d", scene.ui.look.node);
    act(&scene, ESP_ACTION_RIGHT);
    CHECK(scene.ui.look.node == 6, "right: the accepted child, not node %d",
          scene.ui.look.node);
    act(&scene, ESP_ACTION_LEFT);
    act(&scene, ESP_ACTION_TOGGLE);
    scene_golden(&scene, "right_folded_120x36");
    act(&scene, ESP_ACTION_RIGHT);
    CHECK(scene.ui.look.node == 4 && !scene.ui.look.collapsed[4], "right unfolds first");
    CHECK(esp_canvas_resize(&scene.canvas, 200, 60) == 0);
    scene_golden(&scene, "right_200x60");
    scene_close(&scene);
}

TEST(a_tree_that_grows_to_the_right_in_plain_glyphs)
{
    struct scene scene;
    telling(&scene, 80, 24);
    scene.ui.look.grows_right = true;
    focus(&scene, ESP_PANE_tree, true);
    scene.canvas.glyphs = &esp_glyphs_plain;
    scene_golden(&scene, "right_plain_80x24");
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "right_ascii_80x24");
    scene_close(&scene);
}

/* Layer by layer, as step mode lets it grow. */
TEST(a_tree_grows_to_the_right_while_it_is_drafted)
{
    struct scene scene;
    telling(&scene, 120, 36);
    scene.ui.stepping = scene.ui.look.grows_right = true;
    scene_phase(&scene, ESP_PHASE_WAITING, "", 0);
    stop(&scene, ESP_EVENT_LAYER, 0, 3);
    scene_golden(&scene, "right_layer_1_120x36");
    stop(&scene, ESP_EVENT_LAYER, 0, 5);
    scene_golden(&scene, "right_layer_2_120x36");
    stop(&scene, ESP_EVENT_STAGE, ESP_STAGE_FLATTEN, 11);
    scene_golden(&scene, "right_flatten_120x36");
    scene_close(&scene);
}

/* Wide and combining characters, and tokens too long for their columns. */
TEST(long_and_wide_tokens_are_shortened)
{
    struct scene scene;
    telling(&scene, 100, 20);
    struct esp_iteration it = *scene_king(7);
    for (int i = 1; i < it.tree.count; i++)
        it.tree.nodes[i].token = i % 3 == 0   ? TOKEN_WIDE
                                 : i % 3 == 1 ? TOKEN_ONCE
                                              : TOKEN_HOSTILE;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    scene.ui.look.grows_right = true;
    focus(&scene, ESP_PANE_tree, true);
    scene_golden(&scene, "right_wide_100x20");
    act(&scene, ESP_ACTION_DOWN);
    scene_golden(&scene, "right_scrolled_100x20");
    scene_close(&scene);
}

/* From any node, the arrows lead to any other, in both layouts. */
TEST(the_cursor_reaches_every_node)
{
    static struct esp_node nodes[60];
    static int32_t path[60];
    static const int actions[] = {ESP_ACTION_LEFT, ESP_ACTION_RIGHT, ESP_ACTION_UP,
                                  ESP_ACTION_DOWN};
    unsigned long long random = 21;
    struct scene scene;
    telling(&scene, 120, 36);
    focus(&scene, ESP_PANE_tree, true);
    for (int round = 0; round < 20; round++) {
        struct esp_iteration it;
        bool seen[60] = {true};
        int queue[60] = {0}, count = 1;
        scene_random(&it, nodes, path, 40, &random);
        it.index = 10 + round;
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
        scene.ui.look.grows_right = round % 2;
        esp_look_hold(&scene.ui.look, &scene.state, it.index);
        for (int i = 0; i < count; i++)
            for (int a = 0; a < 4; a++) {
                scene.ui.look.node = queue[i];
                act(&scene, actions[a]);
                if (!seen[scene.ui.look.node])
                    queue[count++] = scene.ui.look.node;
                seen[scene.ui.look.node] = true;
            }
        CHECK(count == 40, "%d of 40 nodes are reached", count);
    }
    scene_close(&scene);
}

/* ------------------------------------------------------------------ search */

static struct esp_found look_for(struct scene *scene, const char *what, int step)
{
    struct esp_ui *ui = &scene->ui;
    if (what) {
        snprintf(ui->look.search, sizeof ui->look.search, "%s", what);
        ui->look.match = -1;
    }
    return esp_ui_find(ui, &scene->state, ui->wish.current, step, scene->canvas.width,
                       scene->canvas.height);
}

TEST(a_text_is_found_in_the_text)
{
    struct scene scene;
    telling(&scene, 80, 24);
    for (int i = 0; i < 80; i++)
        scene_iteration(&scene, i);
    for (int i = 0; i < 20; i++)
        act(&scene, ESP_ACTION_PAGE_UP);
    focus(&scene, ESP_PANE_text, false);
    struct esp_found found = look_for(&scene, "king fell", 1);
    CHECK(found.index == 1 && found.count == 87 && !found.round, "%d of %d", found.index,
          found.count);
    found = look_for(&scene, NULL, 1);
    CHECK(found.index == 2);
    scene_golden(&scene, "found_80x24");
    CHECK(look_for(&scene, NULL, -1).index == 1);
    found = look_for(&scene, NULL, -1);
    CHECK(found.index == 87 && found.round);
    CHECK(look_for(&scene, NULL, 1).round);
    CHECK(look_for(&scene, "KING", 1).count == 0 && scene.ui.look.match == -1);
    CHECK(look_for(&scene, "Once", 1).count == 1);
    scene_close(&scene);
}

/* Are these many cells in a row drawn in a style, below the header and the first title? */
static bool has_style(struct scene *scene, int style, int cells)
{
    char wanted[16] = "", *styles = scene_dump(scene, true);
    const char *body = strchr(strchr(styles, '\n') + 1, '\n');
    memset(wanted, style < 26 ? 'a' + style : 'A' + style - 26, (size_t)cells);
    bool has = body && strstr(body, wanted);
    free(styles);
    return has;
}

/* Every place is in sight when it is found, and drawn in a style of its own; so are the other
 * places, in another. */
TEST(what_is_found_is_seen)
{
    struct scene scene;
    telling(&scene, 80, 24);
    for (int i = 0; i < 60; i++)
        scene_iteration(&scene, i);
    focus(&scene, ESP_PANE_text, true);
    CHECK(!has_style(&scene, ESP_STYLE_SELECTION, 3) && !has_style(&scene, ESP_STYLE_MATCH, 3));
    CHECK(esp_style_attributes(ESP_STYLE_MATCH) != esp_style_attributes(ESP_STYLE_SELECTION) &&
          esp_style_attributes(ESP_STYLE_MATCH) != esp_style_attributes(ESP_STYLE_DRAFTED));
    int count = look_for(&scene, "old", 1).count;
    for (int i = 0; i < count; i++) {
        CHECK(look_for(&scene, NULL, 1).count == count);
        CHECK(has_style(&scene, ESP_STYLE_SELECTION, 3), "place %d of %d at byte %ld", i, count,
              scene.ui.look.match);
        CHECK(has_style(&scene, ESP_STYLE_MATCH, 3));
    }
    scene_close(&scene);
}

TEST(a_text_is_found_in_the_tree)
{
    struct scene scene;
    telling(&scene, 120, 36);
    focus(&scene, ESP_PANE_tree, false);
    struct esp_found found = look_for(&scene, "king", 1);
    CHECK(found.index == 1 && found.count == 2 && scene.ui.look.node == 6);
    CHECK(scene.ui.look.iteration == 6, "the tree is held");
    act(&scene, ESP_ACTION_LEFT); /* to " old", and fold it */
    act(&scene, ESP_ACTION_TOGGLE);
    found = look_for(&scene, NULL, 1);
    CHECK(found.index == 1 && scene.ui.look.node == 6 && !scene.ui.look.collapsed[4],
          "what is folded is found and unfolded");
    scene_golden(&scene, "found_tree_120x36");
    found = look_for(&scene, NULL, 1);
    CHECK(found.index == 2 && scene.ui.look.node == 3 && !found.round);
    found = look_for(&scene, NULL, 1);
    CHECK(found.index == 1 && found.round);
    CHECK(look_for(&scene, "nowhere", 1).count == 0 && scene.ui.look.node == 6);
    scene.ui.look.grows_right = true;
    look_for(&scene, "king", -1);
    scene_golden(&scene, "found_right_120x36");
    scene_close(&scene);
}

TEST(large_200x60)
{
    struct scene scene;
    telling(&scene, 200, 60);
    scene_golden(&scene, "large_200x60");
    scene_close(&scene);
}

TEST(tabs_20x6_and_50x16)
{
    struct scene scene;
    telling(&scene, 20, 6);
    scene_golden(&scene, "tabs_20x6");
    CHECK(esp_canvas_resize(&scene.canvas, 50, 16) == 0);
    scene.ui.wish.current = ESP_PANE_tree;
    scene_golden(&scene, "tabs_50x16");
    scene_close(&scene);
}

TEST(too_small_19x4)
{
    struct scene scene;
    telling(&scene, 40, 4);
    scene_golden(&scene, "tiny_40x4");
    scene_close(&scene);
}

TEST(glyph_sets)
{
    struct scene scene;
    telling(&scene, 80, 24);
    scene.canvas.glyphs = &esp_glyphs_plain;
    scene_golden(&scene, "plain_80x24");
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "ascii_80x24");
    scene_close(&scene);
}

TEST(loading_and_failing)
{
    struct scene scene;
    scene_open(&scene, 80, 24);
    scene_phase(&scene, ESP_PHASE_LOADING, "fairytale-target", 0.43);
    scene_golden(&scene, "loading_80x24");
    scene_phase(&scene, ESP_PHASE_FAILED,
                "cannot open /nowhere/config.json: No such file or directory", 0);
    scene_golden(&scene, "failed_80x24");
    scene_close(&scene);
}

/* Other models are loaded while the text of before is shown. */
TEST(loading_others)
{
    struct scene scene;
    telling(&scene, 80, 24);
    scene_phase(&scene, ESP_PHASE_LOADING, "pythia-2.8b", 0.43);
    scene_golden(&scene, "loading_others_80x24");
    scene_close(&scene);
}

TEST(a_lossy_rule_is_called_so)
{
    struct scene scene;
    telling(&scene, 80, 24);
    struct esp_event setting = {
        .type = ESP_EVENT_SETTING, .key = "verifier", .text = "naive:lossy=allow"};
    char *before = scene_dump(&scene, false);
    scene_event(&scene, &setting);
    char *after = scene_dump(&scene, false);
    bool said = !strstr(before, "LOSSY") && strstr(after, "LOSSY");
    free(before);
    free(after);
    scene_close(&scene);
    CHECK(said);
}

/* At every width the header says how speculation does, in words where it loses. */
TEST(a_loss_stands_in_the_header)
{
    struct scene scene;
    const struct {
        int width;
        const char *want;
    } cases[] = {{160, "slower than plain decoding by 24 %: the draft is right"},
                 {80, "slower than plain decoding by 24 %"},
                 {60, "24 % slower"}};
    telling(&scene, 80, 24);
    for (int i = 0; i < scene.state.record_count; i++)
        scene.state.records[i].seconds[ESP_STAGE_VERIFY] *= 2.43;
    for (int i = 0; i < 3; i++) {
        CHECK(esp_canvas_resize(&scene.canvas, cases[i].width, 24) == 0);
        char *text = scene_dump(&scene, false);
        text[strcspn(text, "\n")] = '\0';
        const bool said = strstr(text, cases[i].want) != NULL;
        CHECK(said, "%d columns: %s", cases[i].width, text);
        free(text);
    }
    scene_close(&scene);
}

TEST(help_and_choices)
{
    struct scene scene;
    static const char *const lines[] = {"Keys", "  F1    help", NULL};
    const struct esp_choice choices[] = {{"dynatree", "adapts"}, {"linear", "one chain"}};
    telling(&scene, 80, 24);
    scene.ui.help = true;
    scene.ui.look.help = lines;
    scene_golden(&scene, "help_80x24");
    scene.ui.help = false;
    scene.ui.line = ":drafter ";
    scene.ui.line_length = scene.ui.point = 9;
    scene.ui.choices = choices;
    scene.ui.choice_count = 2;
    scene_golden(&scene, "choices_80x24");
    CHECK(scene.canvas.cursor_x == 11 && scene.canvas.cursor_y == 22);
    scene_close(&scene);
}

TEST(the_palette)
{
    struct scene scene;
    telling(&scene, 80, 24);
    esp_palette_open(&scene.ui.palette);
    esp_palette_add(&scene.ui.palette, "command", ":save ", "write the text to a file", NULL);
    esp_palette_add(&scene.ui.palette, "drafter", ":drafter dynatree", "adapts", NULL);
    esp_palette_add(&scene.ui.palette, "theme", ":theme light", "comes with the program", NULL);
    esp_palette_add(&scene.ui.palette, "key", "F5", "step mode: stop after every stage", NULL);
    esp_palette_key(&scene.ui.palette, 't');
    esp_palette_key(&scene.ui.palette, ESP_KEY_DOWN);
    scene_golden(&scene, "palette_80x24");
    esp_palette_close(&scene.ui.palette);
    scene_close(&scene);
}

TEST(styles_differ_by_more_than_colour)
{
    struct scene scene;
    telling(&scene, 80, 24);
    char *styles = scene_dump(&scene, true);
    FILE *file = fopen(check_path("tui/golden/styles_80x24.txt"), "r");
    const char *write = getenv("ESPALIER_GOLDEN");
    if (write && strcmp(write, "write") == 0) {
        file = fopen(check_path("tui/golden/styles_80x24.txt"), "w+");
        CHECK(file);
        fputs(styles, file);
        rewind(file);
    }
    static char wanted[8192];
    CHECK(file);
    wanted[fread(wanted, 1, sizeof wanted - 1, file)] = '\0';
    fclose(file);
    bool same = strcmp(styles, wanted) == 0;
    free(styles);
    scene_close(&scene);
    CHECK(same, "the styles differ from styles_80x24.txt");
    CHECK(esp_style_attributes(ESP_STYLE_DRAFTED) != esp_style_attributes(ESP_STYLE_BONUS));
    CHECK(esp_style_attributes(ESP_STYLE_PROMPT) != esp_style_attributes(ESP_STYLE_BONUS));
    CHECK(esp_style_attributes(ESP_STYLE_ACCEPTED) != esp_style_attributes(ESP_STYLE_REJECTED));
}

/* Tokens that attack the terminal, in the text, the tree, the title and the message. */
TEST(hostile_text_is_shown_not_obeyed)
{
    struct scene scene;
    const int32_t tokens[] = {TOKEN_HOSTILE, TOKEN_NEWLINE, TOKEN_WIDE, TOKEN_HOSTILE};
    scene_open(&scene, 100, 20);
    scene_ready(&scene);
    snprintf(scene.state.loaded.target, sizeof scene.state.loaded.target, "evil\033]0;x\a");
    scene_event(&scene, &(struct esp_event){
                            .type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 4});
    struct esp_iteration it = *scene_king(0);
    it.tree.nodes[1].token = TOKEN_HOSTILE;
    it.tree.nodes[2].token = TOKEN_NEWLINE;
    it.bonus = TOKEN_WIDE;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    scene.ui.message = "bad \033[2J path\xff";
    scene_golden(&scene, "hostile_100x20");
    scene_close(&scene);
}

static void is_printable(const char *text, bool ascii)
{
    for (const char *c = text; *c; c++) {
        CHECK((unsigned char)*c >= 0x20 || *c == '\n', "byte %02x", (unsigned char)*c);
        CHECK(!ascii || (unsigned char)*c < 0x80, "byte %02x", (unsigned char)*c);
    }
}

/* No control, format, bidirectional or zero-width character, and valid UTF-8. */
static void is_safe(const char *text, const char *where)
{
    while (*text) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &c);
        CHECK(n > 0, "%s: byte %02x is no UTF-8", where, (unsigned char)*text);
        utf8proc_category_t category = utf8proc_category(c);
        CHECK(c == '\n' || category != UTF8PROC_CATEGORY_CC, "%s: U+%04X", where, c);
        CHECK(category != UTF8PROC_CATEGORY_CF && category != UTF8PROC_CATEGORY_ZL &&
                  category != UTF8PROC_CATEGORY_ZP && category != UTF8PROC_CATEGORY_CN,
              "%s: U+%04X", where, c);
        text += n;
    }
}

#define ATTACK                                                                                 \
    "\033]0;x\a\033[2J\x7f\t\r\n\xc2\x9b"                                                      \
    "31m\u202e\u2066\u200b\u200d\u2028\ufeff\xff\xc3\xe2\x82\U000e0041"

static void dump_safe(struct scene *scene, const char *where)
{
    char *text = scene_dump(scene, false), copy[200];
    snprintf(copy, sizeof copy, "%s", where);
    is_safe(text, copy);
    free(text);
}

/* Names, paths, settings, messages, choices, what is typed and what is looked for attack, too. */
TEST(no_pane_obeys_hostile_text)
{
    struct scene scene;
    const int32_t tokens[] = {TOKEN_HOSTILE, TOKEN_NEWLINE, TOKEN_WIDE, TOKEN_HOSTILE};
    static const char *const help[] = {ATTACK, "  " ATTACK, NULL};
    const struct esp_choice choices[] = {{ATTACK, ATTACK}, {"b", "c"}};
    scene_open(&scene, 100, 30);
    scene_ready(&scene);
    struct esp_loaded *loaded = &scene.state.loaded;
    snprintf(loaded->target, sizeof loaded->target, "%s", ATTACK);
    snprintf(loaded->draft, sizeof loaded->draft, "%s", ATTACK);
    snprintf(loaded->backend, sizeof loaded->backend, "%.20s", ATTACK);
    scene_event(&scene, &(struct esp_event){
                            .type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = 4});
    for (int i = 0; i < 4; i++) {
        struct esp_iteration it = *scene_king(i);
        for (int node = 0; node < it.tree.count; node++)
            if (node % 2 == 1 || i == 3)
                it.tree.nodes[node].token = node % 4 == 1 ? TOKEN_NEWLINE : TOKEN_HOSTILE;
        it.bonus = TOKEN_HOSTILE;
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    }
    scene.ui.look.help = help;
    scene.ui.wish.focused = true;
    for (int size = 0; size < 4; size++) {
        static const int sizes[][2] = {{100, 30}, {200, 60}, {40, 12}, {24, 6}};
        CHECK(esp_canvas_resize(&scene.canvas, sizes[size][0], sizes[size][1]) == 0);
        for (int pane = 0; pane < ESP_PANES; pane++) {
            scene.ui.wish.current = pane;
            scene.ui.wish.zoomed = size % 2;
            scene.ui.look.grows_right = pane % 2;
            dump_safe(&scene, esp_panes[pane]->name);
            esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_UP, sizes[size][0], sizes[size][1]);
            dump_safe(&scene, esp_panes[pane]->name);
        }
        scene.ui.message = ATTACK;
        dump_safe(&scene, "a message");
        scene.ui.message = NULL;
        scene.ui.choices = choices;
        scene.ui.choice_count = 2;
        scene.ui.line = ATTACK;
        scene.ui.line_length = scene.ui.point = strlen(ATTACK);
        scene.ui.wish.focused = false;
        dump_safe(&scene, "the input line");
        scene.ui.choice_count = 0;
        scene.ui.help = true;
        dump_safe(&scene, "the help");
        scene.ui.help = false;
        esp_palette_open(&scene.ui.palette);
        esp_palette_add(&scene.ui.palette, ATTACK, ATTACK, ATTACK, NULL);
        snprintf(scene.ui.palette.query, sizeof scene.ui.palette.query, "%s", ATTACK);
        esp_palette_filter(&scene.ui.palette);
        dump_safe(&scene, "the palette");
        esp_palette_close(&scene.ui.palette);
        scene_phase(&scene, ESP_PHASE_LOADING, ATTACK, 0.5);
        dump_safe(&scene, "loading");
        scene_phase(&scene, ESP_PHASE_FAILED, ATTACK, 0);
        dump_safe(&scene, "an error");
        scene_phase(&scene, ESP_PHASE_GENERATING, "", 0);
    }
    scene_close(&scene);
}

TEST(every_size_can_be_drawn)
{
    struct scene scene;
    static struct esp_node nodes[200];
    static int32_t path[200];
    unsigned long long random = 3;
    telling(&scene, 1, 1);
    for (int round = 0; round < 1500; round++) {
        int width = 1 + (int)(check_uniform(&random) * (round % 3 ? 130 : 24));
        int height = 1 + (int)(check_uniform(&random) * (round % 3 ? 45 : 8));
        CHECK(esp_canvas_resize(&scene.canvas, width, height) == 0);
        scene.ui.wish.focused = round % 5 == 0;
        scene.ui.wish.current = round % ESP_PANES;
        scene.ui.wish.zoomed = round % 7 == 0;
        scene.ui.wish.stacked = round % 2;
        scene.ui.look.grows_right = round % 3 == 0;
        snprintf(scene.ui.look.search, sizeof scene.ui.look.search, "%s",
                 round % 6 ? "" : "\u6f22");
        scene.canvas.glyphs = round % 4 ? &esp_glyphs_full : &esp_glyphs_ascii;
        scene.canvas.ascii_text = round % 4 == 0;
        if (round % 10 == 0) {
            struct esp_iteration it;
            scene_random(&it, nodes, path, 1 + (int)(check_uniform(&random) * 199), &random);
            it.path_length = it.path_length > 3 ? 3 : it.path_length;
            scene_event(&scene,
                        &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
        }
        char *text = scene_dump(&scene, false);
        is_printable(text, round % 4 == 0);
        free(text);
    }
    scene_close(&scene);
}

/* Scrolling through the text and back never shows anything else than the text. */
TEST(the_text_can_be_scrolled)
{
    struct scene scene;
    telling(&scene, 80, 24);
    for (int i = 0; i < 60; i++)
        scene_iteration(&scene, i);
    char *end = scene_dump(&scene, false);
    for (int i = 0; i < 10; i++)
        CHECK(esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_PAGE_UP, 80, 24));
    CHECK(scene.ui.view[ESP_PANE_text].anchor == 0);
    char *start = scene_dump(&scene, false);
    CHECK(strstr(start, "Once upon a time") && !strstr(end, "Once upon a time"));
    scene_iteration(&scene, 60);
    char *later = scene_dump(&scene, false);
    CHECK(strstr(later, "Once upon a time"), "a scrolled view moves when text comes");
    for (int i = 0; i < 20; i++)
        esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_PAGE_DOWN, 80, 24);
    CHECK(scene.ui.view[ESP_PANE_text].anchor == -1);
    free(start);
    free(end);
    free(later);
    scene_close(&scene);
}

TEST(the_cursor_stays_in_the_input_line)
{
    struct scene scene;
    static char line[20000];
    telling(&scene, 80, 24);
    for (size_t length = 0; length + 3 < sizeof line; length += 3) {
        memcpy(line + length, "\u6f22", 3);
        if (length % 300)
            continue;
        scene.ui.line = line;
        scene.ui.line_length = length + 3;
        scene.ui.point = length;
        esp_ui_draw(&scene.canvas, &scene.ui, &scene.state);
        CHECK(scene.canvas.cursor_x >= 2 && scene.canvas.cursor_x < 80);
    }
    scene_close(&scene);
}

TEST(the_focus_goes_round)
{
    struct scene scene;
    telling(&scene, 120, 36);
    int seen = 0;
    for (int i = 0; i < ESP_PANES - 1; i++) {
        esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_NEXT_PANE, 120, 36);
        seen += scene.ui.wish.focused;
    }
    /* neither help nor, while nothing is compared, the pane for that */
    CHECK(seen == ESP_PANES - 2 && !scene.ui.wish.focused, "%d panes had the focus", seen);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_PREVIOUS_PANE, 120, 36);
    CHECK(scene.ui.wish.focused && scene.ui.wish.current != ESP_PANE_help);
    scene_close(&scene);
}
