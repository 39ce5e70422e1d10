/* tree.c - the tree pane shows the draft tree of an iteration, either as indented rows
 * (viz/tree_view.h) or growing to the right (viz/tree_right.h).
 *
 * While the pane follows the newest iteration, it shows as much of the tree as fits, and folds
 * the other nodes. When the user moves the cursor, the iteration is held. Then the pane keeps
 * showing it while new iterations run, and only the user folds nodes. The node pane shows the
 * node at the cursor.
 */
#include "tui/view/pane.h"

#include <stdarg.h>
#include <string.h>

#include "viz/explain.h"
#include "viz/say.h"
#include "viz/tree_right.h"
#include "viz/wrap.h"

/* Returns whether step mode has stopped within the shown iteration. */
static bool is_partial(const struct esp_shown *s)
{
    return s->it == &s->state->partial.it;
}

/* Appends a part of the title if it fits. */
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

static void title(const struct esp_shown *s, char *text, size_t size)
{
    snprintf(text, size, "tree");
    if (!s->it)
        return;
    int seen = s->it->tree.verified > 0 ? s->it->tree.verified - 1 : 0;
    int cut = s->stages > ESP_STAGE_FLATTEN ? s->it->tree.count - 1 - seen : 0;
    add(text, size, "   iter %d%s", s->it->index,
        s->look->iteration == s->it->index ? " (held)" : "");
    if (is_partial(s) && s->state->partial_type == ESP_EVENT_LAYER)
        add(text, size, ": %s, pass %d", esp_stage_name(ESP_STAGE_DRAFT), s->it->draft_passes);
    else if (is_partial(s))
        add(text, size, ": %s", esp_stage_name(s->stages - 1));
    if (s->stages > ESP_STAGE_DRAFT && s->it->tree.count == 1) {
        add(text, size, ", nothing drafted");
        return;
    }
    if (s->stages > ESP_STAGE_SELECT)
        add(text, size, ", %d of %d accepted", s->it->path_length, seen);
    else
        add(text, size, ", %d nodes", s->it->tree.count - 1);
    if (cut > 0)
        add(text, size, ", %d cut", cut);
    if (s->it->deepest > 0)
        add(text, size, ", depth %d", s->it->deepest);
    if (s->stages > 0)
        add(text, size, ", %d draft pass%s", s->it->draft_passes,
            s->it->draft_passes == 1 ? "" : "es");
}

static int deepest(const struct esp_iteration *it)
{
    int depth = 0;
    for (int i = 0; i < it->tree.count; i++)
        depth = it->tree.nodes[i].depth > depth ? it->tree.nodes[i].depth : depth;
    return depth;
}

/* If step mode shows a draft pass, returns the depth of the nodes that this pass added.
 * Otherwise returns 0. */
static int new_depth(const struct esp_shown *s)
{
    bool layer = is_partial(s) && s->state->partial_type == ESP_EVENT_LAYER;
    return layer ? deepest(s->it) : 0;
}

/* Holds a tree that is ready to be drawn: its rows and, if the tree grows to the right, the
 * positions of these rows. */
struct shown_tree {
    struct esp_tree_rows rows;
    struct esp_tree_right right;
    struct esp_tree_look look;
    bool grows_right;
};

static void free_drawing(struct shown_tree *d)
{
    esp_tree_right_free(&d->right);
    esp_tree_rows_free(&d->rows);
}

static int build(struct shown_tree *d, const struct esp_iteration *it,
                 const struct esp_tree_choice *choice, int width, bool ascii)
{
    int status = esp_tree_rows_build(&d->rows, it, choice);
    if (status == 0 && d->grows_right)
        status = esp_tree_right_place(&d->right, &d->rows, it, &d->look, width, ascii);
    if (status < 0)
        free_drawing(d);
    return status;
}

/* Builds a tree that grows to the right, with as many rows as fit. Several rows of the tree can
 * share a row of the screen. Therefore the number of rows that fit is found by bisection. */
static int fit(struct shown_tree *d, const struct esp_iteration *it,
               struct esp_tree_choice *choice, int width, int height, bool ascii)
{
    choice->most = 0;
    int status = build(d, it, choice, width, ascii);
    int least = height, most = d->rows.count; /* `least` rows fit, `most` do not */
    if (status < 0 || d->right.height <= height)
        return status;
    while (most - least > 1) {
        choice->most = least + (most - least) / 2;
        free_drawing(d);
        if ((status = build(d, it, choice, width, ascii)) < 0)
            return status;
        if (d->right.height <= height)
            least = choice->most;
        else
            most = choice->most;
    }
    choice->most = least;
    free_drawing(d);
    return build(d, it, choice, width, ascii);
}

