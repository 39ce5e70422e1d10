/* Tests the cursor in the text. Keys and the mouse move it from token to token, and the other
 * panes follow it. The node pane shows the target's likeliest tokens at the cursor. Also tests
 * the branches pane and the colours of tokens. */
#include "tui/view/ui.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"
#include "tui/view/mouse.h"

/* Returns an iteration that records the target's four likeliest tokens for each committed
 * token. Three of the committed tokens have the ranks 1, 2 and 3. The last is not among the
 * four likeliest tokens. */
static const struct esp_iteration *scored(int index)
{
    static struct esp_token_score scores[4];
    static struct esp_iteration it;
    it = *scene_king(index);
    for (int i = 0; i < 4; i++) {
        const int32_t own = it.committed[i];
        scores[i] =
            (struct esp_token_score){.p = i == 3 ? 0.02f : 0.5f / (float)(1 << i),
                                     .entropy = 1.75f,
                                     .rank = i < 3 ? i + 1 : 0,
                                     .count = 4,
                                     .likely = {TOKEN_HE, TOKEN_SO, TOKEN_WAS, TOKEN_HAD},
                                     .likely_p = {0.5f, 0.25f, 0.125f, 0.06f}};
        if (i < 3)
            scores[i].likely[i] = own;
    }
    it.scores = scores;
    return &it;
}

static void open_scene(struct scene *scene, int width, int height)
{
    scene_open(scene, width, height);
    scene_ready(scene);
    scene->state.has_branches = true;
    esp_branches_open(&scene->state.branches);
    scene_prompt(scene);
    for (int i = 0; i < 5; i++)
        scene_event(scene,
                    &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = scored(i)});
    scene_phase(scene, ESP_PHASE_IDLE, "", 0);
    scene_focus(scene, ESP_PANE_text, false);
    for (int i = 0; i < scene->state.branches.count; i++)
        scene->state.branches.branch[i].created = 0;
}

TEST(other_panes_follow_the_cursor)
{
    struct scene scene;
    open_scene(&scene, 120, 36);
    struct esp_look *look = &scene.ui.look;
    const int count = scene.state.span_count;
    scene_act(&scene, ESP_ACTION_LEFT);
    CHECK(look->token == count - 1 && look->iteration == 4 && look->of_token);
    for (int i = 0; i < 5; i++)
        scene_act(&scene, ESP_ACTION_LEFT);
    CHECK(look->token == count - 6 && look->iteration == 3, "token %d, iteration %d",
          look->token, look->iteration);
    CHECK(look->node == 6, "the token at the cursor is node 6, not node %d", look->node);
    CHECK(look->likely == 2, "the list must mark the token that was written");
    scene_golden(&scene, "token_120x36");
    scene_act(&scene, ESP_ACTION_LEAVE_PANE);
    CHECK(look->token < 0 && look->iteration < 0,
          "Esc must return to the newest iteration");
    scene_close(&scene);
}

TEST(the_cursor_moves_by_words_lines_and_to_the_ends)
{
    struct scene scene;
    open_scene(&scene, 80, 24);
    struct esp_look *look = &scene.ui.look;
    scene_act(&scene, ESP_ACTION_UP);
    const int last = look->token;
    scene_act(&scene, ESP_ACTION_FIRST);
    CHECK(look->token == 0 && look->iteration < 0,
          "a token of the user must have no iteration");
    scene_act(&scene, ESP_ACTION_DOWN);
    const int below = look->token;
    CHECK(below > 0);
    scene_act(&scene, ESP_ACTION_UP);
    CHECK(look->token == 0);
    scene_act(&scene, ESP_ACTION_LAST);
    CHECK(look->token == last);
    scene_act(&scene, ESP_ACTION_PREVIOUS_WORD);
    CHECK(look->token < last);
    scene_act(&scene, ESP_ACTION_NEXT_WORD);
    CHECK(look->token == last);
    scene_act(&scene, ESP_ACTION_RIGHT);
    CHECK(look->token == last, "the cursor must stop at the end of the text");
    scene_close(&scene);
}

TEST(a_click_puts_the_cursor_and_the_wheel_only_scrolls)
{
    struct scene scene;
    open_scene(&scene, 80, 24);
    struct esp_look *look = &scene.ui.look;
    esp_ui_mouse(&scene.ui, &scene.state, (struct esp_mouse){64, 5, 3}, 80, 24);
    CHECK(look->token < 0, "the wheel must not move the cursor");
    esp_ui_mouse(&scene.ui, &scene.state, (struct esp_mouse){0, 2, 2}, 80, 24);
    CHECK(look->token == 0);
    esp_ui_mouse(&scene.ui, &scene.state, (struct esp_mouse){0, 20, 4}, 80, 24);
    const int token = look->token;
    CHECK(token > 0 && look->of_token && look->iteration >= 0);
    CHECK(scene.ui.layout.focused && scene.ui.layout.current == ESP_PANE_text);
    scene_close(&scene);
}

