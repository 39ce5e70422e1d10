/* tree.c - the tree pane: the draft tree of an iteration, as rows (viz/tree_view.h).
 *
 * As long as it follows the newest iteration it shows what fits, folding the rest. Moving the
 * cursor holds the iteration: it stays while others come, nothing is folded but what the user
 * folds, and the node inspector shows the node at the cursor.
 */
#include "pane.h"

#include <stdarg.h>
#include <string.h>

#include "explain.h"
#include "wrap.h"

/* Is it the iteration that step mode has stopped in? */
static bool is_partial(const struct esp_state *state, const struct esp_iteration *it)
{
    return it == &state->partial.it;
}

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
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    snprintf(text, size, "tree");
    if (!it)
        return;
    int seen = it->tree.verified > 0 ? it->tree.verified - 1 : 0;
    int cut = stages > ESP_STAGE_FLATTEN ? it->tree.count - 1 - seen : 0;
    add(text, size, "   iter %d%s", it->index, look->iteration == it->index ? " (held)" : "");
    if (is_partial(state, it) && state->partial_type == ESP_EVENT_LAYER)
        add(text, size, ": %s, pass %d", esp_stage_name(ESP_STAGE_DRAFT), it->draft_passes);
    else if (is_partial(state, it))
        add(text, size, ": %s", esp_stage_name(stages - 1));
    if (stages > ESP_STAGE_SELECT)
        add(text, size, ", %d of %d accepted", it->path_length, seen);
    else
        add(text, size, ", %d nodes", it->tree.count - 1);
    if (cut > 0)
        add(text, size, ", %d cut", cut);
    if (it->deepest > 0)
        add(text, size, ", depth %d", it->deepest);
    if (stages > 0)
        add(text, size, ", %d draft pass%s", it->draft_passes,
            it->draft_passes == 1 ? "" : "es");
}

static int deepest(const struct esp_iteration *it)
{
    int depth = 0;
    for (int i = 0; i < it->tree.count; i++)
        depth = it->tree.nodes[i].depth > depth ? it->tree.nodes[i].depth : depth;
    return depth;
}

/* The depth of the nodes that the last draft pass added, while step mode shows it; else 0. */
static int new_depth(const struct esp_state *state, const struct esp_iteration *it)
{
    bool layer = is_partial(state, it) && state->partial_type == ESP_EVENT_LAYER;
    return layer ? deepest(it) : 0;
}

/* The rows to show; those of a held tree are not folded to fit. */
static int build(struct esp_tree_rows *rows, const struct esp_state *state,
                 const struct esp_iteration *it, int stages, const struct esp_look *look,
                 int height)
{
    bool held = look->iteration >= 0;
    struct esp_tree_choice choice = {.stages = stages,
                                     .most = held ? 0 : height,
                                     .new_depth = new_depth(state, it)};
    if (held && it->tree.count <= ESP_MAX_NODES + 1)
        choice.collapsed = look->collapsed;
    return esp_tree_rows_build(rows, it, &choice);
}

static int cursor_row(const struct esp_tree_rows *rows, const struct esp_look *look)
{
    for (int i = 0; look->iteration >= 0 && i < rows->count; i++)
        if (rows->row[i].kind == ESP_ROW_NODE && rows->row[i].node == look->node)
            return i;
    return -1;
}

/* The cursor, or the end of the accepted path, stands in the middle where it can. */
static int first_row(const struct esp_tree_rows *rows, int cursor, int height)
{
    int most = rows->count > height ? rows->count - height : 0;
    int first = cursor >= 0 ? cursor - height / 2 : rows->path_end + 3 - height;
    return first < 0 ? 0 : first > most ? most : first;
}

/* In step mode: what just happened, at the foot of the pane. Returns the rows left for the
 * tree. */
static int draw_sentences(struct esp_canvas *canvas, const struct esp_state *state,
                          const struct esp_iteration *it, int stages)
{
    enum { LEAST_TREE = 4 };
    char text[768];
    int height = canvas->view.rect.height;
    esp_explain_stop(text, sizeof text, it, state->partial_type, stages, &state->tokens);
    int lines = esp_paragraph_height(text, canvas->view.rect.width);
    if (height - lines - 1 < LEAST_TREE)
        return height;
    esp_draw_paragraph(canvas, height - lines, ESP_STYLE_WARN, text);
    return height - lines - 1;
}

