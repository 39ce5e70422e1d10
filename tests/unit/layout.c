/* Tests the layout of panes for every size of the screen. Panes must be inside the screen and
 * may overlap only in shared frames. On large screens, all panes must appear. */
#include "tui/view/layout.h"

#include "tests/check.h"

static bool inside(struct esp_rect rect, int width, int height)
{
    return rect.width == 0 ||
           (rect.x >= 0 && rect.y >= 0 && rect.width > 0 && rect.height > 0 &&
            rect.x + rect.width <= width && rect.y + rect.height <= height);
}

static int overlap(int a, int a_length, int b, int b_length)
{
    int low = a > b ? a : b, high = a + a_length < b + b_length ? a + a_length : b + b_length;
    return high > low ? high - low : 0;
}

/* Returns whether two rectangles overlap in at most `shared` columns or rows. Neighbouring
 * panes share one column or row of their frames. */
static bool apart(struct esp_rect a, struct esp_rect b, int shared)
{
    if (a.width == 0 || b.width == 0)
        return true;
    int columns = overlap(a.x, a.width, b.x, b.width),
        rows = overlap(a.y, a.height, b.y, b.height);
    return columns == 0 || rows == 0 || columns <= shared || rows <= shared;
}

static void is_sound(const struct esp_layout_options *options)
{
    struct esp_layout layout = esp_layout_of(options);
    const struct esp_rect bars[] = {layout.header, layout.tabs, layout.input, layout.footer};
    int width = options->width, height = options->height, panes = 0;
    for (int i = 0; i < 4; i++)
        CHECK(inside(bars[i], width, height), "bar %d at %d x %d", i, width, height);
    for (int i = 0; i < ESP_PANES; i++) {
        CHECK(inside(layout.pane[i], width, height), "pane %d at %d x %d", i, width, height);
        panes += layout.pane[i].width > 0;
        for (int j = 0; j < i; j++)
            CHECK(apart(layout.pane[i], layout.pane[j], 1),
                  "panes %d and %d overlap at %d x %d", i, j, width, height);
        for (int j = 0; j < 4; j++)
            CHECK(apart(layout.pane[i], bars[j], 0), "pane %d and bar %d overlap at %d x %d", i,
                  j, width, height);
    }
    CHECK((layout.kind == ESP_LAYOUT_TINY) == (width < 20 || height < 5));
    CHECK(layout.kind == ESP_LAYOUT_TINY ? panes == 0 : panes > 0, "%d panes at %d x %d", panes,
          width, height);
    if (layout.kind == ESP_LAYOUT_TABS || (options->zoomed && layout.kind != ESP_LAYOUT_TINY))
        CHECK(panes == 1 && layout.pane[options->current].width > 0);
}

TEST(every_size_has_a_valid_layout)
{
    for (int width = 1; width <= 220; width++)
        for (int height = 1; height <= 80; height++)
            for (int way = 0; way < 8; way++) {
                struct esp_layout_options options = {.width = width,
                                                     .height = height,
                                                     .current = way % ESP_PANES,
                                                     .zoomed = way == 3,
                                                     .stacked = way & 1,
                                                     .input_rows = way % 4 * 2};
                options.hidden[ESP_PANE_text] = way == 4 || way == 6;
                options.hidden[ESP_PANE_tree] = way == 5 || way == 6;
                is_sound(&options);
            }
}

TEST(the_layouts_of_common_sizes_are_right)
{
    struct esp_layout_options options = {.width = 120, .height = 36};
    struct esp_layout layout = esp_layout_of(&options);
    CHECK(layout.kind == ESP_LAYOUT_WIDE);
    CHECK(layout.pane[ESP_PANE_text].width == 61 && layout.pane[ESP_PANE_tree].width == 60);
    options.width = 80;
    options.height = 24;
    layout = esp_layout_of(&options);
    CHECK(layout.kind == ESP_LAYOUT_NORMAL);
    CHECK(layout.pane[ESP_PANE_text].y == layout.pane[ESP_PANE_tree].y);
    CHECK(layout.pane[ESP_PANE_controller].height == 3);
    options.stacked = true;
    layout = esp_layout_of(&options);
    CHECK(layout.pane[ESP_PANE_text].x == layout.pane[ESP_PANE_tree].x);
    CHECK(layout.pane[ESP_PANE_text].width == 80 && layout.pane[ESP_PANE_tree].y > 1);
    options.width = 59;
    CHECK(esp_layout_of(&options).kind == ESP_LAYOUT_TABS);
    options.width = 20;
    options.height = 5;
    layout = esp_layout_of(&options);
    CHECK(layout.kind == ESP_LAYOUT_TABS && layout.pane[ESP_PANE_text].height == 2);
}

TEST(a_pane_with_the_focus_is_visible)
{
    struct esp_layout_options options = {
        .width = 80, .height = 24, .current = ESP_PANE_node, .focused = true};
    struct esp_layout layout = esp_layout_of(&options);
    CHECK(layout.pane[ESP_PANE_node].width == 80 && layout.pane[ESP_PANE_text].width == 0);
    options.focused = false;
    layout = esp_layout_of(&options);
    CHECK(layout.pane[ESP_PANE_node].width == 0 && layout.pane[ESP_PANE_text].width > 0);
}

TEST(text_and_tree_fill_the_remaining_room)
{
    struct esp_layout_options options = {.width = 120, .height = 36};
    options.hidden[ESP_PANE_tree] = options.hidden[ESP_PANE_node] = true;
    struct esp_layout layout = esp_layout_of(&options);
    CHECK(layout.pane[ESP_PANE_text].width == 120 && layout.pane[ESP_PANE_tree].width == 0);
    options.hidden[ESP_PANE_stats] = true;
    layout = esp_layout_of(&options);
    CHECK(layout.pane[ESP_PANE_controller].y + layout.pane[ESP_PANE_controller].height == 34);
}
