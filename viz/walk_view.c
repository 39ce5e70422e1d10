/* walk_view.c - draws which states the rows of a tree read; see walk_view.h. */
#include "viz/walk_view.h"

#include <stdlib.h>

#include "kernels/state_plan.h"

enum { LABEL = 14, LEVEL = 3, ADDS = 6, KEY = 26 };

/* Plans the pass over an iteration's tree as the backends do. The root is the text's last
 * token. Returns false if there is no memory, or if the tree has no rows. Otherwise the caller
 * frees plan->walk.step. */
static bool open_plan(struct esp_state_plan *plan, const struct esp_iteration *it)
{
    const struct esp_tree *tree = &it->tree;
    const int rows = tree->verified,
              before = (it->position + ESP_STATE_CHUNK - 1) % ESP_STATE_CHUNK;
    *plan = (struct esp_state_plan){.room = rows + ESP_STATE_CHUNK};
    void *memory = rows < 1 || !tree->order ? NULL : malloc(esp_state_plan_bytes(plan->room));
    int32_t *entry = memory ? malloc((size_t)tree->count * sizeof *entry) : NULL;
    if (!entry) {
        free(memory);
        return false;
    }
    esp_state_plan_lay_out(plan, memory);
    esp_state_plan_begin(plan);
    for (int i = 0; i < before; i++)
        esp_state_plan_add(plan, i - 1);
    for (int i = 0; i < rows; i++) {
        const int parent = tree->nodes[tree->order[i]].parent;
        entry[tree->order[i]] =
            esp_state_plan_add(plan, parent < 0 ? before - 1 : entry[parent]);
    }
    esp_state_plan_end(plan, before + 1, rows);
    free(entry);
    return true;
}

static int levels_of(const struct esp_state_plan *plan)
{
    int levels = 0;
    for (int i = 0; i < plan->walk.count; i++)
        levels = plan->walk.step[i].to > levels ? plan->walk.step[i].to : levels;
    return levels;
}

int esp_walk_levels(const struct esp_iteration *it)
{
    struct esp_state_plan plan;
    if (!open_plan(&plan, it))
        return 0;
    const int levels = levels_of(&plan);
    free(plan.walk.step);
    return levels;
}

int esp_walk_width(const struct esp_iteration *it)
{
    const int width = LABEL + LEVEL * (esp_walk_levels(it) + 1) + ADDS;
    return width > KEY ? width : KEY;
}

/* Holds the data from which a pass is drawn. */
struct picture {
    struct esp_canvas *canvas;
    const struct esp_iteration *it;
    const struct esp_tokens *tokens;
    const struct esp_state_plan *plan;
    int node, levels;
    int y;   /* the next free line */
    int end; /* the first line below the area in which rows are drawn */
};

/* Returns whether a later step of the walk reads the state that `level` has after step `i`. */
static bool is_kept(const struct esp_state_walk *walk, int i, int level)
{
    for (int next = i + 1; next < walk->count; next++) {
        if (walk->step[next].from == level)
            return true;
        if (walk->step[next].to == level)
            return false;
    }
    return level == 0;
}

/* Draws the marks for the levels in the line of a row. The row reads level `to` after step `i`.
 * `from` is the level that the step read before this row, or -1. */
static void draw_levels(const struct picture *p, int i, int from, int to)
{
    const struct esp_glyphs *g = p->canvas->glyphs;
    for (int level = 0; level <= p->levels; level++) {
        const bool writes = level == to && from >= 0, reads = level == to || level == from;
        const bool kept = is_kept(&p->plan->walk, i, level);
        const char *text = writes  ? g->eighths[8]
                           : reads ? g->arrow
                           : kept  ? g->lines[ESP_LINE_UP | ESP_LINE_DOWN]
                                   : g->dot;
        const int style = writes  ? ESP_STYLE_BAR_VERIFY
                          : reads ? ESP_STYLE_KEY
                          : kept  ? ESP_STYLE_BAR_DRAFT
                                  : ESP_STYLE_EDGE;
        esp_draw_repeat(p->canvas, LABEL + LEVEL * level, p->y, writes ? 2 : 1, style, text);
    }
}

/* Draws the rows of a group, which read level `to` after step `i` of the walk. */
static void draw_group(struct picture *p, const struct esp_state_group *group, int i, int from,
                       int to)
{
    for (int m = group->first; m < group->first + group->count && p->y < p->end; m++, p->y++) {
        const int row = p->plan->member[m], at = p->it->tree.order[row];
        esp_draw_token(p->canvas, 0, p->y, LABEL - 1,
                       at == p->node ? ESP_STYLE_KEY : ESP_STYLE_LABEL, p->tokens,
                       p->it->tree.nodes[at].token);
        draw_levels(p, i, m == group->first ? from : -1, to);
        esp_drawf(p->canvas, LABEL + LEVEL * (p->levels + 1), p->y, ESP_STYLE_VALUE, "+%d",
                  p->plan->entry[esp_state_plan_entry(p->plan, row)].place);
    }
}

static void draw_head(const struct picture *p)
{
    esp_draw(p->canvas, 0, 0, ESP_STYLE_LABEL, "state");
    for (int level = 0; level <= p->levels; level++)
        esp_drawf(p->canvas, LABEL + LEVEL * level, 0, ESP_STYLE_LABEL, "%d", level);
    esp_draw(p->canvas, LABEL + LEVEL * (p->levels + 1), 0, ESP_STYLE_LABEL, "adds");
}

/* Draws a line that says what the glyphs mean. */
static void draw_key(struct esp_canvas *canvas, int y)
{
    const struct esp_glyphs *g = canvas->glyphs;
    int x = esp_draw(canvas, 0, y, ESP_STYLE_BAR_VERIFY, g->eighths[8]);
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, " written  ");
    x = esp_draw(canvas, x, y, ESP_STYLE_KEY, g->arrow);
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, " read  ");
    x = esp_draw(canvas, x, y, ESP_STYLE_BAR_DRAFT, g->lines[ESP_LINE_UP | ESP_LINE_DOWN]);
    esp_draw(canvas, x, y, ESP_STYLE_LABEL, " kept");
}

void esp_walk_draw(struct esp_canvas *canvas, const struct esp_iteration *it,
                   const struct esp_tokens *tokens, int node)
{
    struct esp_state_plan plan;
    if (!open_plan(&plan, it))
        return;
    const int room = canvas->view.rect.height - ESP_WALK_ROWS;
    const int shown = plan.rows <= room ? plan.rows : room - 1;
    struct picture p = {.canvas = canvas,
                        .it = it,
                        .tokens = tokens,
                        .plan = &plan,
                        .node = node,
                        .levels = levels_of(&plan),
                        .y = 1,
                        .end = shown + 1};
    draw_head(&p);
    draw_group(&p, &plan.group[0], -1, -1, 0);
    for (int i = 0; i < plan.walk.count; i++) {
        const struct esp_walk_step *step = &plan.walk.step[i];
        draw_group(&p, &plan.group[step->entry + 1], i, step->from, step->to);
    }
    if (shown >= 0 && shown < plan.rows)
        esp_drawf(canvas, 0, shown + 1, ESP_STYLE_WARN, "%d more", plan.rows - shown);
    draw_key(canvas, shown + 2);
    free(plan.walk.step);
}
