/* Tests the comparison pane: which iterations of the two sides it shows beside each other, what
 * it shows about these iterations, and what its keys do. */
#include "tui/model/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"

/* How many tokens the two sides commit in each iteration. Both sides start at token 2. At
 * tokens 2, 10 and 18, both sides begin an iteration. */
static const int firsts[] = {4, 4, 4, 4, 2}, seconds[] = {2, 3, 3, 4, 4, 4};

/* Fills an iteration with the next tokens of the text, which repeats " the old king fell". */
static void fill(struct esp_iteration *it, int32_t *committed, int index, int position,
                 int count)
{
    static const int32_t text[] = {TOKEN_THE, TOKEN_OLD, TOKEN_KING, TOKEN_FELL};
    *it = *scene_king(index);
    it->position = position;
    for (int i = 0; i < count; i++)
        committed[i] = text[(position - 2 + i) % 4];
    it->committed = committed;
    it->committed_count = count;
    it->path_length = count - 1;
    it->bonus = committed[count - 1];
}

/* Makes a chain of `count` - 1 accepted guesses and a rejected guess. */
static void chain(struct esp_iteration *it, struct esp_node *nodes, int32_t *path)
{
    int n = it->path_length;
    memcpy(nodes, it->tree.nodes, (size_t)(n + 2) * sizeof *nodes);
    for (int i = 0; i <= n + 1; i++) {
        nodes[i].parent = i - 1;
        nodes[i].depth = i;
        nodes[i].rank = 0;
        nodes[i].verdict = i > n ? ESP_REJECTED : i ? ESP_ACCEPTED : ESP_UNVISITED;
        nodes[i].token = i > n ? TOKEN_SAID : i ? it->committed[i - 1] : TOKEN_AND;
        path[i] = i + 1;
    }
    it->path = path;
    it->tree.nodes = nodes;
    it->tree.count = it->tree.verified = n + 2;
    it->deepest = n + 1;
    it->seconds[ESP_STAGE_VERIFY] = 0.0016;
}

