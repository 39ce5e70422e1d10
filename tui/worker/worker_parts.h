/* worker_parts.h - declares what the files of the engine thread share; see worker.h.
 *
 * worker.c starts and ends the thread and posts commands. worker_run.c executes commands.
 * worker_events.c reports events, and worker_record.c records them. worker_branch.c switches to
 * other texts. worker_keep.c stores the session in the library of kept sessions.
 * worker_compare.c runs the compared session.
 *
 * The threads share only the mailbox (commands) and the ring (reports). The models and the
 * session belong to the engine thread. The only exception is the texts of an engine's tokens,
 * which never change. The UI thread can read them after it has applied the READY snapshot of
 * these models, until it has applied the next READY snapshot.
 */
#ifndef ESP_WORKER_PARTS_H
#define ESP_WORKER_PARTS_H

#include <limits.h>

#include "engine/compare.h"
#include "sessions/recorder.h"
#include "tui/worker/keeper.h"
#include "tui/worker/models.h"
#include "tui/worker/reporter.h"
#include "tui/worker/worker.h"

struct retired;

/* Holds the second session of a comparison. */
struct esp_second {
    struct esp_compare compare;      /* compare.second is NULL while nothing is compared */
    char drafter[256], verifier[96]; /* as the user typed them; verifier "": the default */
    bool differed;                   /* the user has been told that the texts differ */
};

/* Describes the recording of the session. In a zero-initialised struct, nothing is recorded. */
struct esp_session_recording {
    struct esp_recorder *recorder;
    char path[PATH_MAX];
    bool stepped; /* true: the previous iteration ran in step mode */
};

/* Holds the data for storing the session in the library of kept sessions. */
struct esp_keeping {
    struct esp_keeper *keeper;             /* NULL before the first ESP_COMMAND_KEEP */
    _Atomic(struct esp_keeper *) settling; /* the same keeper, for the UI thread */
    struct esp_recording_header header;
    int generation, generations; /* number of the current generation and of the next */
    bool begun;                  /* true: the keeper knows the current generation */
};

enum { ESP_MOST_CONTINUATIONS = ESP_LIKELY };

/* Describes one of several continuations of a text, which are generated in turns. */
struct esp_continuation {
    struct esp_text_token *text; /* (count) the whole text with the continuation */
    int count, capacity;
    int begin; /* number of tokens before the continuation */
    struct esp_generator generator;
    int generation; /* number of its generation; -1 if there is none yet */
    int left;       /* number of tokens left to generate; 0: it has ended */
};

/* Holds all continuations that are generated in turns. */
struct esp_continuations {
    struct esp_continuation each[ESP_MOST_CONTINUATIONS]; /* (count) */
    int count; /* number of continuations; 0 while none are generated */
    int now;   /* index of the continuation that is being generated */
    int turn;  /* length of this continuation's text when its turn began */
};

struct esp_worker {
    pthread_t thread;
    atomic_bool ended; /* true: the thread has done all its work */
    struct esp_mailbox mailbox;
    struct esp_reporter report;

    struct esp_engine_options engine_options;
    struct esp_session_options session_options;
    int limit;
    struct esp_models pair;
    struct esp_second second;
    struct retired *retired;
    int serial; /* number of the loaded pair, as in struct esp_setup */
    struct esp_session_recording record;
    struct esp_keeping keeping;
    struct esp_continuations continuations;
    bool quiet;  /* true: events of the session are neither recorded nor shown */
    bool hidden; /* true: events of the session are recorded but not shown */
    double progress;
    double asked; /* time at which the user was last told that a rank does not answer */
};

