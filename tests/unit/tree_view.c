/* Tests which rows of a tree are shown. Parents must come before their children, the accepted
 * path must always be shown, and every node must be counted as shown or as hidden. */
#include "viz/tree_view.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/scene.h"

enum { MOST_NODES = 300 };

static int build(struct esp_tree_rows *rows, const struct esp_iteration *it, int stages,
                 int most, const bool *collapsed)
{
    const struct esp_tree_choice choice = {
        .stages = stages, .most = most, .collapsed = collapsed};
    return esp_tree_rows_build(rows, it, &choice);
}

static void is_sound(const struct esp_tree_rows *rows, const struct esp_iteration *it, int most)
{
    int nodes = 0, hidden = 0, least = 2 + 2 * (it->path_length + 1);
    bool shown[MOST_NODES] = {false};
    for (int i = 0; i < rows->count; i++) {
        const struct esp_tree_row *row = &rows->row[i];
        CHECK(row->parent_row < i && (row->parent_row >= 0) == (i > 0));
        if (row->kind == ESP_ROW_NODE) {
            CHECK(i == 0 ||
                  rows->row[row->parent_row].node == it->tree.nodes[row->node].parent);
            CHECK(!shown[row->node] && row->depth == it->tree.nodes[row->node].depth);
            shown[row->node] = true;
            nodes++;
        } else if (row->kind == ESP_ROW_FOLD) {
            CHECK(row->hidden > 0 && row->cut <= row->hidden && row->last);
            hidden += row->hidden;
        }
    }
    CHECK(nodes + hidden == it->tree.count, "%d shown, %d hidden of %d", nodes, hidden,
          it->tree.count);
    for (int i = 0; i < it->path_length; i++)
        CHECK(shown[it->path[i]], "node %d of the path is not shown", it->path[i]);
    CHECK(most == 0 || rows->count <= (most > least ? most : least), "%d rows of %d",
          rows->count, most);
    if (it->path_length > 0)
        CHECK(rows->row[rows->path_end].node == it->path[it->path_length - 1]);
}

TEST(rows_of_random_trees_are_consistent)
{
    static struct esp_node nodes[MOST_NODES];
    static int32_t path[MOST_NODES];
    unsigned long long random = 7;
    for (int round = 0; round < 400; round++) {
        struct esp_iteration it;
        struct esp_tree_rows rows;
        int count = 1 + (int)(check_uniform(&random) * (MOST_NODES - 1));
        int most = (int)(check_uniform(&random) * 60);
        scene_random(&it, nodes, path, count, &random);
        CHECK(build(&rows, &it, ESP_STAGES, most, NULL) == 0);
        is_sound(&rows, &it, most);
        if (most == 0)
            CHECK(rows.count == count + 1, "%d rows for %d nodes and the bonus token",
                  rows.count, count);
        esp_tree_rows_free(&rows);
    }
}

TEST(a_tree_that_fits_is_shown_whole)
{
    struct esp_tree_rows rows;
    const struct esp_iteration *it = scene_king(3);
    CHECK(build(&rows, it, ESP_STAGES, 12, NULL) == 0);
    CHECK(rows.count == 12, "%d rows", rows.count);
    esp_tree_rows_free(&rows);
    CHECK(build(&rows, it, ESP_STAGES, 11, NULL) == 0);
    CHECK(rows.count <= 11, "%d rows", rows.count);
    is_sound(&rows, it, 11);
    esp_tree_rows_free(&rows);
}

TEST(before_selection_there_is_no_bonus_row)
{
    struct esp_tree_rows rows;
    const struct esp_iteration *it = scene_king(0);
    CHECK(build(&rows, it, ESP_STAGE_SELECT, 0, NULL) == 0);
    CHECK(rows.count == 11);
    esp_tree_rows_free(&rows);
}

TEST(new_nodes_come_first)
{
    struct esp_tree_rows rows;
    const struct esp_iteration *it = scene_king(0);
    const struct esp_tree_choice choice = {.most = 10, .new_depth = 4};
    CHECK(esp_tree_rows_build(&rows, it, &choice) == 0);
    int new = 0;
    for (int i = 0; i < rows.count; i++)
        new += rows.row[i].kind == ESP_ROW_NODE &&rows.row[i].depth == 4;
    CHECK(new == 3, "only %d of the 3 new nodes are shown", new);
    esp_tree_rows_free(&rows);
}

TEST(collapsed_nodes_hide_what_is_below)
{
    struct esp_tree_rows rows;
    bool collapsed[11] = {[1] = true};
    const struct esp_iteration *it = scene_king(0);
    CHECK(build(&rows, it, ESP_STAGES, 0, collapsed) == 0);
    int hidden = 0;
    for (int i = 0; i < rows.count; i++)
        hidden += rows.row[i].hidden;
    CHECK(hidden == 7, "%d hidden", hidden);
    esp_tree_rows_free(&rows);
}

TEST(the_target_s_choice_is_known_on_the_path_only)
{
    const struct esp_iteration *it = scene_king(0);
    CHECK(esp_target_choice(it, 0) == TOKEN_THE);
    CHECK(esp_target_choice(it, 4) == TOKEN_KING);
    CHECK(esp_target_choice(it, 6) == TOKEN_FELL);
    CHECK(esp_target_choice(it, 2) == -1);
}

TEST(an_empty_tree_has_no_rows)
{
    struct esp_iteration it = {.index = 0};
    struct esp_tree_rows rows;
    CHECK(build(&rows, &it, ESP_STAGES, 10, NULL) == 0 && rows.count == 0);
    esp_tree_rows_free(&rows);
}