static int cursor_row(const struct esp_tree_rows *rows, const struct esp_look *look)
{
    for (int i = 0; look->iteration >= 0 && i < rows->count; i++)
        if (rows->row[i].kind == ESP_ROW_NODE && rows->row[i].node == look->node)
            return i;
    return -1;
}

/* Prepares the drawing of an iteration. Folds the tree until it fits, unless the iteration is
 * held. */
static int open_drawing(struct shown_tree *d, const struct esp_shown *s, int width, int height,
                        bool ascii)
{
    bool held = s->look->iteration >= 0;
    struct esp_tree_choice choice = {
        .stages = s->stages, .most = held ? 0 : height, .new_depth = new_depth(s)};
    *d = (struct shown_tree){.grows_right = s->look->grows_right,
                             .look = {.tokens = s->state->tokens,
                                      .stages = s->stages,
                                      .new_depth = choice.new_depth,
                                      .search = s->look->search}};
    if (held && s->it->tree.count <= ESP_MAX_NODES + 1)
        choice.collapsed = s->look->collapsed;
    if (is_partial(s))
        d->look.numbered =
            s->stages == ESP_STAGE_FLATTEN + 1 || s->stages == ESP_STAGE_VERIFY + 1;
    int status = held || !s->look->grows_right ? build(d, s->it, &choice, width, ascii)
                                               : fit(d, s->it, &choice, width, height, ascii);
    if (status == 0)
        d->look.cursor = cursor_row(&d->rows, s->look);
    return status;
}

/* Returns the first row to draw. The row of the cursor is in the middle. Without a cursor, the
 * end of the accepted path is near the bottom. */
static int first_row(const struct esp_tree_rows *rows, int cursor, int height)
{
    int most = rows->count > height ? rows->count - height : 0;
    int first = cursor >= 0 ? cursor - height / 2 : rows->path_end + 3 - height;
    return first < 0 ? 0 : first > most ? most : first;
}

/* Returns the row that must be visible. This is the row of the cursor. Without a cursor it is a
 * row of the newest layer, the row of the bonus token, or the end of the accepted path. */
static int telling_row(const struct shown_tree *d)
{
    int row = d->look.cursor >= 0 ? d->look.cursor : d->rows.path_end;
    for (int i = 0; d->look.cursor < 0 && i < d->rows.count; i++)
        if (d->rows.row[i].kind == ESP_ROW_BONUS ||
            (d->look.new_depth > 0 && d->rows.row[i].depth == d->look.new_depth))
            return i;
    return row;
}

/* Returns where a view of length `size` starts in a drawing of length `whole`, so that
 * positions `from` to `to` are visible. */
static int start_of(int from, int to, int size, int whole)
{
    int start = whole <= size ? 0 : (from + to - size) / 2;
    start = start > whole - size ? whole - size : start;
    return start < 0 ? 0 : start;
}

/* Returns the number of nodes up to a row. If `row` is -1, returns the number in all rows. */
static int nodes_to(const struct esp_tree_rows *rows, int row)
{
    int count = 0;
    for (int i = 0; i < rows->count && (row < 0 || i <= row); i++)
        count += rows->row[i].kind == ESP_ROW_NODE;
    return count;
}

/* Returns whether the last `columns` columns of a row are empty. */
static bool is_free(const struct esp_canvas *canvas, int y, int columns)
{
    const struct esp_rect *rect = &canvas->view.rect;
    for (int x = rect->width - columns; x < rect->width; x++) {
        const int at_x = rect->x + x, at_y = rect->y + y;
        if (at_x < 0 || at_x >= canvas->width || at_y < 0 || at_y >= canvas->height ||
            strcmp(esp_cell_text(canvas, &canvas->cells[at_y * canvas->width + at_x]), " ") !=
                0)
            return false;
    }
    return true;
}

/* Draws the scroll position at the right end of the first and last rows. The first row shows
 * the number of the cursor's node and how many rows are above. The last row shows how many rows
 * are below, and whether there is more to the left or right. If only the first row has no room,
 * the last row shows everything. */