static void both_write(struct scene *scene, int turns)
{
    struct esp_node nodes[8];
    int32_t committed[8], path[8];
    struct esp_iteration it;
    int place[2] = {2, 2}, at[2] = {0, 0};
    while (turns-- > 0) {
        bool second = place[1] < place[0];
        int count = second ? seconds[at[1]] : firsts[at[0]];
        fill(&it, committed, at[second], place[second], count);
        if (second) {
            chain(&it, nodes, path);
            scene_second(scene, &it);
        } else {
            scene_event(scene,
                        &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
        }
        place[second] += count;
        at[second]++;
    }
}

static void compared(struct scene *scene, int width, int height, int turns)
{
    scene_open(scene, width, height);
    scene_ready(scene);
    scene_compare(scene, "linear:K=3");
    scene->ui.message = "(keys)"; /* replaces the list of keys, which other tests check */
    scene_prompt(scene);
    both_write(scene, turns);
}

TEST(iterations_that_cover_the_same_token_are_paired)
{
    struct scene scene;
    compared(&scene, 80, 24, 9);
    const struct esp_state *state = &scene.state;
    const int first_at[] = {2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14};
    const int second_at[] = {2, 2, 4, 4, 4, 7, 7, 7, 10, 10, 10, 10, 14, 14, 14, 14};
    for (int place = 2; place < 18; place++) {
        struct esp_comparison both = esp_comparison_at(state, place);
        CHECK(both.it[0] && both.it[0]->position == first_at[place - 2], "at %d", place);
        CHECK(both.it[1] && both.it[1]->position == second_at[place - 2], "at %d", place);
        CHECK(both.same == (place == 2 || place == 10 || place == 14), "at %d", place);
    }
    CHECK(!esp_iteration_covering(state, 1) && !esp_iteration_covering(state, 18));
    CHECK(esp_comparison_newest(state).place == 14);
    CHECK(esp_comparison_step(state, 14, -1, true) == 10);
    CHECK(esp_comparison_step(state, 10, -1, true) == 2);
    CHECK(esp_comparison_step(state, 2, -1, true) == -1);
    CHECK(esp_comparison_step(state, 2, 1, false) == 4);
    CHECK(esp_comparison_step(state, 4, 1, false) == 6);
    CHECK(esp_comparison_step(state, 6, 1, true) == 10);
    CHECK(esp_comparison_step(state, 14, 1, false) == -1);
    scene_close(&scene);
}

TEST(overwritten_iterations_are_not_shown)
{
    struct scene scene;
    int32_t committed[8];
    struct esp_iteration it;
    compared(&scene, 80, 24, 9);
    fill(&it, committed, 9, 5, 4);
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    CHECK(esp_iteration_covering(&scene.state, 5)->index == 9 &&
          esp_iteration_covering(&scene.state, 8)->index == 9);
    CHECK(!esp_iteration_covering(&scene.state, 9),
          "an iteration of an earlier text must not be shown");
    CHECK(esp_iteration_covering(&scene.state, 4)->index == 0);
    scene_close(&scene);
}

TEST(totals_start_with_the_comparison_and_with_every_changed_setting)
{
    struct scene scene;
    scene_open(&scene, 80, 24);
    scene_ready(&scene);
    scene_prompt(&scene);
    for (int i = 0; i < 5; i++)
        scene_iteration(&scene, i);
    CHECK(scene.state.trace.since.iterations == 5);
    scene_compare(&scene, "linear");
    CHECK(scene.state.trace.since.iterations == 0);
    both_write(&scene, 9);
    CHECK(scene.state.trace.since.iterations == 4 && scene.state.trace.since.committed == 16);
    CHECK(scene.state.compared->trace.since.iterations == 5);
    CHECK(scene.state.compared->trace.since.committed == 16);
    CHECK(scene.state.trace.course.count == 9,
          "starting a comparison must not reset the statistics of the whole text");
    scene_phase(&scene, ESP_PHASE_WAITING, "", 0);
    both_write(&scene, 2);
    CHECK(scene.state.trace.since.iterations == 5 && scene.state.trace.timed.iterations == 4);
    CHECK(scene.state.compared->trace.since.iterations == 6);
    CHECK(scene.state.compared->trace.timed.iterations == 5,
          "iterations in step mode must not be timed");
    scene_event(&scene,
                &(struct esp_event){.type = ESP_EVENT_SETTING, .key = "drafter", .text = "ar"});
    CHECK(scene.state.trace.since.iterations == 0 &&
          scene.state.compared->trace.since.iterations == 0);
    scene_close(&scene);
}

TEST(the_pane_matches_its_golden_screens)
{
    struct scene scene;
    compared(&scene, 120, 36, 9);
    scene_golden(&scene, "compare_120x36");
    CHECK(esp_canvas_resize(&scene.canvas, 80, 24) == 0);
    scene_golden(&scene, "compare_80x24");
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "compare_ascii_80x24");
    scene.canvas.glyphs = &esp_glyphs_full;
    CHECK(esp_canvas_resize(&scene.canvas, 50, 32) == 0);
    scene_golden(&scene, "compare_50x32");
    CHECK(esp_canvas_resize(&scene.canvas, 40, 14) == 0);
    scene_golden(&scene, "compare_40x14");
    scene_close(&scene);
}

TEST(the_pane_is_useful_before_any_text)
{
    struct scene scene;
    scene_open(&scene, 80, 24);
    scene_ready(&scene);
    scene.ui.layout.focused = true;
    scene.ui.layout.current = ESP_PANE_compare;
    char *text = scene_dump(&scene, false);
    CHECK(strstr(text, ":compare ar"), "%s", text);
    free(text);
    scene.ui.layout.focused = false;
    scene_compare(&scene, "linear:K=3");
    scene_golden(&scene, "compare_begins_80x24");
    scene_compare(&scene, "");
    CHECK(!scene.state.compared && scene.ui.layout.current == ESP_PANE_text);
    scene_close(&scene);
}

TEST(step_mode_shows_whose_turn_it_is)
{
    struct scene scene;
    int32_t committed[8];
    struct esp_iteration it;
    compared(&scene, 120, 36, 9);
    scene.ui.stepping = true;
    scene_phase(&scene, ESP_PHASE_WAITING, "", 0);
    fill(&it, committed, 4, 18, 4);
    it.committed_count = it.path_length = 0;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_STAGE,
                                            .stage = ESP_STAGE_VERIFY,
                                            .iteration = &it});
    scene_golden(&scene, "compare_step_120x36");
    scene_close(&scene);
}

/* The keys must move the cursor forward and back from iteration to iteration. The other panes
 * must show the same iteration. */
