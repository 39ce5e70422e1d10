/* worker.c - the engine's thread: its start, its loop and its end; see worker.h.
 *
 * The loop takes a command where there is one, else runs an iteration where a text is being
 * written, else waits. An event is recorded before it is shown, so that what was seen is what a
 * replay shows. The functions at the foot run in the interface's thread.
 */
#include "tui/worker/worker_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tui/model/quiet_thread.h"

enum { PATIENCE = 3 /* seconds to wait for the thread at the end */ };

/* ------------------------------------------------------------------ the thread */

/* The generation was ended by the user, or by a failure. */
static void end_generation(struct esp_worker *worker)
{
    if (worker->record.recorder)
        esp_recorder_end(worker->record.recorder, "");
    esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
}

/* One iteration; returns whether the generation goes on. */
static bool iterate(struct esp_worker *worker)
{
    char err[256] = "";
    if (esp_compare_run_run(&worker->second))
        return true;
    esp_session_explain(worker->pair.session, esp_mailbox_watched(&worker->mailbox));
    int status = worker->second.compare.second
                     ? esp_compare_step_first(&worker->second.compare, err, sizeof err)
                     : esp_session_step(worker->pair.session, err, sizeof err);
    if (status > 0)
        return true;
    if (status < 0)
        esp_reporter_tell(&worker->report, ESP_SNAPSHOT_ERROR, err);
    else
        esp_worker_tell_end(worker);
    end_generation(worker);
    return false;
}

static void load(struct esp_worker *worker)
{
    char err[512] = "";
    worker->engine_options.progress = esp_worker_progress;
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
            end_generation(worker);
        }
        if (command)
            generating = esp_worker_run(worker, command, generating);
        free(command);
        if (generating && !command)
            generating = iterate(worker);
    }
    esp_compare_close(&worker->second.compare);
    esp_worker_stop_recording(worker);
    esp_worker_close_retired(worker, worker->serial);
    esp_models_close(&worker->pair);
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
    snprintf(err, errlen, "the engine's thread could not be started: out of memory");
    if (!worker)
        return ESP_E_MEMORY;
    worker->engine_options = *engine;
    worker->session_options = *session;
    worker->limit = tokens;
    esp_mailbox_open(&worker->mailbox);
    int status = esp_reporter_open(&worker->report);
    worker->second = (struct esp_compare_run){
        .ring = worker->report.ring, .wake = esp_worker_wake_for_second, .user = worker};
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
    struct timespec until;
    esp_mailbox_quit(&worker->mailbox);
    esp_ring_leave(worker->report.ring);
    clock_gettime(CLOCK_REALTIME, &until); /* of a join by another clock TSan knows nothing */
    until.tv_sec += PATIENCE;
    if (pthread_timedjoin_np(worker->thread, NULL, &until) != 0)
        return false;
    destroy(worker);
    return true;
}

/* ------------------------------------------------------------------ the interface's side */

int esp_worker_wake_fd(const struct esp_worker *worker)
{
    return worker->report.wake;
}

void esp_worker_rest(struct esp_worker *worker)
{
    esp_reporter_rest(&worker->report);
}

struct esp_ring *esp_worker_ring(struct esp_worker *worker)
{
    return worker->report.ring;
}

static void post(struct esp_worker *worker, struct esp_message command)
{
    esp_mailbox_post(&worker->mailbox, &command);
}

void esp_worker_prompt(struct esp_worker *worker, const char *text, size_t length)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_PROMPT, .prompt = {text, length}});
}

void esp_worker_set(struct esp_worker *worker, const char *key, const char *value,
                    const char *origin)
{
    post(worker,
         (struct esp_message){.type = ESP_COMMAND_SET, .setting = {key, value, origin}});
}

void esp_worker_ask(struct esp_worker *worker, const char *key)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_ASK, .key = key});
}

void esp_worker_limit(struct esp_worker *worker, int tokens)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_LIMIT, .limit = tokens});
}

void esp_worker_record(struct esp_worker *worker, const struct esp_recording_request *request)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_RECORD, .record = *request});
}

void esp_worker_mark(struct esp_worker *worker, const char *text)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_MARK, .mark = text});
}

void esp_worker_clear(struct esp_worker *worker)
{
    free(esp_mailbox_stop(&worker->mailbox));
    post(worker, (struct esp_message){.type = ESP_COMMAND_CLEAR});
}

void esp_worker_rewind(struct esp_worker *worker, int count)
{
    free(esp_mailbox_stop(&worker->mailbox));
    post(worker, (struct esp_message){.type = ESP_COMMAND_REWIND, .rewind = count});
}

void esp_worker_load(struct esp_worker *worker, const struct esp_models_change *change)
{
    free(esp_mailbox_stop(&worker->mailbox));
    post(worker, (struct esp_message){.type = ESP_COMMAND_LOAD, .load = *change});
}

void esp_worker_seen(struct esp_worker *worker, int serial)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_RETIRE, .retire = serial});
}

void esp_worker_compare(struct esp_worker *worker, const struct esp_compare_choice *choice)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_COMPARE, .compare = *choice});
}

void esp_worker_job(struct esp_worker *worker, const struct esp_job *job)
{
    post(worker, (struct esp_message){.type = ESP_COMMAND_JOB, .job = *job});
}

struct esp_mailbox *esp_worker_mailbox(struct esp_worker *worker)
{
    return &worker->mailbox;
}

bool esp_worker_settled(struct esp_worker *worker)
{
    return esp_mailbox_settled(&worker->mailbox) && !esp_ring_front(worker->report.ring);
}
