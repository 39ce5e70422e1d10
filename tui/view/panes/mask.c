/* mask.c - the mask pane shows which rows of the target's pass attend to which other rows
 * (viz/mask_view.h). If the target has recurrent layers, the pane also shows the order in which
 * their states are computed for these rows (viz/walk_view.h). */
#include "tui/view/pane.h"

#include "viz/mask_view.h"
#include "viz/walk_view.h"
#include "viz/wrap.h"

static void title(const struct esp_shown *s, char *text, size_t size)
{
    if (s->it && s->stages > ESP_STAGE_FLATTEN)
        snprintf(text, size, "mask   %d x %d, %d block%s of 32 x 32", s->it->tree.verified,
                 s->it->tree.verified, s->it->mask_blocks, s->it->mask_blocks == 1 ? "" : "s");
    else
        snprintf(text, size, "mask");
}

/* Draws the order of the states at the right, and the mask in the remaining part of the
 * pane. */
static void draw_both(struct esp_canvas *canvas, const struct esp_shown *s, int node)
{
    enum { GAP = 3 };
    const struct esp_rect *all = &canvas->view.rect;
    const int width = all->width, height = all->height;
    const int walk = s->it->state_bytes > 0 ? esp_walk_width(s->it) : 0;
    const int left = walk > 0 && width >= 2 * walk ? width - walk - GAP : width;
    struct esp_view whole = esp_canvas_enter(canvas, (struct esp_rect){0, 0, left, height});
    esp_mask_draw(canvas, s->it, &s->state->tokens, node);
    esp_canvas_leave(canvas, whole);
    if (left == width)
        return;
    whole = esp_canvas_enter(canvas, (struct esp_rect){left + GAP, 0, walk, height});
    esp_walk_draw(canvas, s->it, &s->state->tokens, node);
    esp_canvas_leave(canvas, whole);
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    static const char caption[] = "Each row is a token in the target's one pass. It attends "
                                  "to the whole text and, in the tree, only "
                                  "to itself and the tokens above it on its own path.";
    int lines = esp_paragraph_height(caption, canvas->view.rect.width);
    const int key = s->it && s->it->state_bytes > 0 ? ESP_WALK_ROWS : 0;
    if (s->it && canvas->view.rect.height - lines > s->it->tree.verified + key)
        esp_draw_paragraph(canvas, canvas->view.rect.height - lines, ESP_STYLE_LABEL, caption);
    if (!s->it || s->stages <= ESP_STAGE_FLATTEN)
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "The tree attention mask is drawn here.");
    else
        draw_both(canvas, s, s->look->iteration >= 0 ? s->look->node : -1);
}

static bool request(const struct esp_shown *s, int action)
{
    const bool grows_right = s->look->grows_right;
    if (action == ESP_ACTION_TOGGLE)
        return false;             /* no scrolling: all rows are visible */
    s->look->grows_right = false; /* this view stacks the nodes */
    bool obeyed = esp_pane_tree.request(s, action);
    s->look->grows_right = grows_right;
    return obeyed;
}

const struct esp_pane_ops esp_pane_mask = {
    .name = "mask",
    .summary = "which rows of the target's pass attend to which: each node to its ancestors",
    .title = title,
    .draw = draw,
    .request = request,
};
