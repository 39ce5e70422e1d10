/* mouse.c - finds the pane under the mouse pointer, and passes the click or the turn of the
 * wheel to it; see mouse.h. */
#include "tui/view/mouse.h"

#include <string.h>

enum { LEFT = 0, WHEEL_UP = 64, WHEEL_DOWN = 65, LINES = 3 /* rows per notch of the wheel */ };

static bool is_inside(struct esp_rect rect, int x, int y)
{
    return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

/* Returns the pane at a cell, or -1. The frame is part of the pane. */
static int pane_at(const struct esp_layout *layout, int x, int y)
{
    for (int i = 0; i < ESP_PANES; i++)
        if (is_inside(layout->pane[i], x, y))
            return i;
    return -1;
}

static void focus(struct esp_ui *ui, int pane)
{
    ui->layout.focused = pane >= 0 && pane != ESP_PANE_help;
    if (pane != ESP_PANE_help)
        ui->help = false;
    if (ui->layout.focused)
        ui->layout.current = pane;
}

static void click(struct esp_ui *ui, const struct esp_state *state,
                  const struct esp_layout *layout, int x, int y)
{
    int pane = is_inside(layout->tabs, x, y) ? esp_ui_tab_at(ui, layout->tabs.width, x)
                                             : pane_at(layout, x, y);
    ui->look.explains = layout->pane[ESP_PANE_node].width == 0;
    focus(ui, pane);
    if (pane < 0 || !esp_panes[pane]->click)
        return;
    const struct esp_rect inside = esp_layout_inside(layout, pane);
    const struct esp_shown shown = esp_ui_shown(ui, state, layout, pane);
    if (is_inside(inside, x, y))
        esp_panes[pane]->click(&shown, x - inside.x, y - inside.y);
}

static void scroll(struct esp_ui *ui, const struct esp_state *state,
                   const struct esp_layout *layout, int pane, int action)
{
    for (int i = 0; i < LINES; i++) {
        struct esp_shown shown = esp_ui_shown(ui, state, layout, pane);
        shown.wheel = true;
        esp_panes[pane]->request(&shown, action);
    }
}

void esp_ui_mouse(struct esp_ui *ui, const struct esp_state *state, struct esp_mouse mouse,
                  int width, int height)
{
    struct esp_layout layout = esp_ui_layout(ui, width, height);
    int pane = pane_at(&layout, mouse.x, mouse.y);
    if (mouse.button == LEFT)
        click(ui, state, &layout, mouse.x, mouse.y);
    else if (mouse.button == WHEEL_UP || mouse.button == WHEEL_DOWN)
        scroll(ui, state, &layout, pane >= 0 && esp_panes[pane]->request ? pane : ESP_PANE_text,
               mouse.button == WHEEL_UP ? ESP_ACTION_UP : ESP_ACTION_DOWN);
}
