/* mailbox.h - a queue of commands from the UI thread to the engine thread.
 *
 * The engine thread takes commands between iterations, in order. Stop, quit, step mode and pace
 * take effect immediately. Posting never blocks. The engine thread waits in functions of the
 * mailbox when it is idle, in step mode, and to keep the pace.
 */
#ifndef ESP_MAILBOX_H
#define ESP_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "tui/worker/models.h"

/* The types of commands. Each comment lists what the message of the command contains: first the
 * texts, then the numbers, then the flag. */
enum esp_command_type {
    ESP_COMMAND_PROMPT,  /* prompt (length) */
    ESP_COMMAND_SET,     /* key, value, origin (esp_worker_set()) or NULL */
    ESP_COMMAND_ASK,     /* key of the parameter to report */
    ESP_COMMAND_LIMIT,   /* largest number of new tokens after a prompt */
    ESP_COMMAND_CLEAR,   /* none */
    ESP_COMMAND_COMPARE, /* drafter or NULL, verifier or NULL (worker_compare.c) */
    ESP_COMMAND_REWIND,  /* number of tokens to keep */
    ESP_COMMAND_FORK, /* text (length bytes of struct esp_text_token), words to append or NULL;
                         enum esp_fork; flag: continue the text (worker_branch.c) */
    ESP_COMMAND_CONTINUE, /* text as for FORK; number of continuations */
    ESP_COMMAND_SCORES,   /* first token, number of tokens; reports their scores */
    ESP_COMMAND_KEEP,     /* struct esp_resume and its text (length bytes), path of the library;
                             flag: private (keeper.h). Later commands change only the flag */
    ESP_COMMAND_JUDGE,    /* name of a branch; its number, 1 if marked + 2 if deleted */
    ESP_COMMAND_TELL,     /* error message to show to the user */
    ESP_COMMAND_LOAD,     /* key, value, draft or NULL (models.h) */
    ESP_COMMAND_RECORD,   /* path or NULL; columns, rows; flag: overwrite (worker_record.c) */
    ESP_COMMAND_MARK,     /* text of the marker */
    ESP_COMMAND_RETIRE,   /* serial number; texts of pairs with a lower number are unused */
    ESP_COMMAND_JOB,      /* job */
};

/* The kept session to continue. In a command, its text follows as an array of struct
 * esp_text_token. */
struct esp_resume {
    int session;    /* number of the session; 0 if there is none */
    int tokens;     /* length of the text */
    int iterations; /* index of the next iteration */
    char vocabulary_hash[32];
};

/* Other work for the engine thread, such as a race or the runs of a lesson. `models` are the
 * loaded models, if there are any. */
struct esp_job {
    void (*run)(void *user, struct esp_models *models);
    void (*release)(void *user); /* called after run(), or instead of it if the thread ends */
    void *user;
};

enum { ESP_MESSAGE_TEXTS = 3 };

/* A command and the values that it needs. */
struct esp_message {
    struct esp_message *next;
    enum esp_command_type type;
    const char *text[ESP_MESSAGE_TEXTS]; /* or NULL */
    size_t length;                       /* length of text[0] if it can contain NULs; else 0 */
    int number[2];
    bool flag;
    struct esp_job job;
};

/* Conditions on an iteration. The engine enters step mode after an iteration that meets one. */
struct esp_breakpoints {
    int path;       /* the accepted path is longer than this; 0: no such condition */
    bool rejected;  /* no drafted token was accepted */
    bool threshold; /* the controller moved a threshold */
};

/* The values of the commands that take effect immediately. */
struct esp_mailbox_now {
    bool stop, quit, stepping;
    double pace; /* maximum number of iterations per second; 0: no limit */
    struct esp_breakpoints breakpoints;
};

struct esp_mailbox {
    pthread_mutex_t lock; /* protects all members below except `iterated` */
    pthread_cond_t changed;
    struct esp_message *first, **last;
    struct esp_mailbox_now now;
    int steps;                /* number of stages to run before the thread waits again */
    bool working;             /* the engine thread does not wait for a command or a step */
    bool busy;                /* the engine thread does not wait for a command */
    struct timespec iterated; /* end of the last iteration and its pause; engine thread only */
};

void esp_mailbox_open(struct esp_mailbox *mailbox);
void esp_mailbox_close(struct esp_mailbox *mailbox);

/* ---- for the UI thread */

/* Posts a copy of a command and its strings. If there is no memory, the command is lost. */
void esp_mailbox_post(struct esp_mailbox *mailbox, const struct esp_message *command);
/* Stops the generation and removes waiting prompts. Returns the last of these prompts, which
 * the caller frees, or NULL. */
char *esp_mailbox_stop(struct esp_mailbox *mailbox);
void esp_mailbox_quit(struct esp_mailbox *mailbox);
void esp_mailbox_pace(struct esp_mailbox *mailbox, double iterations);
void esp_mailbox_break(struct esp_mailbox *mailbox, struct esp_breakpoints breakpoints);
void esp_mailbox_step_mode(struct esp_mailbox *mailbox, bool on);
void esp_mailbox_step(struct esp_mailbox *mailbox);
/* Returns whether all commands have been executed. In step mode, returns whether the thread
 * waits for a step. */
bool esp_mailbox_settled(struct esp_mailbox *mailbox);

/* ---- for the engine thread */

/* Returns the next command, or NULL if there is none. If `wait` is true, waits for one. A
 * single free() frees the command and its strings. Sets *stop if the generation must end, and
 * *quit if the thread must end. */
struct esp_message *esp_mailbox_take(struct esp_mailbox *mailbox, bool wait, bool *stop,
                                     bool *quit);
struct esp_mailbox_now esp_mailbox_now(struct esp_mailbox *mailbox);
/* Returns whether step mode is on. In step mode, the engine must wait for each step. */
bool esp_mailbox_steps(struct esp_mailbox *mailbox);
/* In step mode, waits for the next step. */
void esp_mailbox_wait_step(struct esp_mailbox *mailbox);
/* Waits until the pace allows the next iteration, or until other work arrives. The time between
 * iterations is the fraction `share` (above 0, at most 1) of the time that the pace sets. */
void esp_mailbox_wait_pace(struct esp_mailbox *mailbox, double share);

#endif