static void draw(struct esp_canvas *canvas, const struct esp_state *state,
                 const struct esp_look *look, const struct esp_pane_view *view)
{
    int stages, height = canvas->view.rect.height;
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    struct esp_tree_rows rows;
    (void)view;
    if (!it || it->tree.count == 0) {
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "Draft trees are drawn here.");
        return;
    }
    struct esp_tree_look tree_look = {.tokens = state->tokens, .stages = stages};
    if (is_partial(state, it)) {
        height = draw_sentences(canvas, state, it, stages);
        tree_look.new_depth = new_depth(state, it);
        tree_look.numbered = stages == ESP_STAGE_FLATTEN + 1 || stages == ESP_STAGE_VERIFY + 1;
    }
    if (build(&rows, state, it, stages, look, height) < 0)
        return;
    tree_look.cursor = cursor_row(&rows, look);
    tree_look.first = first_row(&rows, tree_look.cursor, height);
    struct esp_view whole = esp_canvas_enter(
        canvas, (struct esp_rect){0, 0, canvas->view.rect.width, height});
    esp_tree_rows_draw(canvas, &rows, it, &tree_look);
    esp_canvas_leave(canvas, whole);
    esp_tree_rows_free(&rows);
}

/* Moves the cursor by rows that are nodes. */
static void move(struct esp_look *look, const struct esp_tree_rows *rows, int steps)
{
    int at = cursor_row(rows, look), last = at;
    for (int i = at < 0 ? 0 : at; steps != 0 && i >= 0 && i < rows->count;) {
        i += steps > 0 ? 1 : -1;
        if (i < 0 || i >= rows->count)
            break;
        if (rows->row[i].kind != ESP_ROW_NODE)
            continue;
        last = i;
        steps += steps > 0 ? -1 : 1;
    }
    look->node = last >= 0 ? rows->row[last].node : 0;
}

static void move_cursor(struct esp_look *look, const struct esp_state *state,
                        const struct esp_iteration *it, int stages, int action, int height)
{
    struct esp_tree_rows rows;
    if (build(&rows, state, it, stages, look, height) < 0)
        return;
    switch (action) {
    case ESP_ACTION_UP:
        move(look, &rows, -1);
        break;
    case ESP_ACTION_DOWN:
        move(look, &rows, 1);
        break;
    case ESP_ACTION_PAGE_UP:
        move(look, &rows, 1 - height);
        break;
    case ESP_ACTION_PAGE_DOWN:
        move(look, &rows, height - 1);
        break;
    case ESP_ACTION_FIRST:
        look->node = 0;
        break;
    case ESP_ACTION_LAST:
        move(look, &rows, rows.count);
        break;
    default: /* ESP_ACTION_TOGGLE */
        if (look->node >= 0 && look->node <= ESP_MAX_NODES)
            look->collapsed[look->node] = !look->collapsed[look->node];
        break;
    }
    esp_tree_rows_free(&rows);
}

static bool request(struct esp_pane_view *view, struct esp_look *look,
                    const struct esp_state *state, int action, int width, int height)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    (void)view;
    (void)width;
    if (!it || it->tree.count == 0)
        return false;
    switch (action) {
    case ESP_ACTION_LEFT:
    case ESP_ACTION_RIGHT:
        esp_look_step(look, state, action == ESP_ACTION_LEFT ? -1 : 1);
        return true;
    case ESP_ACTION_UP:
    case ESP_ACTION_DOWN:
    case ESP_ACTION_PAGE_UP:
    case ESP_ACTION_PAGE_DOWN:
    case ESP_ACTION_FIRST:
    case ESP_ACTION_LAST:
    case ESP_ACTION_TOGGLE:
        if (look->iteration < 0)
            esp_look_hold(look, state, it->index); /* the first key only shows the cursor */
        else
            move_cursor(look, state, it, stages, action, height);
        return true;
    case ESP_ACTION_LEAVE_PANE:
        if (look->iteration < 0)
            return false;
        esp_look_hold(look, state, -1);
        return true;
    default:
        return false;
    }
}

const struct esp_pane_ops esp_pane_tree = {
    .name = "tree",
    .summary = "the draft tree of an iteration: what was guessed, accepted, rejected and cut",
    .title = title,
    .draw = draw,
    .request = request,
};
