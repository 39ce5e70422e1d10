/* help.c - the help pane: lines that are made from the tables of keys and commands. */
#include "pane.h"

static int line_count(const struct esp_look *look)
{
    int count = 0;
    while (look->help && look->help[count])
        count++;
    return count;
}

/* A line that starts in column 0 is a heading. */
static void draw(struct esp_canvas *canvas, const struct esp_state *state,
                 const struct esp_look *look, const struct esp_pane_view *view)
{
    (void)state;
    int count = line_count(look);
    for (int y = 0; y < canvas->view.rect.height && view->scroll + y < count; y++) {
        const char *line = look->help[view->scroll + y];
        esp_draw(canvas, 0, y, line[0] == ' ' ? ESP_STYLE_TEXT : ESP_STYLE_KEY, line);
    }
}

static bool request(struct esp_pane_view *view, struct esp_look *look,
                    const struct esp_state *state, int action, int width, int height)
{
    (void)state;
    (void)width;
    int most = line_count(look) - height, scroll = view->scroll;
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
    default:
        return false;
    }
    scroll = scroll > most ? most : scroll;
    view->scroll = scroll < 0 ? 0 : scroll;
    return true;
}

const struct esp_pane_ops esp_pane_help = {
    .name = "help",
    .summary = "keys and commands",
    .draw = draw,
    .request = request,
};
