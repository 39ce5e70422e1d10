/* worker_parts.h - what the files of the engine's thread share; see worker.h.
 *
 * worker.c starts and ends the thread and posts what the interface asks; worker_run.c does what
 * is asked; worker_events.c reports what happens.
 *
 * What both threads touch is in the mailbox (what is asked of this thread) and in the ring
 * (what it reports). The pair of models and their session belong to the thread alone; the
 * interface reads only an engine's token texts, which never change, after the READY snapshot
 * has named it and before it has seen the next one.
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
    struct esp_compare_run second; /* that is compared with */
    struct retired *retired;
    int serial; /* of the pair; see esp_setup */
    struct esp_session_recording record;
    bool quiet; /* the session does nothing that the interface does not know */
    double progress;
};

/* ---- worker_events.c */

/* An esp_observer of the session; `user` is the worker. */
void esp_worker_observe(void *user, const struct esp_event *event);
/* Of esp_compare_run: something is in the ring. */
void esp_worker_wake_for_second(void *user, bool iteration);
/* Puts an event into the recording, if there is one. */
void esp_worker_note(struct esp_worker *worker, const struct esp_event *event);
/* Nothing is recorded any more; a message or an error says why. */
void esp_worker_not_recording(struct esp_worker *worker, int type, const char *text);
/* An esp_progress; `user` is the worker. */
bool esp_worker_progress(void *user, const char *what, size_t done, size_t total);

/* ---- worker_run.c */

/* Does what was posted; returns whether a generation runs after it. */
bool esp_worker_run(struct esp_worker *worker, const struct esp_message *command,
                    bool generating);
/* After an answer: says how it goes on if it stopped at the limit, and that the context is
 * nearly full, if that is so. */
void esp_worker_tell_end(struct esp_worker *worker);
/* Says that the model's chat template is not known, if that matters. */
void esp_worker_warn_of_template(struct esp_worker *worker);
void esp_worker_stop_recording(struct esp_worker *worker);
/* Closes the pairs older than `serial`. */
void esp_worker_close_retired(struct esp_worker *worker, int serial);

#endif
