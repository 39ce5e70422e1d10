/* control.h - the data that commands, settings and replays read and change. Also has the
 * functions with which they reply to the user.
 *
 * A live session has a worker and no player; a replay has a player and no worker. Functions
 * that take a control return 0 or a negative status, with a message for the user in `reply`.
 * Only tui/app shows the reply. A function that needs only one member of the control takes a
 * pointer to that member.
 */
#ifndef ESP_CONTROL_H
#define ESP_CONTROL_H

#include "tui/commands/configuration.h"
#include "tui/commands/resume.h"
#include "tui/model/export_job.h"
#include "tui/view/page.h"
#include "tui/view/theme.h"
#include "tui/view/ui.h"
#include "tui/model/race.h"
#include "tui/worker/worker.h"

enum { ESP_MOST_SETTINGS = 64 };

/* The flags of the command line that started the interface. */
struct esp_interface_options {
    struct esp_engine_options engine;
    struct esp_session_options session;
    const char *prompt;            /* submitted when the models are loaded; NULL if none */
    int tokens;                    /* new tokens per prompt; 0 means 256 */
    bool ascii;                    /* draw only ASCII */
    const char *record;            /* file that records the session from the start, or NULL */
    bool force;                    /* overwrite `record` if the file exists */
    const char *theme;             /* name of a theme; NULL means the default */
    const char *config;            /* configuration file; NULL means the user's own */
    bool no_config;                /* read no configuration file */
    bool given[ESP_MOST_SETTINGS]; /* true for settings that flags have set. `config` does not
                                      change these settings. */
    /* The recording to replay, which needs no models. NULL means a live session. player.h
     * describes `speed` and `idle`. */
    const char *recording;
    double speed, idle;
    /* The race to open: a race of these two recordings, or a race with the options `race`. The
     * program ends when the user leaves the race. All three are NULL if there is no race. */
    const char *race_recordings[2];
    const struct esp_race_options *race;
    /* Path of the library of kept sessions. NULL means that no session is kept. */
    const char *library;
    bool private;                /* the session is not kept */
    struct esp_resumed *resumed; /* the session to continue, owned by the caller, or NULL */
    /* :resume sets *next to the number or name of a session, in allocated memory. Then the
     * caller opens the interface again with that session. NULL if :resume is not available. */
    char **next;
    const char *notice; /* message shown at the start, or NULL */
    /* The lesson to open, or "" for the list of lessons. The program ends when the user leaves
     * the lesson. NULL if there is none. */
    const char *lesson;
};

/* Says where a command or setting is allowed. Most of them need an engine, which only a live
 * session has. */
enum esp_place { ESP_IN_LIVE, ESP_IN_REPLAY, ESP_IN_BOTH };

/* A prompt that the user has submitted (prompts.h). */
struct esp_turn {
    int before; /* number of tokens in the text before the prompt */
    char *text;
};

/* All prompts in the current text (prompts.h). */
struct esp_prompts {
    struct esp_turn *turns; /* (count) */
    int count;
    int kept;         /* length that the text will have when the posted commands are done; -1 if
                         they do not change the length */
    bool retokenized; /* the text was tokenized again, so prompts cannot be found in it */
};

/* The settings (settings.h). Settings that only the session or the view stores are not here. */
struct esp_interface_settings {
    struct esp_interface_options options;
    char target[1200], draft[1200], backend[32]; /* `options` points to these strings */
    struct esp_configuration config;
    bool chosen[ESP_MOST_SETTINGS]; /* true for settings that the user has set */
    char *said[ESP_MOST_SETTINGS];  /* the last values that the user gave to the session's
                                       string settings, or NULL */
    int tokens;                     /* new tokens per prompt */
    bool mouse;
    bool private; /* the session is not kept */
    bool keeps;   /* the engine thread has been told in which library to keep the session */
    struct esp_theme theme;
    char theme_name[1024]; /* the theme's name, or the full path of its file */
};

