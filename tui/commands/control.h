/* control.h - what commands, settings and a replay act on, and how they answer.
 *
 * A live session has a worker and no player, a replay a player and no worker. Functions that
 * take a control return 0 or a negative status; what there is to tell the user about it is in
 * `reply`, and only tui/app shows it. What only a terminal or the input line can do (leave, a
 * line to edit, bytes for the clipboard) is asked for in a field and done there, too.
 */
#ifndef ESP_CONTROL_H
#define ESP_CONTROL_H

#include "tui/commands/config_file.h"
#include "tui/model/export_job.h"
#include "tui/view/page.h"
#include "tui/view/theme.h"
#include "tui/view/ui.h"
#include "tui/worker/race_run.h"
#include "tui/worker/worker.h"

enum { ESP_MOST_SETTINGS = 64 };

/* How the interface is opened: flags of the command line. */
struct esp_interface_options {
    struct esp_engine_options engine;
    struct esp_session_options session;
    const char *prompt; /* submitted as soon as the models are loaded; NULL: none */
    int tokens;         /* new tokens per prompt; 0: 256 */
    bool ascii;         /* draw nothing beyond ASCII */
    const char *record; /* file to record to from the start on; NULL: none */
    bool force;         /* overwrite it */
    const char *theme;  /* name of a theme; NULL: the default */
    const char *config; /* file to read settings from; NULL: the user's */
    bool no_config;     /* read none */
    bool given[ESP_MOST_SETTINGS]; /* settings of which a flag goes before the file */
    /* A recording to be replayed; then no model is loaded. NULL: a live session. Speed and the
     * longest pause are those of player.h. */
    const char *recording;
    double speed, idle;
    /* Open a race at once, and leave with it: between these recordings, or as `race` says. */
    const char *race_recordings[2];
    const struct esp_race_choice *race;
    const char *lesson; /* open it at once, and leave with it; "": the list; NULL: none */
};

/* Where a command or a setting has a meaning: most need an engine. */
enum esp_place { ESP_IN_LIVE, ESP_IN_REPLAY, ESP_IN_BOTH };

/* A prompt that was submitted (prompts.h). */
struct esp_turn {
    int before; /* tokens of the text in front of it */
    char *text;
};

struct esp_control {
    struct esp_state state;
    struct esp_ui ui;
    struct esp_page page;            /* in place of the panes */
    const struct esp_canvas *canvas; /* its size, and what it can show */
    struct esp_worker *worker;       /* NULL in a replay */
    struct esp_player *player;       /* NULL in a live session (replay.h) */
    char reply[512];                 /* what to tell the user; "": nothing */

    /* A question that waits for y, and the line that y runs. */
    char question[256]; /* "": none */
    char if_yes[64];

    /* Prompts. */
    struct esp_turn *turns; /* (turn_count) of the text */
    int turn_count;
    int kept; /* tokens of the text that will be left of it when what was asked for is done;
                 -1: all */
    bool retokenized; /* the text, for other models: where its prompts began is not known */

    /* Settings. */
    struct esp_interface_options options;
    char target[1200], draft[1200], backend[32]; /* strings of the options */
    struct esp_configuration config;
    bool chosen[ESP_MOST_SETTINGS]; /* by the user, anywhere; the rest are defaults */
    char *said[ESP_MOST_SETTINGS];  /* texts of the session, as they were set last */
    int tokens;                     /* a prompt may be continued by */
    int races;                      /* that were run: each has another seed */
    double pace; /* what ESP_ACTION_FULL_SPEED comes back to; in a replay a speed */
    bool mouse;
    struct esp_theme theme;
    char theme_name[1024]; /* or the whole path of its file */

    /* A replay. */
    char typed[8];   /* digits */
    double typed_at; /* when the last of them was */

    /* What is asked of the app. */
    bool changed;   /* the canvas is out of date */
    bool new_theme; /* the theme is to be shown */
    bool leaving;
    bool edit;          /* the prompt is to be changed in an editor */
    char *line;         /* for the input line, allocated; NULL: it stays as it is */
    bool line_if_empty; /* only if nothing stands there */
    char *clipboard;    /* (clipboard_length) bytes for the terminal's clipboard, allocated */
    size_t clipboard_length;
    struct esp_export_job *export; /* a picture or page that is being made, or NULL */
};

/* Sets the reply; returns 0. */
int esp_answer(struct esp_control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for what went wrong; returns ESP_E_ARGUMENT. */
int esp_refuse(struct esp_control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Asks before something is done that cannot be undone: y runs `line`, any other key leaves
 * everything as it is. Returns 0. */
int esp_ask(struct esp_control *control, const char *line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Has what belongs to this place a meaning here? */
bool esp_control_is_in(const struct esp_control *control, enum esp_place place);

int esp_control_step_mode(struct esp_control *control, bool on);
/* Iterations per second at most; 0: full speed. */
void esp_control_pace(struct esp_control *control, double pace);
/* Loads a theme; one in a file is known by its whole path from then on. */
int esp_control_theme(struct esp_control *control, const char *name, char *err, size_t errlen);
/* Hands bytes to the terminal's clipboard. */
int esp_control_copy(struct esp_control *control, const char *bytes, size_t length);
/* Hands a line to the input line. */
void esp_control_line(struct esp_control *control, const char *line, bool if_empty);
/* Stops the generation. A prompt that the engine had not begun to read comes back into the input
 * line, if that is empty; then returns true. */
bool esp_control_stop_engine(struct esp_control *control);
/* Before a page is shown: stops the text that is being written, which stays, or pauses the
 * replay. */
void esp_control_stop(struct esp_control *control);
/* Shows a page in place of the panes, and closes the one that was there; NULL: the panes again.
 */
void esp_control_page(struct esp_control *control, const struct esp_page_ops *ops, void *data);
/* Waits for the picture that is being drawn, if there is one, and says what became of it. */
int esp_control_end_export(struct esp_control *control);

#endif