TEST(keys_move_from_iteration_to_iteration)
{
    struct scene scene;
    struct esp_ui *ui = &scene.ui;
    compared(&scene, 80, 24, 9);
    esp_ui_act(ui, &scene.state, ESP_ACTION_NEXT_PANE, 80, 24);
    CHECK(ui->layout.focused && ui->layout.current == ESP_PANE_compare,
          "the comparison pane must get the focus first");
    esp_ui_act(ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    CHECK(ui->look.iteration == 2 && ui->view[ESP_PANE_compare].anchor == 10);
    esp_ui_act(ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    CHECK(ui->look.iteration == 1 && ui->view[ESP_PANE_compare].anchor == 7);
    scene_golden(&scene, "compare_held_80x24");
    esp_ui_act(ui, &scene.state, ESP_ACTION_PAGE_UP, 80, 24);
    CHECK(ui->look.iteration == 0 && ui->view[ESP_PANE_compare].anchor == 2);
    esp_ui_act(ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    CHECK(ui->look.iteration == 0, "the cursor must stay at the first iteration");
    both_write(&scene, 0);
    esp_ui_act(ui, &scene.state, ESP_ACTION_PAGE_DOWN, 80, 24);
    CHECK(ui->look.iteration == 2);
    esp_ui_act(ui, &scene.state, ESP_ACTION_LAST, 80, 24);
    CHECK(ui->look.iteration == -1 && ui->layout.focused);
    esp_ui_act(ui, &scene.state, ESP_ACTION_LEFT, 80, 24);
    esp_ui_act(ui, &scene.state, ESP_ACTION_LEAVE_PANE, 80, 24);
    CHECK(ui->look.iteration == -1 && ui->layout.focused,
          "the first Esc must return to the newest iteration");
    esp_ui_act(ui, &scene.state, ESP_ACTION_LEAVE_PANE, 80, 24);
    CHECK(!ui->layout.focused);
    esp_ui_act(ui, &scene.state, ESP_ACTION_NEXT_PANE, 80, 24);
    esp_ui_act(ui, &scene.state, ESP_ACTION_HIDE, 80, 24);
    CHECK(esp_ui_layout(ui, 80, 24).pane[ESP_PANE_compare].width == 0,
          "it must be possible to hide the comparison pane");
    CHECK(ui->layout.focused && ui->layout.current == ESP_PANE_text,
          "when a pane is hidden, the text pane must get the focus");
    esp_ui_act(ui, &scene.state, ESP_ACTION_LEAVE_PANE, 80, 24);
    CHECK(esp_ui_layout(ui, 80, 24).pane[ESP_PANE_tree].width > 0);
    scene_compare(&scene, "");
    scene_compare(&scene, "ar");
    CHECK(esp_ui_layout(ui, 80, 24).pane[ESP_PANE_compare].width > 0,
          "a new comparison must show the hidden pane again");
    scene_close(&scene);
}

TEST(every_size_can_be_drawn)
{
    struct scene scene;
    unsigned long long random = 5;
    compared(&scene, 80, 24, 9);
    for (int round = 0; round < 400; round++) {
        CHECK(esp_canvas_resize(&scene.canvas, 1 + (int)(check_uniform(&random) * 140),
                                1 + (int)(check_uniform(&random) * 50)) == 0);
        scene.ui.layout.focused = round % 3 == 0;
        scene.ui.layout.zoomed = round % 7 == 0;
        scene.ui.look.iteration = round % 6 - 1;
        scene.ui.view[ESP_PANE_compare].anchor = round % 25 - 1;
        scene.canvas.glyphs = round % 2 ? &esp_glyphs_full : &esp_glyphs_ascii;
        char *text = scene_dump(&scene, false);
        for (const char *c = text; *c; c++)
            CHECK((unsigned char)*c >= 0x20 || *c == '\n', "byte %02x", (unsigned char)*c);
        free(text);
    }
    scene_close(&scene);
}

/* The last iteration of a text drafts nothing. So the pane must show the trees of the previous
 * iterations. */
TEST(the_newest_tree_is_shown_unless_it_is_far_back)
{
    struct scene scene;
    int32_t committed[8];
    struct esp_iteration it;
    compared(&scene, 80, 24, 9);
    for (int i = 0; i < 12; i++) {
        fill(&it, committed, 10 + i, 18 + i, 1);
        it.tree.count = it.tree.verified = 1;
        scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
        scene_second(&scene, &it);
        int place = esp_comparison_newest(&scene.state).place;
        CHECK(place == (i < 7 ? 14 : 18 + i), "after %d without a tree: %d", i + 1, place);
    }
    scene_close(&scene);
}
