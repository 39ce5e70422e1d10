/* ui.h - draws the whole screen from the state and the user's view of it.
 *
 * Header, panes, input line and footer are drawn into a canvas, without a terminal. The live
 * interface, scripts and replays all draw with esp_ui_draw().
 */
#ifndef ESP_UI_H
#define ESP_UI_H

#include "tui/view/choices.h"
#include "tui/view/input_box.h"
#include "tui/view/palette.h"
#include "tui/view/pane.h"
#include "tui/model/player.h"

struct esp_ui {
    struct esp_layout_options layout; /* `focused` is false if the input line has the focus */
    struct esp_pane_view view[ESP_PANES];
    struct esp_look look;
    bool help;                       /* the help pane covers the other panes */
    bool stepping;                   /* step mode is on */
    double pace;                     /* maximum number of iterations per second; 0: no limit */
    double rate;                     /* current iterations per second; 0 means unknown */
    const struct esp_player *player; /* NULL in a live session */
    const char *typed;               /* the digits typed in a replay */

    struct esp_input_line input;
    const struct esp_choice *choices;
    int choice_count;

    struct esp_own_keys own_keys;

    struct esp_palette palette; /* covers the panes while open */

    const char *message; /* replaces the key hints unless it is NULL or "" */
    bool message_is_error;
};

void esp_ui_init(struct esp_ui *ui);
/* Gives the focus to the input line. */
void esp_ui_leave(struct esp_ui *ui);
/* Gives the focus to a pane. If the pane was hidden, shows it. */
void esp_ui_focus(struct esp_ui *ui, int pane);
/* Makes the view follow the end of the text and the newest iteration again. */
void esp_ui_follow(struct esp_ui *ui, const struct esp_state *state);
/* Returns the layout that esp_ui_draw() uses for a screen of this size. */
struct esp_layout esp_ui_layout(const struct esp_ui *ui, int width, int height);
void esp_ui_draw(struct esp_canvas *canvas, const struct esp_ui *ui,
                 const struct esp_state *state);

/* Returns what a pane shows in this layout. */
struct esp_shown esp_ui_shown(struct esp_ui *ui, const struct esp_state *state,
                              const struct esp_layout *layout, int pane);

/* Shows the compare pane if `on` is true, and hides it otherwise. */
void esp_ui_compare(struct esp_ui *ui, bool on);

/* Returns the key binding of the footer hint at a cell, or NULL if there is no hint. */
const struct esp_binding *esp_ui_hint_at(const struct esp_canvas *canvas,
                                         const struct esp_ui *ui, const struct esp_state *state,
                                         int x, int y);

/* Returns the pane of the tab at column x, or -1. */
int esp_ui_tab_at(const struct esp_ui *ui, int width, int x);

/* Handles an action that changes only the view (focus, zoom, scrolling). Returns false for all
 * other actions. */
bool esp_ui_act(struct esp_ui *ui, const struct esp_state *state, int action, int width,
                int height);

/* Goes to the next (step 1) or previous (-1) match of look.search in `pane`, and focuses the
 * pane. If that pane cannot be searched, searches the text. */
struct esp_search_result esp_ui_find(struct esp_ui *ui, const struct esp_state *state, int pane,
                                     int step, int width, int height);

#endif