/* A yes-or-no question that waits for a key. The key y runs the command `if_yes`. */
struct esp_question {
    char text[256]; /* "" if there is no question */
    char if_yes[64];
};

/* The digits that the user has typed in a replay. They are the number of the iteration to go
 * to. */
struct esp_typed {
    char digits[8];
    double at; /* the value of esp_clock() when the last digit was typed */
};

/* Collects the requests of commands and settings to the app, which owns the terminal. */
struct esp_requests {
    bool changed;   /* the canvas must be drawn again */
    bool new_theme; /* the new theme must be shown */
    bool leaving;
    bool edit;          /* the prompt must be opened in an editor */
    char *line;         /* new input line, allocated; NULL means no change */
    bool line_if_empty; /* `line` replaces only an empty input line */
    char *clipboard;    /* (clipboard_length) bytes for the terminal's clipboard, allocated */
    size_t clipboard_length;
    struct esp_export_job *export; /* running export, or NULL */
};

struct esp_control {
    struct esp_state state;
    struct esp_ui ui;
    struct esp_page page;            /* the open page, which covers the panes */
    const struct esp_canvas *canvas; /* commands read only its size and glyphs */
    struct esp_worker *worker;       /* NULL in a replay */
    struct esp_player *player;       /* NULL in a live session (replay.h) */
    char reply[512];                 /* message for the user; "" if none */
    struct esp_prompts prompts;
    struct esp_interface_settings settings;
    struct esp_question question;
    struct esp_typed typed;
    struct esp_requests requests;
    /* The pace that ESP_ACTION_FULL_SPEED restores if full speed is on already. In a replay,
     * this is the playback speed. */
    double pace;
    int forks;  /* number of changes of the text that the engine thread has not reported yet */
    int back;   /* number of undos to run as soon as forks is 0; negative: number of redos */
    int doomed; /* 1 + the branch to delete when it is no longer the current one; 0 if none */
    int races;  /* number of races so far, because each race gets a new seed */
};

/* Sets the reply and returns 0. */
int esp_answer(struct esp_control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets the reply to an error message and returns ESP_E_ARGUMENT. */
#define esp_refuse(control, ...) (esp_answer(control, __VA_ARGS__), (int)ESP_E_ARGUMENT)

/* Asks the user to confirm an action that cannot be undone. The key y runs the command `line`,
 * and any other key cancels. Returns 0. */
int esp_ask(struct esp_control *control, const char *line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns whether a command or setting with this `place` is allowed now, in a live session or
 * in a replay. */
bool esp_control_is_in(const struct esp_control *control, enum esp_place place);

int esp_control_step_mode(struct esp_control *control, bool on);
/* Sets the pace, in iterations per second; 0 means full speed. */
void esp_control_pace(struct esp_control *control, double pace);
/* Loads a theme by its name or path. A path is stored as an absolute path. */
int esp_control_theme(struct esp_control *control, const char *name, char *err, size_t errlen);
/* Asks the app to copy bytes to the terminal's clipboard. */
int esp_control_copy(struct esp_control *control, const char *bytes, size_t length);
/* Asks the app to replace the input line. */
void esp_request_line(struct esp_requests *requests, const char *line, bool if_empty);
/* Stops the generation. If a prompt waits and the engine has not begun to read it, takes the
 * prompt back, and puts it on the input line if the line is empty. Returns whether a prompt was
 * taken back. */
bool esp_control_stop_engine(struct esp_control *control);
/* Called before a page opens. Stops the generation without changing the text, or pauses the
 * replay. */
void esp_control_stop(struct esp_control *control);
/* Closes the page. Then opens the page `ops`. If `ops` is NULL, shows the panes again. */
void esp_control_page(struct esp_control *control, const struct esp_page_ops *ops, void *data);
/* Waits for a running export and reports its result. */
int esp_control_end_export(struct esp_control *control);

#endif
