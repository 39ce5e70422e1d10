/* worker.c - the engine's thread: its start, its loop, its events and its end; see worker.h.
 *
 * The loop takes a command where there is one, else runs an iteration where a text is being
 * written, else waits. An event is recorded before it is shown, so that what was seen is what a
 * replay shows. The functions at the foot run in the interface's thread.
 */
#include "worker_parts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

enum { PATIENCE = 3 /* seconds to wait for the thread at the end */ };
static const double WARM = 8e-3; /* seconds in which processors come up to speed */

/* ------------------------------------------------------------------ out: events */

/* Threads that help the engine compute sleep after a pause. They are woken before anything is
 * computed, or the engine would take the time that needs for a crowd (kernels/cpu/team.c). */
static void wake_helpers(void)
{
#pragma omp parallel
    {
    }
}

/* After a pause caches are cold and processors slow, and the iteration would take several times
 * as long as without. Where it is short beside the pause, passes that nobody counts go before
 * it, so that the times shown are those at full speed. */
static void keep_pace(struct esp_worker *worker)
{
    struct esp_stats stats;
    const double before = esp_clock();
    esp_mailbox_wait_pace(&worker->mailbox);
    const double start = esp_clock(), paused = start - before;
    const double enough = paused / 10 < WARM ? paused / 10 : WARM;
    esp_session_stats(worker->pair.session, &stats);
    if (stats.iterations == 0 || paused < 4 * stats.decode_seconds / stats.iterations)
        return;
    wake_helpers();
    while (esp_clock() - start < enough)
        esp_session_warm(worker->pair.session);
}

/* Goes into step mode where a breakpoint says so. */
static void check_breakpoints(struct esp_worker *worker, const struct esp_iteration *it)
{
    const struct esp_breakpoints breakpoints = esp_mailbox_breakpoints(&worker->mailbox);
    char text[128] = "";
    for (int i = 0; breakpoints.threshold && i < it->gauge_count && !*text; i++)
        if (it->gauges[i].before != it->gauges[i].after)
            snprintf(text, sizeof text, "%s moved", it->gauges[i].name);
    if (breakpoints.rejected && it->path_length == 0)
        snprintf(text, sizeof text, "everything was rejected");
    if (breakpoints.path > 0 && it->path_length > breakpoints.path)
        snprintf(text, sizeof text, "a path of %d tokens was accepted", it->path_length);
    if (!*text || esp_mailbox_steps(&worker->mailbox))
        return;
    esp_mailbox_step_mode(&worker->mailbox, true);
    esp_report_tell(&worker->report, ESP_SNAPSHOT_MESSAGE, text);
    esp_report_phase(&worker->report, ESP_PHASE_WAITING, "", 0);
    esp_mailbox_wait_step(&worker->mailbox);
}

void esp_worker_not_recording(struct esp_worker *worker, int type, const char *text)
{
    esp_report_tell(&worker->report, ESP_SNAPSHOT_RECORD, "");
    esp_report_tell(&worker->report, type, text);
}

void esp_worker_note(struct esp_worker *worker, const struct esp_event *event)
{
    char err[512];
    bool stepped = event->type == ESP_EVENT_ITERATION && esp_mailbox_steps(&worker->mailbox);
    if ((event->type == ESP_EVENT_ITERATION &&
         !esp_record_step(&worker->record, stepped, err, sizeof err)) ||
        !esp_record_event(&worker->record, event, err, sizeof err))
        esp_worker_not_recording(worker, ESP_SNAPSHOT_ERROR, err);
}

/* Partial trees are sent only in step mode: nobody could see them otherwise. */
static void observe(void *user, const struct esp_event *event)
{
    struct esp_worker *worker = user;
    if (worker->quiet)
        return;
    esp_worker_note(worker, event);
    bool partial = event->type == ESP_EVENT_LAYER || event->type == ESP_EVENT_STAGE;
    bool iteration = event->type == ESP_EVENT_ITERATION;
    bool stepping = (partial || iteration) && esp_mailbox_steps(&worker->mailbox);
    if (partial && !stepping)
        return;
    if (stepping)
        esp_session_explain(worker->pair.session, true);
    int phase = stepping ? ESP_PHASE_WAITING : ESP_PHASE_GENERATING;
    if ((partial || iteration) && worker->report.phase != phase)
        esp_report_phase(&worker->report, phase, "", 0);
    if (esp_ring_write_event(worker->report.ring, event) < 0)
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR,
                        "out of memory: an iteration could not be shown");
    if (iteration && !stepping)
        esp_report_wake_for_iteration(&worker->report);
    else
        esp_report_wake(&worker->report);
    if (partial)
        esp_mailbox_wait_step(&worker->mailbox);
    if (iteration)
        check_breakpoints(worker, event->iteration);
    if (iteration && !stepping)
        keep_pace(worker);
}

/* The second keeps the pace too: after a pause an iteration takes longer, and that must not
 * always be the same one's. */
static void wake_for_second(void *user, bool iteration)
{
    struct esp_worker *worker = user;
    if (!iteration) {
        esp_report_wake(&worker->report);
        return;
    }
    esp_report_wake_for_iteration(&worker->report);
    if (!esp_mailbox_steps(&worker->mailbox))
        keep_pace(worker);
}

