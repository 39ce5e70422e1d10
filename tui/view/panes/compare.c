/* compare.c - the compare pane. Two sessions, each with its drafter and verifier, decode one
 * text.
 *
 * On the left and right are the trees of two iterations that cover the same place in the text.
 * Below them are the text with the iterations of both sessions, and the statistics. While the
 * pane follows the end of the text, it shows the newest place where both sessions start an
 * iteration. At this place both trees have the same context. Left and Right go to the previous
 * and next place where at least one session starts an iteration. Page Up and Page Down go to
 * places where both sessions start one.
 */
#include <string.h>

#include "tui/view/panes/compare_parts.h"
#include "viz/explain.h"
#include "viz/wrap.h"

enum { LEAST_TREE = 6, NARROW = 56, ROOMY = 50 };

static struct esp_comparison shown(const struct esp_shown *s)
{
    if (s->look->iteration < 0 || !s->it || s->it->index != s->look->iteration)
        return esp_comparison_newest(s->state);
    struct esp_comparison both = esp_comparison_at(s->state, (int)s->view->anchor);
    return s->view->anchor >= 0 && both.it[0] == s->it
               ? both
               : esp_comparison_at(s->state, s->it->position);
}

static void title(const struct esp_shown *s, char *text, size_t size)
{
    const char *held = s->look->iteration >= 0 ? " (held)" : "";
    if (!s->state->compared)
        snprintf(text, size, "compare");
    else if (strcmp(s->state->loaded.verifier, "greedy") == 0)
        snprintf(text, size, "compare%s   two configurations, one text", held);
    else
        snprintf(text, size, "compare%s   the first writes the text, the second drafts along",
                 held);
}

/* ------------------------------------------------------------------ trees */

/* Draws "iter 41 from token 124: 5 of 19 accepted, 6 tokens". If the iteration starts later
 * than the iteration of the other session, also says by how many tokens it is later. A narrow
 * pane shows less. */
static void draw_summary(struct esp_canvas *canvas, int y, const struct esp_iteration *it,
                         const struct esp_iteration *other, int stages)
{
    char text[96];
    int seen = it->tree.verified > 0 ? it->tree.verified - 1 : 0, used = 0;
    int width = canvas->view.rect.width;
    int behind = other ? it->position - other->position : 0;
    if (width >= ROOMY && behind > 0)
        used = snprintf(text, sizeof text, "%d later, from ", behind);
    else if (width >= ROOMY)
        used = snprintf(text, sizeof text, "iter %d from ", it->index);
    used += snprintf(text + used, sizeof text - (size_t)used, "token %d: ", it->position);
    if (stages > ESP_STAGE_SELECT)
        snprintf(text + used, sizeof text - (size_t)used, "%d of %d accepted, %d token%s",
                 it->path_length, seen, it->committed_count,
                 it->committed_count == 1 ? "" : "s");
    else
        snprintf(text + used, sizeof text - (size_t)used, "%d nodes", it->tree.count - 1);
    esp_draw_bytes(canvas, 0, y, width, behind > 0 ? ESP_STYLE_WARN : ESP_STYLE_LABEL, 0, text,
                   strlen(text));
}

static void draw_tree(struct esp_canvas *canvas, const struct esp_state *state,
                      const struct esp_iteration *it, int stages, int height)
{
    struct esp_tree_rows rows;
    struct esp_tree_choice choice = {.stages = stages, .most = height};
    struct esp_tree_look look = {.tokens = state->tokens, .stages = stages, .cursor = -1};
    if (it->tree.count == 0 || esp_tree_rows_build(&rows, it, &choice) < 0)
        return;
    int first = rows.path_end + 3 - height, most = rows.count - height;
    look.first = first > most ? most : first;
    look.first = look.first < 0 ? 0 : look.first;
    struct esp_view whole =
        esp_canvas_enter(canvas, (struct esp_rect){0, 2, canvas->view.rect.width, height});
    esp_tree_rows_draw(canvas, &rows, it, &look);
    esp_canvas_leave(canvas, whole);
    esp_tree_rows_free(&rows);
}

/* Draws a session's side of the pane: its drafter and verifier, its iteration and its tree. */
static void draw_side(struct esp_canvas *canvas, const struct esp_state *state,
                      const struct esp_comparison *both, int side, struct esp_rect rect)
{
    const struct esp_iteration *it = both->it[side];
    const struct esp_setup *loaded = side ? &state->compared->loaded : &state->loaded;
    bool partial = it == &state->partial.it;
    int stages = partial ? state->partial_stages : ESP_STAGES;
    struct esp_view whole = esp_canvas_enter(canvas, rect);
    int verifier = (int)strcspn(loaded->verifier, ":") + 2;
    int room = rect.width > verifier + 10 ? rect.width - verifier : rect.width;
    int x = esp_draw_bytes(canvas, 0, 0, room, ESP_STYLE_TITLE, 0, loaded->drafter,
                           strlen(loaded->drafter));
    if (room < rect.width)
        esp_drawf(canvas, x, 0, ESP_STYLE_LABEL, ", %.*s", verifier - 2, loaded->verifier);
    if (it) {
        draw_summary(canvas, 1, it, both->it[!side], stages);
        draw_tree(canvas, state, it, stages, rect.height - 2);
    } else {
        esp_draw_paragraph(canvas, 1, ESP_STYLE_LABEL,
                           state->has_partial ? "runs after the other side's iteration"
                           : state->compared->trace.kept_count ? "its tree is no longer kept"
                           : esp_state_is_busy(state)
                               ? "about to begin"
                               : "begins with the next prompt, or with an empty line");
    }
    esp_canvas_leave(canvas, whole);
}

