/* ui.h - the whole screen as a function of the state and of what the user looks at.
 *
 * Header, panes, input line and footer are drawn into a canvas; nothing here knows a terminal.
 * The live interface, the scripted driver and the replay of a recording all draw through
 * esp_ui_draw().
 */
#ifndef ESP_UI_H
#define ESP_UI_H

#include "tui/view/choices.h"
#include "tui/view/palette.h"
#include "tui/view/pane.h"
#include "tui/model/player.h"

struct esp_ui {
    struct esp_layout_options layout; /* its size is that of the canvas; layout.focused: the
                                         current pane has the focus, else the input line */
    struct esp_pane_view view[ESP_PANES];
    struct esp_look look;
    bool help;                       /* the help pane covers the others */
    bool stepping;                   /* step mode is on */
    double pace;                     /* iterations per second at most, or 0 */
    double rate;                     /* iterations per second of late; 0: not known */
    const struct esp_player *player; /* of a replay; NULL: the session is live */
    const char *typed;               /* digits typed in a replay */

    const char *prompt, *line; /* input line; line is not NUL-terminated */
    size_t line_length, point; /* point: byte where the cursor is */
    const struct esp_choice *choices;
    int choice_count;

    struct esp_own_keys own_keys;

    struct esp_palette palette; /* over everything, while it is open */

    const char *message; /* shown instead of the key hints; NULL or "": none */
    bool message_is_error;
};

void esp_ui_init(struct esp_ui *ui);
/* The layout for a screen of this size, as esp_ui_draw() uses it. */
struct esp_layout esp_ui_layout(const struct esp_ui *ui, int width, int height);
void esp_ui_draw(struct esp_canvas *canvas, const struct esp_ui *ui,
                 const struct esp_state *state);

/* Shows the compare pane in front when a comparison begins, or hides it when it ends. */
void esp_ui_compare(struct esp_ui *ui, bool on);

/* What the hint of the footer at a cell stands for; NULL: there is none. */
const struct esp_binding *esp_ui_hint_at(const struct esp_canvas *canvas,
                                         const struct esp_ui *ui, const struct esp_state *state,
                                         int x, int y);

/* The pane whose tab is at column x of a strip of this width, -1: none. */
int esp_ui_tab_at(const struct esp_ui *ui, int width, int x);

/* Carries out the actions that change only what is shown (focus, zoom, scrolling); false for
 * others. */
bool esp_ui_act(struct esp_ui *ui, const struct esp_state *state, int action, int width,
                int height);

/* Focuses `pane`, or the text if that pane cannot be searched, and goes to the next place (step
 * 1; -1: the one before) where look.search occurs. */
struct esp_search_result esp_ui_find(struct esp_ui *ui, const struct esp_state *state, int pane,
                                     int step, int width, int height);

#endif
