/* look.c - the selected iteration and node; see pane.h. */
#include "tui/view/pane.h"

#include <string.h>

#include "viz/explain.h"

void esp_look_hold(struct esp_look *look, const struct esp_state *state, int index)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, index, &stages);
    if (!it)
        index = -1;
    if (index != look->iteration)
        memset(look->collapsed, 0, sizeof look->collapsed);
    if (index >= 0 && index != look->iteration)
        look->node = esp_telling_node(it);
    look->iteration = index;
    look->of_token = false;
    if (index < 0)
        look->token = -1;
}

void esp_look_token(struct esp_look *look, const struct esp_state *state, int token)
{
    int index = 0;
    const struct esp_iteration *it = esp_state_writer(state, token, &index);
    esp_look_hold(look, state, it ? it->index : -1);
    if (it && it->path_length > 0)
        look->node = it->path[index < it->path_length ? index : it->path_length - 1];
    look->token = token;
    look->of_token = token >= 0 && token < state->span_count;
    look->likely = look->of_token && state->spans[token].score.rank > 0
                       ? state->spans[token].score.rank - 1
                       : 0;
}

int esp_looked_token(const struct esp_look *look, const struct esp_state *state)
{
    return look->of_token && look->token < state->span_count ? look->token : -1;
}

void esp_look_step(struct esp_look *look, const struct esp_state *state, int step)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    int next = it ? esp_state_neighbour(state, it->index, step) : -1;
    if (next >= 0 || step > 0)
        esp_look_hold(look, state, next);
    else if (it)
        esp_look_hold(look, state, it->index);
}

bool esp_pane_scroll(struct esp_pane_view *view, int action, int page, int most)
{
    most = most > 0 ? most : 0;
    page = page > 1 ? page : 1;
    int scroll = view->scroll < most ? view->scroll : most;
    switch (action) {
    case ESP_ACTION_UP:
        scroll--;
        break;
    case ESP_ACTION_DOWN:
        scroll++;
        break;
    case ESP_ACTION_PAGE_UP:
        scroll -= page;
        break;
    case ESP_ACTION_PAGE_DOWN:
        scroll += page;
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
    scroll = scroll < most ? scroll : most;
    view->scroll = scroll > 0 ? scroll : 0;
    return true;
}
