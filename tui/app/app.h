/* app.h - the interface without a terminal. It connects state, layout, input line and engine.
 *
 * A runner gives it keys, pasted text and sizes, calls esp_app_receive() for reports of the
 * engine thread, and shows the canvas. On a terminal the runner is interface.c, without one
 * script.c. Commands and settings act on the control (tui/commands/control.h). The app shows
 * their replies and carries out their requests to the terminal.
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
    char message[512]; /* bottom line of the screen */
    unsigned seen_messages;
    double rated;      /* time of the last measurement of the iteration rate */
    int rated_at;      /* iteration of that measurement; -1 if none yet */
    char **help;       /* lines of the help pane, NULL at the end */
    int searched;      /* the pane that a line "/TEXT" searches. -1: "/NAME VALUE" is a setting,
                          and other lines search the text */
    char *prompt;      /* the prompt that a command line has replaced, or NULL */
    bool ended;        /* the command line has ended, so the prompt returns */
    int asked;         /* 1 + the first token of the last score request; 0: none yet */
    int scored;        /* no scores need to be requested for tokens before this one */
    int interrupts;    /* how many times in a row C-c was pressed */
    double page_drawn; /* time of the last drawing of a page, by esp_clock() */
    bool suspend;      /* requests to the runner: to suspend, and to redraw */
    bool redraw;
};

/* `live`: for a user at a terminal. Then the app uses the input history and the configuration
 * file, and paces the iterations so that they can be read. */
int esp_app_open(struct esp_app *app, const struct esp_interface_options *options, bool live,
                 char *err, size_t errlen);
/* Returns false if the engine thread did not end in time and still uses its memory; then only
 * _exit() is safe. */
bool esp_app_close(struct esp_app *app);

void esp_app_key(struct esp_app *app, int key);
void esp_app_paste(struct esp_app *app, const char *bytes, size_t length);
void esp_app_mouse(struct esp_app *app, struct esp_mouse mouse);
int esp_app_resize(struct esp_app *app, int width, int height);
void esp_app_interrupt(struct esp_app *app);
/* Runs the user's editor on the input line. The runner must have left the screen. */
void esp_app_edit(struct esp_app *app);
/* Applies reports of the engine thread or due events of a recording, and finishes an
 * export. */
void esp_app_receive(struct esp_app *app);
/* Whether the theme should follow the terminal's background, because the user chose none. */
bool esp_app_wants_background(const struct esp_app *app);
/* Reports the terminal's background colour, 0xRRGGBB. */
void esp_app_background(struct esp_app *app, int rgb);
/* Returns a file descriptor that is readable when there is something to receive, or -1 in a
 * replay. */
int esp_app_wake_fd(const struct esp_app *app);
/* Milliseconds until esp_app_receive() must be called even if nothing is readable; -1:
 * never. */
int esp_app_due(const struct esp_app *app);
/* Whether the screen will not change until a key is pressed. */
bool esp_app_settled(struct esp_app *app);
/* Brings the canvas up to date. */
void esp_app_draw(struct esp_app *app);

/* Shows a message in the bottom line until the next key. */
void esp_app_say(struct esp_app *app, bool error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