static void draw_trees(struct esp_canvas *canvas, const struct esp_state *state,
                       const struct esp_comparison *both, int height)
{
    int width = canvas->view.rect.width;
    if (width < NARROW) {
        int half = (height - 1) / 2;
        draw_side(canvas, state, both, 0, (struct esp_rect){0, 0, width, half});
        draw_side(canvas, state, both, 1, (struct esp_rect){0, half + 1, width, half});
        return;
    }
    int left = (width - 3) / 2;
    draw_side(canvas, state, both, 0, (struct esp_rect){0, 0, left, height});
    draw_side(canvas, state, both, 1, (struct esp_rect){left + 3, 0, width - left - 3, height});
    for (int y = 0; y < height; y++)
        esp_draw(canvas, left + 1, y, ESP_STYLE_EDGE,
                 canvas->glyphs->lines[ESP_LINE_UP | ESP_LINE_DOWN]);
}

/* In step mode, draws sentences below the trees about the last stage of the first session.
 * Returns the number of rows that are left for the trees. */
static int draw_sentences(struct esp_canvas *canvas, const struct esp_state *state, int height)
{
    char text[768];
    esp_explain_stop(text, sizeof text, &state->partial.it, state->partial_type,
                     state->partial_stages, &state->tokens);
    int lines = esp_paragraph_height(text, canvas->view.rect.width);
    if (height - lines - 1 < LEAST_TREE)
        return height;
    esp_draw_paragraph(canvas, height - lines, ESP_STYLE_WARN, text);
    return height - lines - 1;
}

/* ------------------------------------------------------------------ the pane */

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    int width = canvas->view.rect.width, height = canvas->view.rect.height;
    if (!s->state->compared) {
        esp_draw_paragraph(canvas, 0, ESP_STYLE_LABEL,
                           "Two drafters or verifiers side by side on one text: "
                           ":compare ar compares with plain decoding, "
                           ":compare dyspec:N=32 swor with a tree. "
                           ":compare off ends it.");
        return;
    }
    struct esp_comparison both = shown(s);
    int least = width < NARROW ? 2 * LEAST_TREE + 1 : LEAST_TREE;
    int rows = height - esp_compare_totals_height(s->state, width) - 1;
    int trees = rows - ESP_RULER_ROWS - 1 >= least ? rows - ESP_RULER_ROWS - 1
                : rows >= least                    ? rows
                                                   : 0;
    int ruler = trees > 0 ? trees + 1 : 0, y = trees > 0 ? trees + 1 : 0;
    if (rows - ruler >= ESP_RULER_ROWS) {
        esp_draw_ruler(canvas, s->state, &both, s->look->iteration >= 0, ruler);
        y = ruler + ESP_RULER_ROWS + 1;
    }
    esp_draw_compare_totals(canvas, s->state, y);
    if (s->state->has_partial)
        trees = draw_sentences(canvas, s->state, trees);
    if (trees > 0)
        draw_trees(canvas, s->state, &both, trees);
}

static bool request(const struct esp_shown *s, int action)
{
    bool back = action == ESP_ACTION_LEFT || action == ESP_ACTION_PAGE_UP, turn;
    if (!s->state->compared)
        return false;
    switch (action) {
    case ESP_ACTION_LEFT:
    case ESP_ACTION_RIGHT:
    case ESP_ACTION_PAGE_UP:
    case ESP_ACTION_PAGE_DOWN: {
        bool common = action == ESP_ACTION_PAGE_UP || action == ESP_ACTION_PAGE_DOWN;
        int place = shown(s).place;
        place = esp_comparison_step(s->state, place, back ? -1 : 1, common);
        const struct esp_iteration *it =
            place < 0 ? NULL : esp_iteration_covering(s->state, place);
        if (!it && back)
            return true;
        s->view->anchor = it ? place : -1;
        esp_look_hold(s->look, s->state, it ? it->index : -1);
        return true;
    }
    case ESP_ACTION_LAST:
    case ESP_ACTION_LEAVE_PANE:
        turn = s->look->iteration >= 0;
        s->view->anchor = -1;
        esp_look_hold(s->look, s->state, -1);
        return turn || action == ESP_ACTION_LAST;
    default:
        return false;
    }
}

const struct esp_pane_ops esp_pane_compare = {
    .name = "compare",
    .summary = "two drafters or verifiers side by side on one text",
    .title = title,
    .draw = draw,
    .request = request,
};
