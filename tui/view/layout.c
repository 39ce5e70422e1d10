/* layout.c - computes the rectangles of the panes; see layout.h.
 *
 * The body of the screen has two columns. The left column has the text and, if there is room,
 * the controller below it. The right column has the tree and the node pane below it. The other
 * panes are below both columns and have the full width. Each list describes a region from top
 * to bottom. The first pane of a column gets the remaining height. A focused pane that is in no
 * list gets the whole body.
 */
#include "tui/view/layout.h"

#include <string.h>

enum { LEAST_WIDTH = 20, LEAST_HEIGHT = 5, LEAST_ROWS = 4, TALL = 44, LARGE = 56 };

struct pane_place {
    int pane;
    int rows; /* rows inside the frame; 0: all remaining rows */
};

struct region {
    struct pane_place place[4];
    int count;
};

struct pane_plan {
    struct region left, right, bottom;
};

static const struct pane_plan normal = {
    .left = {{{ESP_PANE_text, 0}}, 1},
    .right = {{{ESP_PANE_tree, 0}}, 1},
    .bottom = {{{ESP_PANE_controller, 1}, {ESP_PANE_stats, 1}}, 2},
};

static const struct pane_plan wide = {
    .left = {{{ESP_PANE_text, 0}, {ESP_PANE_controller, 6}}, 2},
    .right = {{{ESP_PANE_tree, 0}, {ESP_PANE_node, 6}}, 2},
    .bottom = {{{ESP_PANE_stats, 2}}, 1},
};

/* Returns the plan for a screen of this height. A wide screen shows the timeline if it has at
 * least TALL rows, and the whole node pane if it has at least LARGE rows. */
static struct pane_plan plan_of(bool is_wide, int height)
{
    struct pane_plan plan = is_wide ? wide : normal;
    if (is_wide && height >= TALL)
        plan.bottom = (struct region){{{ESP_PANE_timeline, 7}, {ESP_PANE_stats, 2}}, 2};
    if (is_wide && height >= LARGE) {
        plan.left.place[1].rows = 5;
        plan.right.place[1].rows = 16;
    }
    return plan;
}

static struct region visible(const struct region *region,
                             const struct esp_layout_options *options)
{
    struct region kept = {.count = 0};
    for (int i = 0; i < region->count; i++)
        if (!options->hidden[region->place[i].pane])
            kept.place[kept.count++] = region->place[i];
    return kept;
}

/* Places panes of fixed height at the bottom of `area`. Stops when fewer than `least` rows
 * would remain. Returns the remaining area. */
static struct esp_rect cut(struct esp_layout *layout, struct esp_rect area,
                           const struct region *region, int from, int least)
{
    for (int i = region->count - 1; i >= from; i--) {
        int rows = region->place[i].rows;
        if (area.height - (rows + 1) < least + 2)
            continue;
        int top = area.y + area.height - rows - 2;
        layout->pane[region->place[i].pane] =
            (struct esp_rect){area.x, top, area.width, rows + 2};
        area.height = top - area.y + 1;
    }
    return area;
}

static void place_column(struct esp_layout *layout, struct esp_rect area,
                         const struct region *region)
{
    if (region->count == 0)
        return;
    area = cut(layout, area, region, 1, LEAST_ROWS);
    layout->pane[region->place[0].pane] = area;
}

static void place_plan(struct esp_layout *layout, const struct esp_layout_options *options,
                       struct esp_rect area, struct pane_plan plan)
{
    struct region left = visible(&plan.left, options), right = visible(&plan.right, options);
    struct region bottom = visible(&plan.bottom, options);
    if (left.count + right.count == 0) {
        place_column(layout, area, &bottom);
        return;
    }
    area = cut(layout, area, &bottom, 0, LEAST_ROWS);
    struct esp_rect first = area, second = area;
    if (options->stacked) {
        first.height = area.height / 2;
        second.y += first.height - 1;
        second.height -= first.height - 1;
    } else {
        first.width = area.width / 2 + 1;
        second.x += first.width - 1;
        second.width -= first.width - 1;
    }
    place_column(layout, right.count ? first : area, &left);
    place_column(layout, left.count ? second : area, &right);
}

static void place_compared(struct esp_layout *layout, const struct esp_layout_options *options,
                           struct esp_rect area)
{
    if (layout->kind == ESP_LAYOUT_WIDE && !options->hidden[ESP_PANE_text]) {
        int rows = area.height / 4;
        layout->pane[ESP_PANE_text] = (struct esp_rect){area.x, area.y, area.width, rows};
        area.y += rows - 1;
        area.height -= rows - 1;
    }
    layout->pane[ESP_PANE_compare] = area;
}

struct esp_layout esp_layout_of(const struct esp_layout_options *options)
{
    int width = options->width, height = options->height;
    struct esp_layout layout = {.kind = ESP_LAYOUT_TINY};
    if (width < LEAST_WIDTH || height < LEAST_HEIGHT)
        return layout;
    layout.footer = (struct esp_rect){0, height - 1, width, 1};
    const int rows =
        options->input_rows > 1 && options->input_rows <= height / 4 ? options->input_rows : 1;
    layout.input = (struct esp_rect){0, height - 1 - rows, width, rows};
    if (width < 60 || height < 14) {
        int top = height >= 10;
        layout.kind = ESP_LAYOUT_TABS;
        layout.header = (struct esp_rect){0, 0, top ? width : 0, 1};
        layout.tabs = (struct esp_rect){0, top, width, 1};
        layout.pane[options->current] =
            (struct esp_rect){0, top + 1, width, height - top - 2 - rows};
        return layout;
    }
    struct esp_rect body = {0, 1, width, height - 2 - rows};
    bool is_wide = width >= 100 && height >= 28;
    layout.kind = is_wide ? ESP_LAYOUT_WIDE : ESP_LAYOUT_NORMAL;
    layout.framed = true;
    layout.header = (struct esp_rect){0, 0, width, 1};
    if (options->zoomed)
        layout.pane[options->current] = body;
    else if (options->comparing && !options->hidden[ESP_PANE_compare])
        place_compared(&layout, options, body);
    else
        place_plan(&layout, options, body, plan_of(is_wide, height));
    if (options->focused && layout.pane[options->current].width == 0) {
        memset(layout.pane, 0, sizeof layout.pane);
        layout.pane[options->current] = body;
    }
    return layout;
}

struct esp_rect esp_layout_inside(const struct esp_layout *layout, int pane)
{
    struct esp_rect rect = layout->pane[pane];
    if (layout->framed && rect.width > 0)
        rect = (struct esp_rect){rect.x + 2, rect.y + 1, rect.width - 4, rect.height - 2};
    return rect;
}
