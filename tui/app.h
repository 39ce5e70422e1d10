/* app.h - the interface without a terminal: state, screen layout, input line, engine.
 *
 * Whoever runs it (interface.c on a terminal, script.c without one) hands it keys, pastes and
 * sizes, lets it receive what the engine's thread reports, and shows its canvas.
 */
#ifndef ESP_APP_H
#define ESP_APP_H

#include "config.h"
#include "export_job.h"
#include "input.h"
#include "interface.h"
#include "mouse.h"
#include "theme.h"
#include "ui.h"
#include "worker.h"

enum { ESP_MOST_SETTINGS = 32 };

/* Where a command or a setting has a meaning: most need an engine. */
enum esp_place { ESP_IN_LIVE, ESP_IN_REPLAY, ESP_IN_BOTH };

/* A prompt that was submitted (prompts.h). */
struct esp_turn {
    int before; /* tokens of the text in front of it */
    char *text;
};

struct esp_app {
    struct esp_state state;
    struct esp_ui ui;
    struct esp_canvas canvas;
    struct esp_worker *worker; /* NULL in a replay */
    struct esp_player *player; /* NULL in a live session (replay.h) */
    char typed[8];             /* digits, in a replay */
    double typed_at;           /* when the last of them was */
    struct esp_input *input;
    char message[512];
    unsigned seen_messages;
    char *put_back; /* a line that was submitted but must stay; set while readline hands it over
                     */
    char **help;    /* lines of the help pane, NULL at the end */
    int searched;   /* the pane that a line "/TEXT" searches */
    int interrupts; /* C-c in a row */
    int kept; /* tokens of the text that will be left of it when what was asked for is done;
                 -1: all */
    struct esp_turn *turns; /* (turn_count) of the text */
    int turn_count;
    bool retokenized; /* the text, for other models: where its prompts began is not known */

    /* What settings.h changes. */
    struct interface_options options;
    char target[1200], draft[1200], backend[32]; /* strings of the options */
    struct esp_configuration config;
    bool given[ESP_MOST_SETTINGS];  /* on the command line */
    bool chosen[ESP_MOST_SETTINGS]; /* by the user, anywhere; the rest are defaults */
    int tokens;                     /* a prompt may be continued by */
    double pace; /* what ESP_ACTION_FULL_SPEED comes back to; in a replay a speed */
    bool mouse;
    struct esp_theme theme;
    char theme_name[1024];         /* or the whole path of its file */
    bool new_theme;       /* whoever shows the canvas has not taken it yet */

    bool changed; /* the canvas is out of date */
    bool leaving;
    bool suspend; /* wishes for whoever runs it */
    bool redraw;
    struct esp_export_job *export; /* a picture that is being drawn, or NULL */
    char *clipboard; /* (clipboard_length) to be handed to the terminal's, and freed */
    size_t clipboard_length;
};

/* `live`: for a person, who has a history and a configuration, and whose eye is to follow. */
int esp_app_open(struct esp_app *app, const struct interface_options *options, bool live,
                 char *err, size_t errlen);
void esp_app_close(struct esp_app *app);

void esp_app_key(struct esp_app *app, int key);
void esp_app_paste(struct esp_app *app, const char *bytes, size_t length);
void esp_app_mouse(struct esp_app *app, struct esp_mouse mouse);
int esp_app_resize(struct esp_app *app, int width, int height);
void esp_app_interrupt(struct esp_app *app);
/* Applies what the engine's thread reported, or what is due of a recording, or a picture that
 * is drawn. */
void esp_app_receive(struct esp_app *app);
/* Becomes readable when there is something to receive; -1 in a replay. */
int esp_app_wake_fd(const struct esp_app *app);
/* Milliseconds until there is something to receive without that; -1: never. */
int esp_app_due(const struct esp_app *app);
/* Will nothing more come by itself? */
bool esp_app_settled(struct esp_app *app);
/* Has what belongs to this place a meaning here? */
bool esp_app_is_in(const struct esp_app *app, enum esp_place place);
/* Brings the canvas up to date. */
void esp_app_draw(struct esp_app *app);

void esp_app_step_mode(struct esp_app *app, bool on);
/* Waits for the picture that is being drawn, if there is one, and says what became of it. */
void esp_app_end_export(struct esp_app *app);
/* Hands bytes to the terminal's clipboard. */
void esp_app_copy(struct esp_app *app, const char *bytes, size_t length);
/* Loads a theme; one in a file is known by its whole path from then on. */
int esp_app_theme(struct esp_app *app, const char *name, char *err, size_t errlen);
/* Iterations per second at most; 0: full speed. */
void esp_app_pace(struct esp_app *app, double pace);

/* Shows a line at the foot of the screen until the next key. */
void esp_app_say(struct esp_app *app, bool error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
