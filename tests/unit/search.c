/* Tests the search in the text and in the tree. Matches must be found, visible and marked. */
#include "tui/view/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"

static struct esp_search_result look_for(struct scene *scene, const char *what, int step)
{
    struct esp_ui *ui = &scene->ui;
    if (what) {
        snprintf(ui->look.search, sizeof ui->look.search, "%s", what);
        ui->look.match = -1;
    }
    return esp_ui_find(ui, &scene->state, ui->layout.current, step, scene->canvas.width,
                       scene->canvas.height);
}

TEST(a_text_is_found_in_the_text)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    for (int i = 0; i < 80; i++)
        scene_iteration(&scene, i);
    for (int i = 0; i < 20; i++)
        scene_act(&scene, ESP_ACTION_PAGE_UP);
    scene_focus(&scene, ESP_PANE_text, false);
    struct esp_search_result found = look_for(&scene, "king fell", 1);
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

/* Returns whether a row of the body has at least `cells` adjacent cells with this style. The
 * body is below the header and the first title. */
static bool has_style(struct scene *scene, int style, int cells)
{
    char wanted[16] = "", *styles = scene_dump(scene, true);
    const char *body = strchr(strchr(styles, '\n') + 1, '\n');
    memset(wanted, style < 26 ? 'a' + style : 'A' + style - 26, (size_t)cells);
    bool has = body && strstr(body, wanted);
    free(styles);
    return has;
}

/* When a match is found, it must be visible and marked. Matches that are not selected have a
 * different mark. */
TEST(a_match_is_visible_and_marked)
{
    struct scene scene;
    scene_telling(&scene, 80, 24);
    for (int i = 0; i < 60; i++)
        scene_iteration(&scene, i);
    scene_focus(&scene, ESP_PANE_text, true);
    CHECK(!has_style(&scene, ESP_STYLE_SELECTION, 3) && !has_style(&scene, ESP_STYLE_MATCH, 3));
    CHECK(esp_style_attributes(ESP_STYLE_MATCH) != esp_style_attributes(ESP_STYLE_SELECTION) &&
          esp_style_attributes(ESP_STYLE_MATCH) != esp_style_attributes(ESP_STYLE_DRAFTED));
    int count = look_for(&scene, "old", 1).count;
    for (int i = 0; i < count; i++) {
        CHECK(look_for(&scene, NULL, 1).count == count);
        CHECK(has_style(&scene, ESP_STYLE_SELECTION, 3),
              "match %d of %d, at byte %ld, is not marked", i, count, scene.ui.look.match);
        CHECK(has_style(&scene, ESP_STYLE_MATCH, 3));
    }
    scene_close(&scene);
}

TEST(a_text_is_found_in_the_tree)
{
    struct scene scene;
    scene_telling(&scene, 120, 36);
    scene_focus(&scene, ESP_PANE_tree, false);
    struct esp_search_result found = look_for(&scene, "king", 1);
    CHECK(found.index == 1 && found.count == 2 && scene.ui.look.node == 6);
    CHECK(scene.ui.look.iteration == 6, "the tree pane keeps showing this iteration");
    scene_act(&scene, ESP_ACTION_LEFT); /* moves to " old" and folds it */
    scene_act(&scene, ESP_ACTION_TOGGLE);
    found = look_for(&scene, NULL, 1);
    CHECK(found.index == 1 && scene.ui.look.node == 6 && !scene.ui.look.collapsed[4],
          "a match must unfold the subtree that contains it");
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