TEST(the_tokens_of_a_held_iteration_are_marked)
{
    struct scene scene;
    open_scene(&scene, 80, 24);
    char *before = scene_dump(&scene, true);
    esp_look_hold(&scene.ui.look, &scene.state, 2);
    char *held = scene_dump(&scene, true);
    const bool differ = strcmp(before, held) != 0;
    free(before);
    free(held);
    int cells = 0;
    for (int i = 0; i < scene.canvas.width * scene.canvas.height; i++)
        cells += scene.canvas.cells[i].style == ESP_STYLE_HELD;
    CHECK(differ && cells == (int)strlen(" the old king fell"), "%d cells are marked", cells);
    scene_close(&scene);
}

TEST(each_pane_has_the_branch_point_of_its_cursor)
{
    struct scene scene;
    struct esp_branch_point point;
    open_scene(&scene, 120, 36);
    const struct esp_layout layout = esp_ui_layout(&scene.ui, 120, 36);
    scene_act(&scene, ESP_ACTION_LEFT);
    scene_act(&scene, ESP_ACTION_LEFT);
    const int token = scene.ui.look.token;
    struct esp_shown shown = esp_ui_shown(&scene.ui, &scene.state, &layout, ESP_PANE_text);
    CHECK(esp_pane_text.point(&shown, &point));
    CHECK(point.place.length == token + 1 && point.count == 0 && !point.written);
    scene_focus(&scene, ESP_PANE_node, false);
    scene_act(&scene, ESP_ACTION_FIRST);
    scene_act(&scene, ESP_ACTION_DOWN);
    shown = esp_ui_shown(&scene.ui, &scene.state, &layout, ESP_PANE_node);
    CHECK(esp_pane_node.point(&shown, &point));
    CHECK(point.place.length == token && point.count == 1 && point.tokens[0] == TOKEN_SO);
    esp_look_hold(&scene.ui.look, &scene.state, 1);
    scene.ui.look.node = 10; /* a cut node below the path "the", "old", "king" */
    shown = esp_ui_shown(&scene.ui, &scene.state, &layout, ESP_PANE_tree);
    CHECK(esp_pane_tree.point(&shown, &point));
    CHECK(point.count == 4 && point.tokens[0] == TOKEN_THE && point.tokens[3] == TOKEN_HAD);
    CHECK(point.place.length == scene.state.span_count - 4 * 4, "before iteration 1 of 5");
    scene_close(&scene);
}

/* The text is shortened and continued differently. Then the pane must list all texts. */
TEST(the_branches_pane_lists_all_branches)
{
    struct scene scene;
    open_scene(&scene, 80, 24);
    const int count = scene.state.span_count;
    scene_event(&scene,
                &(struct esp_event){.type = ESP_EVENT_REWIND, .token_count = count - 6});
    struct esp_iteration it = *scored(5);
    static const int32_t other[] = {TOKEN_SO, TOKEN_WOMAN, TOKEN_HE};
    it.committed = other;
    it.committed_count = 3;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    CHECK(scene.state.branches.count == 2 && scene.state.branches.at.branch == 1);
    scene.state.branches.branch[1].created = 0;
    scene_focus(&scene, ESP_PANE_branches, false);
    scene_golden(&scene, "branches_80x24");
    scene_act(&scene, ESP_ACTION_UP);
    CHECK(scene.ui.look.branch == 0);
    strcpy(scene.state.branches.branch[0].name, "first");
    scene.state.branches.branch[0].marked = true;
    CHECK(esp_canvas_resize(&scene.canvas, 40, 12) == 0);
    scene_golden(&scene, "branches_40x12");
    scene_close(&scene);
}

TEST(tokens_are_coloured_by_the_targets_probabilities)
{
    static const int wanted[ESP_HEATS][4] = {
        [ESP_HEAT_SURPRISAL] = {1, 2, 2, 3}, /* for 1, 2, 3 and 5.6 bits */
        [ESP_HEAT_ENTROPY] = {2, 2, 2, 2},
        [ESP_HEAT_RANK] = {0, 1, 2, 4},
        [ESP_HEAT_ORIGIN] = {0, 0, 0, 2},
    };
    const struct esp_iteration *it = scored(0);
    for (int heat = 1; heat < ESP_HEATS; heat++)
        for (int i = 0; i < 4; i++) {
            const int kind = i < 3 ? ESP_TEXT_DRAFTED : ESP_TEXT_BONUS;
            CHECK(esp_heat_step(heat, kind, &it->scores[i]) == wanted[heat][i],
                  "heat %d, token %d: step %d", heat, i,
                  esp_heat_step(heat, kind, &it->scores[i]));
        }
    CHECK(esp_heat_step(ESP_HEAT_RANK, ESP_TEXT_PROMPT, &(struct esp_token_score){.p = 1}) ==
              -1,
          "a token without scores must have no colour");
    struct scene scene;
    open_scene(&scene, 80, 24);
    scene_act(&scene, ESP_ACTION_HEAT);
    scene_golden(&scene, "heat_80x24");
    int cells[ESP_HEAT_STEPS] = {0};
    for (int i = 0; i < 24 * 40; i++)
        for (int step = 0; step < ESP_HEAT_STEPS; step++)
            cells[step] += scene.canvas.cells[i].style == esp_heat_style(step);
    CHECK(cells[1] > 0 && cells[2] > 0 && cells[3] > 0);
    scene_close(&scene);
}
