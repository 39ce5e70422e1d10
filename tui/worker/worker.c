/* worker.c - starts the engine thread, runs its loop and ends it; see worker.h.
 *
 * If there is a command, the loop executes it. If there is none, but a text is being generated,
 * it runs an iteration. Otherwise it waits. An event is recorded before it is shown, so a
 * replay shows what the user saw. The functions at the end of the file run in the UI thread.
 */
#include "tui/worker/worker_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "tui/model/quiet_thread.h"

enum { PATIENCE = 3 /* seconds to wait for the end of the thread */ };

/* ------------------------------------------------------------------ the thread */

/* Reports and records the end of a generation. */
static void end_generation(struct esp_worker *worker)
{
    if (worker->record.recorder)
        esp_recorder_end(worker->record.recorder, "");
    esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
}

/* Runs an iteration. Returns whether the generation continues. */
static bool iterate(struct esp_worker *worker)
{
    char err[256] = "";
    if (esp_worker_compare_turn(worker))
        return true;
    /* The verifier's formulas are evaluated only if the user can watch single iterations. */
    const struct esp_mailbox_now now = esp_mailbox_now(&worker->mailbox);
    esp_worker_keep_begin(worker);
    esp_session_explain(worker->pair.session, now.stepping || now.pace > 0);
    int status = worker->second.compare.second
                     ? esp_compare_step_first(&worker->second.compare, err, sizeof err)
                     : esp_session_step(worker->pair.session, err, sizeof err);
    if (status >= 0 && worker->continuations.count > 0)
        return esp_worker_continue_turn(worker, status == 0);
    if (status > 0)
        return true;
    if (status < 0)
        ESP_TELL(worker, ERROR, "%s", err);
    else
        esp_worker_tell_end(worker);
    end_generation(worker);
    esp_worker_continue_end(worker);
    return false;
}

static void load(struct esp_worker *worker)
{
    char err[512] = "";
    worker->engine_options.progress = esp_worker_progress;
    worker->engine_options.patient = esp_worker_is_patient;
    worker->engine_options.user = worker;
    worker->session_options.observer = esp_worker_observe;
    worker->session_options.user = worker;
    esp_reporter_phase(&worker->report, ESP_PHASE_LOADING, "the models", 0);
    if (esp_models_open(&worker->pair, &worker->engine_options, &worker->session_options, err,
                        sizeof err) < 0) {
        esp_reporter_phase(&worker->report, ESP_PHASE_FAILED, err, 0);
        return;
    }
    worker->serial = 1;
    esp_session_score(worker->pair.session, true, err, sizeof err);
    esp_reporter_loaded(&worker->report, &worker->pair, worker->serial, false);
    esp_worker_warn_of_template(worker);
    esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 1);
}

static void *run(void *user)
{
    struct esp_worker *worker = user;
    bool generating = false, stop, quit;
    load(worker);
    for (;;) {
        struct esp_message *command =
            esp_mailbox_take(&worker->mailbox, !generating, &stop, &quit);
        if (quit) {
            if (command && command->type == ESP_COMMAND_JOB)
                command->job.release(command->job.user);
            free(command);
            break;
        }
        if (generating && stop) {
            generating = false;
            esp_worker_continue_end(worker);
            end_generation(worker);
        }
        if (command)
            generating = esp_worker_run(worker, command, generating);
        free(command);
        if (generating && !command)
            generating = iterate(worker);
    }
    esp_compare_close(&worker->second.compare);
    esp_worker_continue_end(worker);
    esp_worker_stop_recording(worker);
    atomic_store(&worker->keeping.settling, NULL);
    esp_keeper_close(worker->keeping.keeper);
    worker->keeping.keeper = NULL;
    esp_worker_close_retired(worker, worker->serial);
    esp_models_close(&worker->pair);
    atomic_store(&worker->ended, true);
    return NULL;
}

static void destroy(struct esp_worker *worker)
{
    esp_mailbox_close(&worker->mailbox);
    esp_reporter_close(&worker->report);
    free(worker);
}

int esp_worker_open(struct esp_worker **opened, const struct esp_engine_options *engine,
                    const struct esp_session_options *session, int tokens, char *err,
                    size_t errlen)
{
    struct esp_worker *worker = calloc(1, sizeof *worker);
    *opened = NULL;
    snprintf(err, errlen, "cannot start the engine thread: out of memory");
    if (!worker)
        return ESP_E_MEMORY;
    worker->engine_options = *engine;
    worker->session_options = *session;
    worker->limit = tokens;
    esp_mailbox_open(&worker->mailbox);
    int status = esp_reporter_open(&worker->report);
    if (status == 0)
        status = esp_quiet_thread(&worker->thread, run, worker);
    if (status < 0) {
        destroy(worker);
        return status;
    }
    *opened = worker;
    return 0;
}

bool esp_worker_close(struct esp_worker *worker)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    esp_mailbox_quit(&worker->mailbox);
    esp_ring_leave(worker->report.ring);
    const double end = esp_clock() + PATIENCE;
    while (!atomic_load(&worker->ended) && esp_clock() < end)
        nanosleep(&pause, NULL);
    if (!atomic_load(&worker->ended))
        return false;
    pthread_join(worker->thread, NULL);
    destroy(worker);
    return true;
}

/* ------------------------------------------------------------------ for the UI thread */

struct esp_reporter *esp_worker_report(struct esp_worker *worker)
{
    return &worker->report;
}

void esp_worker_post(struct esp_worker *worker, const struct esp_message *command)
{
    const enum esp_command_type type = command->type;
    if (type == ESP_COMMAND_CLEAR || type == ESP_COMMAND_REWIND || type == ESP_COMMAND_FORK ||
        type == ESP_COMMAND_CONTINUE || type == ESP_COMMAND_LOAD)
        free(esp_mailbox_stop(&worker->mailbox));
    esp_mailbox_post(&worker->mailbox, command);
}

void esp_worker_set(struct esp_worker *worker, const char *key, const char *value,
                    const char *origin)
{
    ESP_WORKER_POST(worker, SET, .text = {key, value, origin});
}

struct esp_mailbox *esp_worker_mailbox(struct esp_worker *worker)
{
    return &worker->mailbox;
}

bool esp_worker_settled(struct esp_worker *worker)
{
    struct esp_keeper *keeper = atomic_load(&worker->keeping.settling);
    if (!esp_mailbox_settled(&worker->mailbox))
        return false;
    if (keeper)
        esp_keeper_settle(keeper);
    return esp_mailbox_settled(&worker->mailbox) && !esp_ring_front(worker->report.ring);
}
