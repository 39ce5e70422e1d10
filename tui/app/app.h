/* app.h - the interface without a terminal: state, screen layout, input line, engine.
 *
 * Its runner (interface.c on a terminal, script.c without one) passes it keys, pastes and
 * sizes, calls esp_app_receive() for what the engine's thread reports, and shows its canvas.
 * What commands and settings act on is the control (tui/commands/control.h); what they answer,
 * and what they ask for that only a terminal can do, is shown and done here.
 */
#ifndef ESP_APP_H
#define ESP_APP_H

#include "tui/app/input.h"
#include "tui/commands/control.h"
#include "tui/view/mouse.h"

struct esp_app {
    struct esp_control control;
    struct esp_canvas canvas;
    struct esp_input *input;
    char message[512]; /* at the foot of the screen */
    unsigned seen_messages;
    double rated;      /* when the rate of iterations was measured last, and at which */
    int rated_at;      /* iteration; -1: not yet */
    char **help;       /* lines of the help pane, NULL at the end */
    int searched;      /* the pane that a line "/TEXT" searches; -1: a line "/NAME VALUE" is a
                          setting, and any other searches the text */
    char *prompt;      /* that a command line took the place of, or NULL */
    bool ended;        /* the command line is done, and the prompt comes back */
    int interrupts;    /* C-c in a row */
    double page_drawn; /* when a page was, by esp_clock() */
    bool suspend;      /* requests to the runner (interface.c, script.c) */
    bool redraw;
};

/* `live`: for a person, with history and configuration, at a pace that an eye can follow. */
int esp_app_open(struct esp_app *app, const struct esp_interface_options *options, bool live,
                 char *err, size_t errlen);
/* False: the engine's thread did not end in time and still uses what it has; then only _exit()
 * is safe. */
bool esp_app_close(struct esp_app *app);

void esp_app_key(struct esp_app *app, int key);
void esp_app_paste(struct esp_app *app, const char *bytes, size_t length);
void esp_app_mouse(struct esp_app *app, struct esp_mouse mouse);
int esp_app_resize(struct esp_app *app, int width, int height);
void esp_app_interrupt(struct esp_app *app);
/* Opens the user's editor on the input line, which the runner has made room for. */
void esp_app_edit(struct esp_app *app);
/* Applies what the engine's thread reported, or what is due of a recording, and finishes a
 * picture that is drawn. */
void esp_app_receive(struct esp_app *app);
/* Whether the theme is to suit the terminal's background: nobody chose one. */
bool esp_app_wants_background(const struct esp_app *app);
/* The terminal's background is of this colour, 0xRRGGBB. */
void esp_app_background(struct esp_app *app, int rgb);
/* Becomes readable when there is something to receive; -1 in a replay. */
int esp_app_wake_fd(const struct esp_app *app);
/* Milliseconds until esp_app_receive() must be called even so; -1: never. */
int esp_app_due(const struct esp_app *app);
/* Whether nothing more will happen without a key. */
bool esp_app_settled(struct esp_app *app);
/* Brings the canvas up to date. */
void esp_app_draw(struct esp_app *app);

/* Shows a line at the foot of the screen until the next key. */
void esp_app_say(struct esp_app *app, bool error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