/* Answers a command, for example with ESP_TELL(worker, ERROR, "%s", err). */
#define ESP_TELL(worker, name, ...)                                                            \
    esp_reporter_tell(&(worker)->report, ESP_SNAPSHOT_##name, __VA_ARGS__)

/* ---- worker_events.c */

/* This is the observer (esp_observer) of the session. `user` is the worker. */
void esp_worker_observe(void *user, const struct esp_event *event);
/* This is the observer (esp_observer) of the compared session. `user` is the worker. */
void esp_worker_observe_second(void *user, const struct esp_event *event);
/* This is the function `patient` of struct esp_engine_options. It tells the user that a rank
 * does not answer. After that, the key that stops a generation ends the rank. */
bool esp_worker_is_patient(void *user, int rank, int ranks, double seconds);
/* This is the progress function (esp_progress) of the engine. `user` is the worker. */
bool esp_worker_progress(void *user, const char *what, size_t done, size_t total);

/* ---- worker_record.c */

/* Executes ESP_COMMAND_RECORD, which starts or ends the recording. At the start, records the
 * current text as prompts. */
void esp_worker_record(struct esp_worker *worker, const struct esp_message *command);
void esp_worker_stop_recording(struct esp_worker *worker);
/* Records an event if the session is being recorded. If step mode has been switched on or off,
 * first records the setting "step", because iteration times in step mode mean little. */
void esp_worker_note(struct esp_worker *worker, const struct esp_event *event);

/* ---- worker_keep.c */

/* Executes ESP_COMMAND_KEEP. The first such command begins to store the session in the library.
 * Later commands make the session private or store it again. Returns whether a kept session is
 * continued with these models. */
bool esp_worker_keep(struct esp_worker *worker, const struct esp_message *command);
/* Must be called after models were loaded. `anew` is true if the vocabulary has changed. */
void esp_worker_keep_models(struct esp_worker *worker, bool anew);
/* Must be called before an iteration. Begins a generation unless the current one continues. */
void esp_worker_keep_begin(struct esp_worker *worker);
/* Assigns the next iterations to an earlier generation. If `generation` is -1, assigns them to
 * a new one. */
void esp_worker_keep_again(struct esp_worker *worker, int generation);
void esp_worker_keep_event(struct esp_worker *worker, const struct esp_event *event);

/* ---- worker_compare.c */

/* Begins a comparison. If `drafter` is NULL, ends it instead. If `verifier` is NULL, uses the
 * best lossless verifier. If the second session cannot be opened, changes nothing. */
void esp_worker_compare(struct esp_worker *worker, const char *drafter, const char *verifier);
/* If there is a comparison, ends it and reports this. */
void esp_worker_compare_end(struct esp_worker *worker);
/* Restarts the comparison with the same drafter and verifier, after the first session was
 * replaced. */
void esp_worker_compare_again(struct esp_worker *worker);
/* Must be called when the first session has received a prompt or a new token limit. */
void esp_worker_compare_begin(struct esp_worker *worker);
/* Must be called when a setting of the first session has changed. Changes it in the second
 * session, too, unless the setting belongs to the drafter or verifier. */
void esp_worker_compare_set(struct esp_worker *worker, const char *key, const char *value);
/* If it is the turn of the second session, runs an iteration of it and returns true. */
bool esp_worker_compare_turn(struct esp_worker *worker);

/* ---- worker_branch.c */

/* Starts a generation and reports this. Returns true. */
bool esp_worker_go_on(struct esp_worker *worker);
/* Continues a kept session: switches to its text. The interface already has all texts of the
 * session. */
void esp_worker_resume(struct esp_worker *worker, const struct esp_message *command);
/* Switches to the command's text. Returns whether a generation has started. */
bool esp_worker_fork(struct esp_worker *worker, const struct esp_message *command);
/* Begins to generate several continuations of a text, in turns. Returns whether this
 * succeeded. */
bool esp_worker_continue(struct esp_worker *worker, const struct esp_message *command);
/* Must be called after an iteration of a continuation. `ended` is true after the last one. If
 * the turn is over, begins the turn of the next continuation. Returns whether a generation
 * runs. */
bool esp_worker_continue_turn(struct esp_worker *worker, bool ended);
/* Ends the generation of continuations. */
void esp_worker_continue_end(struct esp_worker *worker);
/* Reports the target's scores of tokens [first, first + count) of the text. */
void esp_worker_scores(struct esp_worker *worker, int first, int count);

/* ---- worker_run.c */

/* Executes a command. Returns whether a generation runs after it. */
bool esp_worker_run(struct esp_worker *worker, const struct esp_message *command,
                    bool generating);
/* Must be called after an answer. If the answer stopped at the token limit, tells the user how
 * to continue it. Warns if the context is nearly full. */
void esp_worker_tell_end(struct esp_worker *worker);
/* Warns if the session should use the model's chat template, but espalier does not know this
 * template. */
void esp_worker_warn_of_template(struct esp_worker *worker);
/* Closes all pairs of models with a lower number than `serial`. */
void esp_worker_close_retired(struct esp_worker *worker, int serial);

#endif
