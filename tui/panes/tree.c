/* tree.c - the tree pane: the draft tree of an iteration, as rows (viz/tree_view.h).
 *
 * Without the focus it shows what fits, folding the rest. With the focus nothing is folded and the
 * arrow keys scroll; left and right look at earlier and later iterations.
 */
#include "pane.h"

#include <stdarg.h>
#include <string.h>

/* Appends a part of the title if there is room for all of it. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size,
                                                      const char *format, ...)
{
    char part[48];
    va_list args;
    va_start(args, format);
    vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (strlen(text) + strlen(part) < size)
        strcat(text, part);
}

static void title(const struct esp_state *state, const struct esp_look *look, char *text,
                  size_t size)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, look->back, &stages);
    snprintf(text, size, "tree");
    if (!it)
        return;
    int seen = it->tree.verified > 0 ? it->tree.verified - 1 : 0;
    int cut = stages > ESP_STAGE_FLATTEN ? it->tree.count - 1 - seen : 0;
    add(text, size, "   iter %d", it->index);
    if (stages > ESP_STAGE_SELECT)
        add(text, size, ", %d of %d accepted", it->path_length, seen);
    else
        add(text, size, ", %d nodes", it->tree.count - 1);
    if (cut > 0)
        add(text, size, ", %d cut", cut);
    add(text, size, ", depth %d", it->deepest);
    add(text, size, ", %d draft pass%s", it->draft_passes, it->draft_passes == 1 ? "" : "es");
}

static int first_row(const struct esp_tree_rows *rows, const struct esp_pane_view *view, int height)
{
    int most = rows->count > height ? rows->count - height : 0;
    int first = view->focused ? view->scroll : rows->path_end + 3 - height;
    return first < 0 ? 0 : first > most ? most : first;
}

static void draw(struct esp_canvas *canvas, const struct esp_state *state,
                 const struct esp_look *look, const struct esp_pane_view *view)
{
    int stages, height = canvas->view.rect.height;
    const struct esp_iteration *it = esp_state_iteration(state, look->back, &stages);
    struct esp_tree_rows rows;
    if (!it || it->tree.count == 0) {
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "Draft trees are drawn here.");
        return;
    }
    if (esp_tree_rows_build(&rows, it, stages, view->focused ? 0 : height, NULL) < 0)
        return;
    struct esp_tree_look tree_look = {.tokens = state->tokens,
                                      .stages = stages,
                                      .first = first_row(&rows, view, height),
                                      .cursor = -1};
    esp_tree_rows_draw(canvas, &rows, it, &tree_look);
    esp_tree_rows_free(&rows);
}

static bool request(struct esp_pane_view *view, struct esp_look *look,
                    const struct esp_state *state, int action, int width, int height)
{
    (void)width;
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, look->back, &stages);
    struct esp_tree_rows rows = {.count = 0};
    if (it && esp_tree_rows_build(&rows, it, stages, 0, NULL) < 0)
        return false;
    int most = rows.count > height ? rows.count - height : 0, scroll = view->scroll;
    esp_tree_rows_free(&rows);
    switch (action) {
    case ESP_ACTION_UP:
        scroll--;
        break;
    case ESP_ACTION_DOWN:
        scroll++;
        break;
    case ESP_ACTION_PAGE_UP:
        scroll -= height - 1;
        break;
    case ESP_ACTION_PAGE_DOWN:
        scroll += height - 1;
        break;
    case ESP_ACTION_FIRST:
        scroll = 0;
        break;
    case ESP_ACTION_LAST:
        scroll = most;
        break;
    case ESP_ACTION_LEFT:
        look->back += esp_state_iteration(state, look->back + 1, &stages) != NULL;
        break;
    case ESP_ACTION_RIGHT:
        look->back -= look->back > 0;
        break;
    default:
        return false;
    }
    view->scroll = scroll < 0 ? 0 : scroll > most ? most : scroll;
    return true;
}

const struct esp_pane_ops esp_pane_tree = {
    .name = "tree",
    .summary = "the draft tree of an iteration: what was guessed, accepted, rejected and cut",
    .title = title,
    .draw = draw,
    .request = request,
};
