/* mailbox.h - what the interface's thread asks of the engine's thread.
 *
 * Commands wait in order and are taken between iterations; stop, quit, step mode and the pace
 * act at once. Posting never waits; the engine's thread waits here when it has nothing to do,
 * in step mode, and where the pace holds it back.
 */
#ifndef ESP_MAILBOX_H
#define ESP_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "tui/worker/compare_run.h"
#include "tui/worker/models.h"
#include "tui/worker/session_recording.h"

enum esp_command_type {
    ESP_COMMAND_PROMPT,
    ESP_COMMAND_SET,
    ESP_COMMAND_ASK,
    ESP_COMMAND_LIMIT,
    ESP_COMMAND_CLEAR,
    ESP_COMMAND_COMPARE,
    ESP_COMMAND_REWIND,
    ESP_COMMAND_LOAD,
    ESP_COMMAND_RECORD,
    ESP_COMMAND_MARK,
    ESP_COMMAND_RETIRE,
    ESP_COMMAND_JOB,
};

/* Work that needs the engine's thread and is no part of its text: a race, the runs of a lesson.
 * `models` are those that are loaded, if any are. */
struct esp_job {
    void (*run)(void *user, struct esp_models *models);
    void (*release)(void *user); /* after it, or in its place if the thread ends before */
    void *user;
};

/* A command, and what it needs: the member of the union that stands beside its type. */
struct esp_message {
    struct esp_message *next;
    enum esp_command_type type;
    union {
        struct {
            const char *text; /* (length) */
            size_t length;
        } prompt;
        struct {
            const char *key, *value, *origin; /* origin: as of esp_worker_set(); or NULL */
        } setting;                            /* SET */
        const char *key;                      /* ASK: what a parameter is now */
        int limit;                            /* tokens that a prompt may be continued by */
        struct esp_compare_choice compare;
        int rewind; /* tokens that stay */
        struct esp_models_change load;
        struct esp_recording_request record;
        const char *mark; /* its text */
        struct esp_job job;
        int retire; /* nobody asks any more for tokens of pairs older than this serial */
    };
};

/* Where a generation goes into step mode by itself. */
struct esp_breakpoints {
    int path;       /* after an iteration that accepts a path longer than this; 0: never */
    bool rejected;  /* after one that accepts nothing that was drafted */
    bool threshold; /* after one that moves a threshold */
};

struct esp_mailbox {
    pthread_mutex_t lock; /* of everything below but `iterated` */
    pthread_cond_t changed;
    struct esp_message *first, **last;
    bool stop, quit, stepping;
    int steps;   /* stages that may run without waiting */
    double pace; /* iterations per second, or 0 */
    struct esp_breakpoints breakpoints;
    bool working;             /* the engine's thread does not wait for a command or a step */
    bool busy;                /* it does not wait for a command */
    struct timespec iterated; /* when the last iteration ended, pauses included; its own */
};

void esp_mailbox_open(struct esp_mailbox *mailbox);
void esp_mailbox_close(struct esp_mailbox *mailbox);

/* ---- the interface's side */

/* Posts a copy, strings included. Without memory for it, the command is lost. */
void esp_mailbox_post(struct esp_mailbox *mailbox, const struct esp_message *command);
/* Ends the generation that runs and withdraws prompts that wait. Returns the last of these (the
 * caller frees it), or NULL. */
char *esp_mailbox_stop(struct esp_mailbox *mailbox);
void esp_mailbox_quit(struct esp_mailbox *mailbox);
void esp_mailbox_pace(struct esp_mailbox *mailbox, double iterations);
void esp_mailbox_break(struct esp_mailbox *mailbox, struct esp_breakpoints breakpoints);
void esp_mailbox_step_mode(struct esp_mailbox *mailbox, bool on);
void esp_mailbox_step(struct esp_mailbox *mailbox);
/* Is everything done that was asked for (in step mode: done up to the next stop)? */
bool esp_mailbox_settled(struct esp_mailbox *mailbox);

/* ---- the engine's side */

/* The next command, which the caller frees together with its strings by free(), or NULL if none
 * waits; with `wait`, waits for one. Says whether the generation is to stop and whether the
 * thread is to end. */
struct esp_message *esp_mailbox_take(struct esp_mailbox *mailbox, bool wait, bool *stop,
                                     bool *quit);
bool esp_mailbox_quits(struct esp_mailbox *mailbox);
/* Is what the thread does now to be given up? */
bool esp_mailbox_stops(struct esp_mailbox *mailbox);
bool esp_mailbox_steps(struct esp_mailbox *mailbox);
/* Can somebody follow single iterations: in step mode, or at a pace? */
bool esp_mailbox_watched(struct esp_mailbox *mailbox);
struct esp_breakpoints esp_mailbox_breakpoints(struct esp_mailbox *mailbox);
/* In step mode: waits until told to go on. */
void esp_mailbox_wait_step(struct esp_mailbox *mailbox);
/* Waits until the pace allows the next iteration, or something else is to do. The wait is
 * `share` (above 0, at most 1) of what one iteration takes at the pace. */
void esp_mailbox_wait_pace(struct esp_mailbox *mailbox, double share);

#endif