static void draw_place(struct esp_canvas *canvas, const struct shown_tree *d, int x, int y)
{
    const int width = canvas->view.rect.width, height = canvas->view.rect.height;
    const int rows = d->grows_right ? d->right.height : d->rows.count;
    const int below = rows - y - height;
    const char *const *more = canvas->glyphs->more;
    char first[64] = "", last[64] = "", *in = height > 1 ? last : first;
    enum { ROOM = 12 };
    if (d->look.cursor >= 0)
        esp_say(first, sizeof first, " %d/%d", nodes_to(&d->rows, d->look.cursor),
                nodes_to(&d->rows, -1));
    if (y > 0)
        esp_say(first, sizeof first, " %s %d", more[0], y);
    if (height > 1 && !is_free(canvas, 0, ROOM) && is_free(canvas, height - 1, ROOM)) {
        memcpy(last, first, sizeof last);
        first[0] = '\0';
    }
    if (x > 0)
        esp_say(in, sizeof last, " %s", more[2]);
    if (below > 0)
        esp_say(in, sizeof last, " %s %d", more[1], below);
    if (d->grows_right && d->right.width > x + width)
        esp_say(in, sizeof last, " %s", more[3]);
    esp_draw_right(canvas, width, 0, ESP_STYLE_LABEL, first);
    esp_draw_right(canvas, width, height - 1, ESP_STYLE_LABEL, last);
}

static void draw_tree(struct esp_canvas *canvas, struct shown_tree *d,
                      const struct esp_iteration *it)
{
    int width = canvas->view.rect.width, height = canvas->view.rect.height;
    if (!d->grows_right) {
        d->look.first = first_row(&d->rows, d->look.cursor, height);
        esp_tree_rows_draw(canvas, &d->rows, it, &d->look);
        draw_place(canvas, d, 0, d->look.first);
        return;
    }
    const struct esp_tidy_box *box = &d->right.box[telling_row(d)];
    const int x = start_of(box->x, box->x + box->width, width, d->right.width);
    const int y = start_of(box->y, box->y + 1, height, d->right.height);
    esp_tree_right_draw(canvas, &d->right, &d->rows, it, &d->look, x, y);
    draw_place(canvas, d, x, y);
}

/* Writes the sentences for the bottom of the pane. In step mode they are about the last stage.
 * Otherwise they are about the node at the cursor, if no node pane shows it. Returns the number
 * of rows that are left for the tree. If there is no room for sentences, this is `height`. */
static int tree_height(const struct esp_shown *s, int width, int height, char *text,
                       size_t size)
{
    enum { LEAST_TREE = 4 };
    *text = '\0';
    if (is_partial(s)) {
        esp_explain_stop(text, size, s->it, s->state->partial_type, s->stages,
                         &s->state->tokens);
    } else if (s->look->explains && s->look->iteration == s->it->index && s->look->node >= 0 &&
               s->look->node < s->it->tree.count) {
        char quoted[48];
        esp_explain_node(text, size, s->it, s->stages, s->look->node, &s->state->tokens);
        const size_t used = strlen(text);
        esp_quote_token(quoted, &s->state->tokens, s->it->tree.nodes[s->look->node].token);
        if (used + strlen(quoted) + 2 < size) {
            memmove(text + strlen(quoted) + 1, text, used + 1);
            memcpy(text, quoted, strlen(quoted));
            text[strlen(quoted)] = ' ';
        }
    } else {
        return height;
    }
    int left = height - esp_paragraph_height(text, width) - 1;
    return left < LEAST_TREE ? height : left;
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    int width = canvas->view.rect.width;
    struct shown_tree d;
    char sentences[768];
    if (!s->it || s->it->tree.count == 0) {
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "Draft trees are drawn here.");
        return;
    }
    int height = tree_height(s, width, canvas->view.rect.height, sentences, sizeof sentences);
    if (height < canvas->view.rect.height)
        esp_draw_paragraph(canvas, height + 1, ESP_STYLE_WARN, sentences);
    if (open_drawing(&d, s, width, height, canvas->ascii_text) < 0)
        return;
    struct esp_view whole = esp_canvas_enter(canvas, (struct esp_rect){0, 0, width, height});
    draw_tree(canvas, &d, s->it);
    esp_canvas_leave(canvas, whole);
    free_drawing(&d);
}

/* ------------------------------------------------------------------ the cursor */

/* Returns the row of the node that is `steps` nodes below, or above if `steps` is negative.
 * Counts only nodes at depth `depth`, or all nodes if `depth` is -1. If there are fewer nodes,
 * returns the row of the last one. */
