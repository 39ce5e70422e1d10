/* app.h - the interface without a terminal. It connects state, layout, input line and engine.
 *
 * A caller gives it keys, pasted text and the size of the screen, calls esp_app_receive() to
 * process reports of the engine thread, and shows the canvas. The caller is interface.c on a
 * terminal, and script.c when there is no terminal. Commands and settings act on the control
 * (tui/commands/control.h). The app shows their replies, and carries out their requests to
 * the terminal.
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
    double rated;   /* time at which the iteration rate was last measured */
    int rated_at;   /* number of iterations at that time; -1 if it was never measured */
    char **help;    /* lines of the help pane, NULL at the end */
    int searched;   /* the pane that a line "/TEXT" searches. -1: "/NAME VALUE" sets a setting,
                       and all other lines search the text */
    char *prompt;   /* the prompt that a command line has replaced, or NULL */
    bool ended;     /* the command line has ended, and `prompt` must be restored */
    int asked;      /* 1 + the first token of the last score request; 0: none yet */
    int scored;     /* all tokens before this index have a score or were already requested */
    int interrupts; /* how many times in a row C-c was pressed */
    double page_drawn; /* time of esp_clock() at which a page was last drawn */
    bool suspend;      /* asks the caller to suspend the program */
    bool redraw;       /* asks the caller to send the whole screen again */
};

/* `live` is true for a user at a terminal. Then the app uses the input history and the
 * configuration file, and slows the iterations down to a speed at which they can be read. */
int esp_app_open(struct esp_app *app, const struct esp_interface_options *options, bool live,
                 char *err, size_t errlen);
/* Returns false if the engine thread did not end in time and still uses memory of the app. In
 * that case only _exit() is safe. */
bool esp_app_close(struct esp_app *app);

void esp_app_key(struct esp_app *app, int key);
void esp_app_paste(struct esp_app *app, const char *bytes, size_t length);
void esp_app_mouse(struct esp_app *app, struct esp_mouse mouse);
int esp_app_resize(struct esp_app *app, int width, int height);
void esp_app_interrupt(struct esp_app *app);
/* Runs the user's editor on the input line. The caller must have left the screen before. */
void esp_app_edit(struct esp_app *app);
/* Applies the reports of the engine thread or, in a replay, the events that are due. If an
 * export has ended, shows its result. */
void esp_app_receive(struct esp_app *app);
/* Returns whether the theme should fit the terminal's background. It should, unless the user
 * has chosen a theme. */
bool esp_app_wants_background(const struct esp_app *app);
/* Tells the app the terminal's background colour, 0xRRGGBB. */
void esp_app_background(struct esp_app *app, int rgb);
/* Returns a file descriptor that is readable when there is something to receive, or -1 in a
 * replay. */
int esp_app_wake_fd(const struct esp_app *app);
/* Returns after how many milliseconds esp_app_receive() must be called even if nothing is
 * readable. Returns -1 if no such call is needed. */
int esp_app_due(const struct esp_app *app);
/* Returns whether the screen stays as it is until a key is pressed. */
bool esp_app_settled(struct esp_app *app);
/* Draws the present state on the canvas. */
void esp_app_draw(struct esp_app *app);

/* Shows a message in the bottom line until the next key. */
void esp_app_say(struct esp_app *app, bool error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
