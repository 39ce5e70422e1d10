/* walk_view.c - the walk of a pass over the rows of a tree; see walk_view.h. */
#include "viz/walk_view.h"

#include <stdlib.h>

#include "kernels/walk.h"

enum { LABEL = 14, LEVEL = 3, KEY = 26 };

/* Orders the rows of a tree as the backend does. The root is the text's last token. Returns
 * false if there is no memory, or if the tree has no rows; else the caller frees walk->step. */
static bool open_walk(struct esp_state_walk *walk, const struct esp_tree *tree)
{
    const int rows = tree->verified;
    if (rows < 1 || !tree->order)
        return false;
    const size_t each = (size_t)rows + 1;
    struct esp_walk_step *step =
        calloc(1, each * sizeof *step + (7 * each + (size_t)tree->count) * sizeof(int32_t));
    if (!step)
        return false;
    int32_t *parts = (int32_t *)(step + each), *row = parts + 7 * each;
    *walk = (struct esp_state_walk){.count = rows,
                                    .texts = 1,
                                    .step = step,
                                    .parent = parts,
                                    .size = parts + each,
                                    .heavy = parts + 2 * each,
                                    .first = parts + 3 * each,
                                    .next = parts + 4 * each,
                                    .pending = parts + 5 * each,
                                    .level = parts + 6 * each};
    for (int i = 0; i < rows; i++) {
        const int parent = tree->nodes[tree->order[i]].parent;
        row[tree->order[i]] = i;
        walk->parent[i] = parent < 0 ? -1 : row[parent];
    }
    esp_walk_order(walk);
    return true;
}

static int levels_of(const struct esp_state_walk *walk)
{
    int levels = 0;
    for (int i = 0; i < walk->count; i++)
        levels = walk->step[i].to > levels ? walk->step[i].to : levels;
    return levels;
}

int esp_walk_levels(const struct esp_tree *tree)
{
    struct esp_state_walk walk;
    if (!open_walk(&walk, tree))
        return 0;
    const int levels = levels_of(&walk);
    free(walk.step);
    return levels;
}

int esp_walk_width(const struct esp_tree *tree)
{
    const int width = LABEL + LEVEL * (esp_walk_levels(tree) + 1);
    return width > KEY ? width : KEY;
}

/* Whether a step after step i reads what is in a level after step i. */
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

static void draw_step(struct esp_canvas *canvas, const struct esp_state_walk *walk, int i,
                      int y, int levels)
{
    const struct esp_walk_step *step = &walk->step[i];
    for (int level = 0; level <= levels; level++) {
        const bool writes = level == step->to, reads = level == step->from;
        const char *text = writes  ? canvas->glyphs->eighths[8]
                           : reads ? canvas->glyphs->arrow
                           : is_kept(walk, i, level)
                               ? canvas->glyphs->lines[ESP_LINE_UP | ESP_LINE_DOWN]
                               : canvas->glyphs->dot;
        const int style = writes                    ? ESP_STYLE_BAR_VERIFY
                          : reads                   ? ESP_STYLE_KEY
                          : is_kept(walk, i, level) ? ESP_STYLE_BAR_DRAFT
                                                    : ESP_STYLE_EDGE;
        esp_draw_repeat(canvas, LABEL + LEVEL * level, y, writes ? 2 : 1, style, text);
    }
}

static void draw_head(struct esp_canvas *canvas, int levels)
{
    esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "step");
    for (int level = 0; level <= levels; level++)
        esp_drawf(canvas, LABEL + LEVEL * level, 0, ESP_STYLE_LABEL, "%d", level);
}

/* Says what the glyphs mean. */
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
    struct esp_state_walk walk;
    const int height = canvas->view.rect.height;
    if (!open_walk(&walk, &it->tree))
        return;
    const int levels = levels_of(&walk);
    const int room = height - ESP_WALK_ROWS, shown = walk.count <= room ? walk.count : room - 1;
    draw_head(canvas, levels);
    for (int i = 0; i < shown; i++) {
        const int at = it->tree.order[walk.step[i].entry];
        esp_draw_token(canvas, 0, i + 1, LABEL - 1,
                       at == node ? ESP_STYLE_KEY : ESP_STYLE_LABEL, tokens,
                       it->tree.nodes[at].token);
        draw_step(canvas, &walk, i, i + 1, levels);
    }
    if (shown >= 0 && shown < walk.count)
        esp_drawf(canvas, 0, shown + 1, ESP_STYLE_WARN, "%d more", walk.count - shown);
    draw_key(canvas, shown + 2);
    free(walk.step);
}