static int step_row(const struct esp_tree_rows *rows, int at, int steps, int depth)
{
    int last = at, direction = steps > 0 ? 1 : -1;
    for (int i = at < 0 ? 0 : at + direction; steps != 0 && i >= 0 && i < rows->count;
         i += direction) {
        if (rows->row[i].kind != ESP_ROW_NODE || (depth >= 0 && rows->row[i].depth != depth))
            continue;
        last = i;
        steps -= direction;
    }
    return last;
}

/* Returns the row of the accepted child. If there is none, returns the row of the first child,
 * or -1 if no child is visible. */
static int child_row(const struct esp_tree_rows *rows, const struct esp_iteration *it, int at)
{
    int first = -1;
    for (int i = at + 1; i < rows->count; i++) {
        if (rows->row[i].parent_row != at || rows->row[i].kind != ESP_ROW_NODE)
            continue;
        if (it->tree.nodes[rows->row[i].node].verdict == ESP_ACCEPTED)
            return i;
        first = first < 0 ? i : first;
    }
    return first;
}

/* Returns the row to which an action moves the cursor. Up and Down go to the next row. In a
 * tree that grows to the right, they go to a node of the same depth. Left goes to the parent,
 * and Right to a child. */
static int next_row(const struct shown_tree *d, const struct esp_iteration *it, int action,
                    int height)
{
    const struct esp_tree_rows *rows = &d->rows;
    int at = d->look.cursor, depth = d->grows_right && at >= 0 ? rows->row[at].depth : -1;
    switch (action) {
    case ESP_ACTION_UP:
        return step_row(rows, at, -1, depth);
    case ESP_ACTION_DOWN:
        return step_row(rows, at, 1, depth);
    case ESP_ACTION_PAGE_UP:
        return step_row(rows, at, 1 - height, depth);
    case ESP_ACTION_PAGE_DOWN:
        return step_row(rows, at, height - 1, depth);
    case ESP_ACTION_LEFT:
        return at > 0 ? rows->row[at].parent_row : at;
    case ESP_ACTION_RIGHT:
        return at >= 0 && child_row(rows, it, at) >= 0 ? child_row(rows, it, at) : at;
    case ESP_ACTION_LAST:
        return step_row(rows, at, rows->count, -1);
    default: /* ESP_ACTION_FIRST */
        return 0;
    }
}

static void move_cursor(const struct esp_shown *s, int action, int width, int height)
{
    struct shown_tree d;
    bool known = s->look->node >= 0 && s->look->node <= ESP_MAX_NODES;
    if (known && action == ESP_ACTION_TOGGLE)
        s->look->collapsed[s->look->node] = !s->look->collapsed[s->look->node];
    if (known && action == ESP_ACTION_RIGHT && s->look->collapsed[s->look->node])
        s->look->collapsed[s->look->node] = false;
    else if (action != ESP_ACTION_TOGGLE && open_drawing(&d, s, width, height, false) == 0) {
        int row = next_row(&d, s->it, action, height);
        s->look->node = row >= 0 ? d.rows.row[row].node : 0;
        free_drawing(&d);
    }
}

static bool request(const struct esp_shown *s, int action)
{
    if (!s->it || s->it->tree.count == 0)
        return false;
    switch (action) {
    case ESP_ACTION_UP:
    case ESP_ACTION_DOWN:
    case ESP_ACTION_LEFT:
    case ESP_ACTION_RIGHT:
    case ESP_ACTION_PAGE_UP:
    case ESP_ACTION_PAGE_DOWN:
    case ESP_ACTION_FIRST:
    case ESP_ACTION_LAST:
    case ESP_ACTION_TOGGLE:
        if (s->look->iteration < 0)
            esp_look_hold(s->look, s->state, s->it->index);
        s->look->of_token = false;
        move_cursor(s, action, s->width, s->height);
        return true;
    case ESP_ACTION_LEAVE_PANE:
        if (s->look->iteration < 0)
            return false;
        esp_look_hold(s->look, s->state, -1);
        return true;
    default:
        return false;
    }
}

/* ------------------------------------------------------------------ search */

static void unfold_to(struct esp_look *look, const struct esp_tree *tree, int node)
{
    for (int up = tree->nodes[node].parent; up >= 0; up = tree->nodes[up].parent)
        if (up <= ESP_MAX_NODES)
            look->collapsed[up] = false;
}

/* Finds the first match after row `at` (step 1) or the last match before it (-1). At an end of
 * the tree, continues at the other end. */
