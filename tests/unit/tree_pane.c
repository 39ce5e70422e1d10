/* Tests how the tree pane draws the tree: its cursor, step mode, and the layout that grows to
 * the right. */
#include "tui/view/ui.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"

/* While the cursor is in a tree, the pane must keep showing this tree although newer trees
 * arrive. The node pane must follow the cursor, and Esc must return to the newest tree. */
TEST(the_cursor_explains_nodes)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    while (scene.ui.layout.current != ESP_PANE_tree || !scene.ui.layout.focused)
        esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_NEXT_PANE, 120, 36);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_UP, 120, 36);
    CHECK(scene.ui.look.iteration == 6 && scene.ui.look.node == 6,
          "the first key must move the cursor to node 6, not to node %d", scene.ui.look.node);
    scene_iteration(&scene, 7);
    scene_golden(&scene, "held_120x36");
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_TOGGLE, 120, 36);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_ZOOM, 120, 36);
    scene_golden(&scene, "folded_120x36");
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_TOGGLE, 120, 36);
    const int nodes[] = {0, 1, 2, 3, 4, 5, 6, 8, 10};
    scene.ui.layout.current = ESP_PANE_node;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        scene.ui.look.node = nodes[i];
        free(scene_dump(&scene, false));
    }
    scene_golden(&scene, "node_120x36");
    scene.ui.layout.current = ESP_PANE_tree;
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_EARLIER, 120, 36);
    CHECK(scene.ui.look.iteration == 5);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEAVE_PANE, 120, 36);
    CHECK(scene.ui.look.iteration == -1 && scene.ui.layout.focused);
    esp_ui_act(&scene.ui, &scene.state, ESP_ACTION_LEAVE_PANE, 120, 36);
    CHECK(!scene.ui.layout.focused && !scene.ui.layout.zoomed);
    scene_close(&scene);
}

static void stop(struct scene *scene, int type, int stage, int nodes)
{
    struct esp_iteration it = *scene_king(2);
    struct esp_node early[11];
    memcpy(early, it.tree.nodes, sizeof early);
    if (type == ESP_EVENT_LAYER || stage < ESP_STAGE_SELECT) {
        for (int i = 0; i < 11; i++) /* before verification, only cut nodes have a verdict */
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

/* Checks the sentences of step mode after a draft pass and after each of the six stages. */
TEST(step_mode_explains_each_stage)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
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

TEST(a_tree_can_grow_to_the_right)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    scene_act(&scene, ESP_ACTION_TREE_LAYOUT);
    scene_golden(&scene, "right_80x24");
    CHECK(esp_canvas_resize(&scene.canvas, 120, 36) == 0);
    scene_golden(&scene, "right_120x36");
    scene_focus(&scene, ESP_PANE_tree, false);
    scene_act(&scene, ESP_ACTION_DOWN);
    CHECK(scene.ui.look.node == 9,
          "Down must go to the next node of the same depth, not to node %d",
          scene.ui.look.node);
    scene_act(&scene, ESP_ACTION_LEFT);
    scene_act(&scene, ESP_ACTION_LEFT);
    CHECK(scene.ui.look.node == 4, "Left must go to the parent, not to node %d",
          scene.ui.look.node);
    scene_act(&scene, ESP_ACTION_RIGHT);
    CHECK(scene.ui.look.node == 6, "Right must go to the accepted child, not to node %d",
          scene.ui.look.node);
    scene_act(&scene, ESP_ACTION_LEFT);
    scene_act(&scene, ESP_ACTION_TOGGLE);
    scene_golden(&scene, "right_folded_120x36");
    scene_act(&scene, ESP_ACTION_RIGHT);
    CHECK(scene.ui.look.node == 4 && !scene.ui.look.collapsed[4], "right unfolds first");
    CHECK(esp_canvas_resize(&scene.canvas, 200, 60) == 0);
    scene_golden(&scene, "right_200x60");
    scene_close(&scene);
}

TEST(a_tree_can_grow_to_the_right_in_plain_glyphs)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    scene.ui.look.grows_right = true;
    scene_focus(&scene, ESP_PANE_tree, true);
    scene.canvas.glyphs = &esp_glyphs_plain;
    scene_golden(&scene, "right_plain_80x24");
    scene.canvas.glyphs = &esp_glyphs_ascii;
    scene_golden(&scene, "right_ascii_80x24");
    scene_close(&scene);
}

/* In step mode, the tree must grow layer by layer. */
TEST(a_tree_grows_to_the_right_while_it_is_drafted)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
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

/* Tokens with wide or combining characters, and very long tokens, must fit in their columns. */
TEST(long_and_wide_tokens_are_shortened)
{
    struct scene scene;
    scene_telling(&scene, 100, 20);
    struct esp_iteration it = *scene_king(7);
    for (int i = 1; i < it.tree.count; i++)
        it.tree.nodes[i].token = i % 3 == 0   ? TOKEN_WIDE
                                 : i % 3 == 1 ? TOKEN_ONCE
                                              : TOKEN_HOSTILE;
    scene_event(&scene, &(struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &it});
    scene.ui.look.grows_right = true;
    scene_focus(&scene, ESP_PANE_tree, true);
    scene_golden(&scene, "right_wide_100x20");
    scene_act(&scene, ESP_ACTION_DOWN);
    scene_golden(&scene, "right_scrolled_100x20");
    scene_close(&scene);
}

/* In both layouts, the arrow keys must lead from any node to any other node. */
TEST(the_cursor_reaches_every_node)
{
    static struct esp_node nodes[60];
    static int32_t path[60];
    static const int actions[] = {ESP_ACTION_LEFT, ESP_ACTION_RIGHT, ESP_ACTION_UP,
                                  ESP_ACTION_DOWN};
    unsigned long long random = 21;
    struct scene scene;
    scene_telling(&scene, 120, 36);
    scene_focus(&scene, ESP_PANE_tree, true);
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
                scene_act(&scene, actions[a]);
                if (!seen[scene.ui.look.node])
                    queue[count++] = scene.ui.look.node;
                seen[scene.ui.look.node] = true;
            }
        CHECK(count == 40, "only %d of 40 nodes can be reached", count);
    }
    scene_close(&scene);
}
