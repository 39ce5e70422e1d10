/* worker_parts.h - shared by the files of the engine thread; see worker.h.
 *
 * worker.c starts and ends the thread and posts commands. worker_run.c executes them.
 * worker_events.c reports events.
 *
 * The threads share only the mailbox (commands) and the ring (reports). Models and session
 * belong to the engine thread. The one exception are an engine's token texts, which never
 * change: the UI thread reads them from the READY snapshot that names them until it has applied
 * the next one.
 */
#ifndef ESP_WORKER_PARTS_H
#define ESP_WORKER_PARTS_H

#include "tui/worker/models.h"
#include "tui/worker/session_recording.h"
#include "tui/worker/reporter.h"
#include "tui/worker/compare_run.h"
#include "tui/worker/worker.h"

struct retired;

struct esp_worker {
    pthread_t thread;
    struct esp_mailbox mailbox;
    struct esp_reporter report;

    struct esp_engine_options engine_options;
    struct esp_session_options session_options;
    int limit;
    struct esp_models pair;
    struct esp_compare_run second; /* the compared session */
    struct retired *retired;
    int serial; /* of the pair; see esp_setup */
    struct esp_session_recording record;
    bool quiet; /* events of the session are not reported */
    double progress;
};

/* ---- worker_events.c */

/* An esp_observer of the session; `user` is the worker. */
void esp_worker_observe(void *user, const struct esp_event *event);
/* The wake() of esp_compare_run. */
void esp_worker_wake_for_second(void *user, bool iteration);
/* Records an event, if the session is recorded. */
void esp_worker_note(struct esp_worker *worker, const struct esp_event *event);
/* Reports the end of the recording, with a message or an error. */
void esp_worker_not_recording(struct esp_worker *worker, int type, const char *text);
/* An esp_progress; `user` is the worker. */
bool esp_worker_progress(void *user, const char *what, size_t done, size_t total);

/* ---- worker_run.c */

/* Executes a command. Returns whether a generation runs after it. */
bool esp_worker_run(struct esp_worker *worker, const struct esp_message *command,
                    bool generating);
/* After an answer: tells the user how to continue if it stopped at the limit, and warns if the
 * context is nearly full. */
void esp_worker_tell_end(struct esp_worker *worker);
/* Warns if the model has an unknown chat template and one is needed. */
void esp_worker_warn_of_template(struct esp_worker *worker);
void esp_worker_stop_recording(struct esp_worker *worker);
/* Closes the pairs older than `serial`. */
void esp_worker_close_retired(struct esp_worker *worker, int serial);

#endif