static struct esp_search_result find_row(const struct esp_tree_rows *rows,
                                         const struct esp_iteration *it,
                                         const struct esp_tree_look *look, int at, int step,
                                         int *row)
{
    struct esp_search_result found = {.count = 0};
    int first = -1, last = -1;
    *row = -1;
    for (int i = 0; i < rows->count; i++) {
        if (rows->row[i].kind != ESP_ROW_NODE ||
            !esp_tree_matches(look, it->tree.nodes[rows->row[i].node].token))
            continue;
        found.count++;
        first = first < 0 ? i : first;
        last = i;
        if (step > 0 ? i > at && *row < 0 : i < at) {
            *row = i;
            found.index = found.count;
        }
    }
    if (*row < 0 && found.count > 0) {
        found.round = true;
        found.index = step > 0 ? 1 : found.count;
        *row = step > 0 ? first : last;
    }
    return found;
}

static struct esp_search_result find(const struct esp_shown *s, int step)
{
    int row = -1, at;
    struct esp_search_result found = {.count = 0};
    struct esp_tree_rows rows;
    if (!s->it ||
        esp_tree_rows_build(&rows, s->it, &(struct esp_tree_choice){.stages = s->stages}) < 0)
        return found;
    at = cursor_row(&rows, s->look);
    if (at < 0 && step < 0)
        at = rows.count;
    found =
        find_row(&rows, s->it,
                 &(struct esp_tree_look){.tokens = s->state->tokens, .search = s->look->search},
                 at, step, &row);
    if (row >= 0) {
        esp_look_hold(s->look, s->state, s->it->index);
        s->look->node = rows.row[row].node;
        unfold_to(s->look, &s->it->tree, s->look->node);
    }
    esp_tree_rows_free(&rows);
    return found;
}

/* Returns the row of the tree at a cell of the pane, or -1. */
static int row_at(const struct shown_tree *d, int width, int height, int x, int y)
{
    if (!d->grows_right) {
        int row = first_row(&d->rows, d->look.cursor, height) + y;
        return row < d->rows.count ? row : -1;
    }
    const struct esp_tidy_box *box = &d->right.box[telling_row(d)];
    x += start_of(box->x, box->x + box->width, width, d->right.width);
    y += start_of(box->y, box->y + 1, height, d->right.height);
    for (int i = 0; i < d->rows.count; i++)
        if (d->right.box[i].y == y && x >= d->right.box[i].x &&
            x < d->right.box[i].x + d->right.box[i].width)
            return i;
    return -1;
}

/* Moves the cursor to the clicked node and holds the iteration. */
static bool click(const struct esp_shown *s, int x, int y)
{
    int node = -1;
    char sentences[768];
    struct shown_tree d;
    if (!s->it || s->it->tree.count == 0)
        return false;
    int height = tree_height(s, s->width, s->height, sentences, sizeof sentences);
    if (y >= height || open_drawing(&d, s, s->width, height, false) < 0)
        return false;
    int row = row_at(&d, s->width, height, x, y);
    if (row >= 0 && d.rows.row[row].kind == ESP_ROW_NODE)
        node = d.rows.row[row].node;
    free_drawing(&d);
    if (node < 0)
        return false;
    if (s->look->iteration < 0)
        esp_look_hold(s->look, s->state, s->it->index);
    s->look->of_token = false;
    s->look->node = node;
    return true;
}

/* Sets *point to where a branch would begin. The branch would have the text that precedes the
 * iteration, and then the path to the node at the cursor. */
static bool point(const struct esp_shown *s, struct esp_branch_point *point)
{
    *point = (struct esp_branch_point){.count = 0};
    if (!s->it || s->it->tree.count == 0 || !esp_state_began(s->state, s->it, &point->place))
        return false;
    const struct esp_node *nodes = s->it->tree.nodes;
    const bool chosen = s->look->iteration == s->it->index && s->look->node >= 0 &&
                        s->look->node < s->it->tree.count;
    int node = chosen ? s->look->node : esp_telling_node(s->it);
    point->count = nodes[node].depth;
    for (int i = point->count; i > 0; node = nodes[node].parent)
        point->tokens[--i] = nodes[node].token;
    return true;
}

const struct esp_pane_ops esp_pane_tree = {
    .name = "tree",
    .summary = "the draft tree of an iteration: accepted, rejected and cut nodes",
    .title = title,
    .draw = draw,
    .request = request,
    .click = click,
    .point = point,
    .find = find,
};