bool esp_worker_progress(void *user, const char *what, size_t done, size_t total)
{
    struct esp_worker *worker = user;
    double fraction = total > 0 ? (double)done / (double)total : 0;
    if (fraction < worker->progress || fraction >= worker->progress + 0.01 || fraction >= 1) {
        worker->progress = fraction;
        esp_report_phase(&worker->report, ESP_PHASE_LOADING, what, fraction);
    }
    return worker->pair.session ? !esp_mailbox_stops(&worker->mailbox)
                                : !esp_mailbox_quits(&worker->mailbox);
}

/* ------------------------------------------------------------------ the thread */

/* The generation was ended by the user, or by a failure. */
static void end_generation(struct esp_worker *worker)
{
    if (worker->record.recorder)
        esp_recorder_end(worker->record.recorder, "");
    esp_report_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
}

/* One iteration; returns whether the generation goes on. */
static bool iterate(struct esp_worker *worker)
{
    char err[256] = "";
    if (esp_second_run(&worker->second))
        return true;
    esp_session_explain(worker->pair.session, esp_mailbox_watched(&worker->mailbox));
    int status = esp_session_step(worker->pair.session, err, sizeof err);
    if (status > 0)
        return true;
    if (status < 0)
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR, err);
    end_generation(worker);
    return false;
}

static void load(struct esp_worker *worker)
{
    char err[512] = "";
    worker->engine_options.progress = esp_worker_progress;
    worker->engine_options.user = worker;
    worker->session_options.observer = observe;
    worker->session_options.user = worker;
    esp_report_phase(&worker->report, ESP_PHASE_LOADING, "the models", 0);
    if (esp_pair_open(&worker->pair, &worker->engine_options, &worker->session_options, err,
                      sizeof err) < 0) {
        esp_report_phase(&worker->report, ESP_PHASE_FAILED, err, 0);
        return;
    }
    worker->serial = 1;
    esp_report_loaded(&worker->report, &worker->pair, worker->serial, false);
    esp_report_phase(&worker->report, ESP_PHASE_IDLE, "", 1);
}

static void *run(void *user)
{
    struct esp_worker *worker = user;
    bool generating = false, stop, quit;
    load(worker);
    for (;;) {
        struct esp_posted *command =
            esp_mailbox_take(&worker->mailbox, !generating, &stop, &quit);
        if (quit) {
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
    esp_pair_close(&worker->pair);
    return NULL;
}

static void destroy(struct esp_worker *worker)
{
    esp_mailbox_close(&worker->mailbox);
    esp_report_close(&worker->report);
    free(worker);
}

/* Signals are the interface's business: the thread, and those that the engine starts, block
 * them. */
static int start(struct esp_worker *worker)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&worker->thread, NULL, run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? ESP_E_MEMORY : 0;
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
    int status = esp_report_open(&worker->report);
    worker->second = (struct esp_second){
        .ring = worker->report.ring, .wake = wake_for_second, .user = worker};
    if (status == 0)
        status = start(worker);
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
    clock_gettime(CLOCK_REALTIME, &until);
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
    esp_report_rest(&worker->report);
}

struct esp_ring *esp_worker_ring(struct esp_worker *worker)
{
    return worker->report.ring;
}

void esp_worker_prompt(struct esp_worker *worker, const char *text, size_t length)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_PROMPT, "", text, length, 0);
}

void esp_worker_set(struct esp_worker *worker, const char *key, const char *value,
                    const char *origin)
{
    char text[2048];
    size_t length = (size_t)snprintf(text, sizeof text, "%.1023s", value);
    if (origin)
        length += 1 + (size_t)snprintf(text + length + 1, sizeof text - length - 1, "%.1000s",
                                       origin);
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_SET, key, text, length, 0);
}

void esp_worker_limit(struct esp_worker *worker, int tokens)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_LIMIT, "", "", 0, tokens);
}

void esp_worker_record(struct esp_worker *worker, const char *path, int width, int height,
                       bool over)
{
    char size[32];
    snprintf(size, sizeof size, "%dx%d", width, height);
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_RECORD, size, path, strlen(path), over);
}

void esp_worker_mark(struct esp_worker *worker, const char *text)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_MARK, "", text, strlen(text), 0);
}

void esp_worker_clear(struct esp_worker *worker)
{
    esp_mailbox_stop(&worker->mailbox);
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_CLEAR, "", "", 0, 0);
}

void esp_worker_rewind(struct esp_worker *worker, int count)
{
    esp_mailbox_stop(&worker->mailbox);
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_REWIND, "", "", 0, count);
}

void esp_worker_load(struct esp_worker *worker, const char *key, const char *text,
                     size_t length)
{
    esp_mailbox_stop(&worker->mailbox);
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_LOAD, key, text, length, 0);
}

void esp_worker_seen(struct esp_worker *worker, int serial)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_RETIRE, "", "", 0, serial);
}

void esp_worker_compare(struct esp_worker *worker, const char *choice)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_COMPARE, "", choice, strlen(choice), 0);
}

struct esp_mailbox *esp_worker_mailbox(struct esp_worker *worker)
{
    return &worker->mailbox;
}

bool esp_worker_settled(struct esp_worker *worker)
{
    return esp_mailbox_settled(&worker->mailbox) && !esp_ring_front(worker->report.ring);
}
