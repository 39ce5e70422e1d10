/* worker.c - the engine's thread; see worker.h.
 *
 * What both threads touch is in the mailbox (what is asked of this thread) and in the ring
 * (what it reports). The engine and the session belong to the thread alone; the interface reads
 * only the engine's token texts, which never change, after it has seen the READY snapshot.
 */
#include "worker.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 64,
    WAKE_MS = 30, /* between wake-ups for iterations: the screen is not drawn more often */
    PATIENCE = 3, /* seconds to wait for the thread at the end */
};

struct esp_worker {
    pthread_t thread;
    struct esp_mailbox mailbox;
    struct esp_ring *ring;
    int wake;
    atomic_bool awake; /* the wake descriptor is readable */

    struct esp_engine_options engine_options;
    struct esp_session_options session_options;
    int limit;
    struct esp_engine *engine;
    struct esp_session *session;
    double progress;
    int phase;
    struct timespec woken; /* when an iteration last woke the interface */
};

/* ------------------------------------------------------------------ out: snapshots */

static void wake(struct esp_worker *worker)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&worker->awake, true) && write(worker->wake, &one, sizeof one) < 0)
        atomic_store(&worker->awake, false);
}

/* The same for an iteration, but not for each of many: every wake-up takes a processor from
 * those that compute. What is not announced now goes with the next. */
static void wake_for_iteration(struct esp_worker *worker)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ms = (double)(now.tv_sec - worker->woken.tv_sec) * 1e3 +
                (double)(now.tv_nsec - worker->woken.tv_nsec) * 1e-6;
    if (ms < WAKE_MS)
        return;
    worker->woken = now;
    wake(worker);
}

static void tell(struct esp_worker *worker, int type, const char *text)
{
    struct esp_snapshot *snapshot = esp_ring_write(worker->ring, type);
    if (!snapshot)
        return;
    snprintf(snapshot->text, sizeof snapshot->text, "%s", text);
    esp_ring_publish(worker->ring);
    wake(worker);
}

static void tell_phase(struct esp_worker *worker, int phase, const char *text, double fraction)
{
    struct esp_snapshot *snapshot = esp_ring_write(worker->ring, ESP_SNAPSHOT_PHASE);
    worker->phase = phase;
    if (!snapshot)
        return;
    snapshot->phase = phase;
    snapshot->fraction = fraction;
    snprintf(snapshot->text, sizeof snapshot->text, "%s", text);
    esp_ring_publish(worker->ring);
    wake(worker);
}

/* What is loaded and set now. */
static void tell_loaded(struct esp_worker *worker)
{
    struct esp_snapshot *snapshot = esp_ring_write(worker->ring, ESP_SNAPSHOT_READY);
    struct esp_model_info info;
    if (!snapshot)
        return;
    struct esp_loaded *loaded = &snapshot->loaded;
    *loaded = (struct esp_loaded){.seconds = esp_engine_load_seconds(worker->engine)};
    if (esp_engine_target(worker->engine, &info))
        snprintf(loaded->target, sizeof loaded->target, "%s", info.name);
    if (esp_engine_draft(worker->engine, &info))
        snprintf(loaded->draft, sizeof loaded->draft, "%s", info.name);
    snprintf(loaded->backend, sizeof loaded->backend, "%s", esp_engine_backend(worker->engine));
    snprintf(loaded->device, sizeof loaded->device, "%s", esp_engine_device(worker->engine));
    esp_session_get(worker->session, "drafter", loaded->drafter, sizeof loaded->drafter);
    esp_session_get(worker->session, "verifier", loaded->verifier, sizeof loaded->verifier);
    esp_ring_publish(worker->ring);
    wake(worker);
}

/* Wakes the threads that help the engine compute. After a pause they sleep, and the time it
 * takes to wake them would be counted as the next iteration's. */
static void wake_helpers(void)
{
#pragma omp parallel
    {
    }
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
    tell(worker, ESP_SNAPSHOT_MESSAGE, text);
    tell_phase(worker, ESP_PHASE_WAITING, "", 0);
    esp_mailbox_wait_step(&worker->mailbox);
}

/* Partial trees are sent only in step mode: nobody could see them otherwise. */
static void observe(void *user, const struct esp_event *event)
{
    struct esp_worker *worker = user;
    bool partial = event->type == ESP_EVENT_LAYER || event->type == ESP_EVENT_STAGE;
    bool iteration = event->type == ESP_EVENT_ITERATION;
    bool stepping = (partial || iteration) && esp_mailbox_steps(&worker->mailbox);
    if (partial && !stepping)
        return;
    if (stepping)
        esp_session_explain(worker->session, true);
    int phase = stepping ? ESP_PHASE_WAITING : ESP_PHASE_GENERATING;
    if ((partial || iteration) && worker->phase != phase)
        tell_phase(worker, phase, "", 0);
    if (esp_ring_write_event(worker->ring, event) < 0)
        tell(worker, ESP_SNAPSHOT_ERROR, "out of memory: an iteration could not be shown");
    if (iteration && !stepping)
        wake_for_iteration(worker);
    else
        wake(worker);
    if (partial)
        esp_mailbox_wait_step(&worker->mailbox);
    if (iteration)
        check_breakpoints(worker, event->iteration);
    if (iteration && !stepping && esp_mailbox_wait_pace(&worker->mailbox))
        wake_helpers();
}

static bool report_progress(void *user, const char *what, size_t done, size_t total)
{
    struct esp_worker *worker = user;
    double fraction = total > 0 ? (double)done / (double)total : 0;
    if (fraction < worker->progress || fraction >= worker->progress + 0.01 || fraction >= 1) {
        worker->progress = fraction;
        tell_phase(worker, ESP_PHASE_LOADING, what, fraction);
    }
    return !esp_mailbox_quits(&worker->mailbox);
}

/* ------------------------------------------------------------------ in: commands */

/* The text joined to what is there: a prompt that does not start with a blank starts a
 * paragraph. */
static char *joined(struct esp_worker *worker, const struct esp_posted *command, size_t *length)
{
    int count;
    const int32_t *tokens = esp_session_tokens(worker->session, &count);
    size_t last_length = 0;
    const char *last =
        count > 0 ? esp_token_bytes(worker->engine, tokens[count - 1], &last_length) : NULL;
    bool starts_blank = command->length > 0 && strchr(" \t\r\n", command->text[0]);
    bool ends_line = last && last_length > 0 && last[last_length - 1] == '\n';
    const char *between = count == 0 || starts_blank || ends_line ? "" : "\n\n";
    *length = strlen(between) + command->length;
    char *text = malloc(*length + 1);
    if (text)
        snprintf(text, *length + 1, "%s%s", between, command->text);
    if (text)
        memcpy(text + strlen(between), command->text, command->length);
    return text;
}

static int prefill(struct esp_worker *worker, const struct esp_posted *command, char *err,
                   size_t errlen)
{
    size_t length;
    int status = ESP_E_MEMORY;
    char *text = joined(worker, command, &length);
    int32_t *tokens = text ? malloc((length + 1) * sizeof *tokens) : NULL;
    snprintf(err, errlen, "no memory for the prompt");
    if (tokens) {
        int count = esp_tokenize(worker->engine, text, length, tokens, (int)length + 1);
        status = esp_session_prompt(worker->session, tokens, count, err, errlen);
    }
    free(tokens);
    free(text);
    return status;
}

/* Returns whether a generation has begun. */
static bool run_prompt(struct esp_worker *worker, const struct esp_posted *command)
{
    char err[256] = "";
    int count;
    esp_session_tokens(worker->session, &count);
    if (command->length == 0 && count == 0) {
        tell(worker, ESP_SNAPSHOT_ERROR, "type the beginning of a text first");
        return false;
    }
    if (command->length > 0) {
        tell_phase(worker, ESP_PHASE_PREFILL, "", 0);
        if (prefill(worker, command, err, sizeof err) < 0) {
            tell(worker, ESP_SNAPSHOT_ERROR, err);
            tell_phase(worker, ESP_PHASE_IDLE, "", 0);
            return false;
        }
    }
    esp_session_allow(worker->session, worker->limit);
    tell_phase(worker, ESP_PHASE_GENERATING, "", 0);
    return true;
}

static void run_set(struct esp_worker *worker, const struct esp_posted *command)
{
    char err[256], now[256], text[400];
    if (esp_session_set(worker->session, command->key, command->text, err, sizeof err) < 0) {
        tell(worker, ESP_SNAPSHOT_ERROR, err);
        return;
    }
    if (esp_session_get(worker->session, command->key, now, sizeof now) < 0)
        snprintf(now, sizeof now, "%.200s", command->text);
    tell_loaded(worker);
    snprintf(text, sizeof text, "%s = %s", command->key, now);
    tell(worker, ESP_SNAPSHOT_MESSAGE, text);
}

/* Returns whether a generation runs after the command. */
static bool run_command(struct esp_worker *worker, const struct esp_posted *command,
                        bool generating)
{
    switch (command->type) {
    case ESP_COMMAND_PROMPT:
        return run_prompt(worker, command);
    case ESP_COMMAND_SET:
        run_set(worker, command);
        return generating;
    case ESP_COMMAND_LIMIT:
        worker->limit = command->number;
        return generating;
    default:
        esp_session_clear(worker->session);
        tell(worker, ESP_SNAPSHOT_CLEAR, "");
        tell_phase(worker, ESP_PHASE_IDLE, "", 0);
        return false;
    }
}

/* One iteration; returns whether the generation goes on. */
static bool iterate(struct esp_worker *worker)
{
    char err[256] = "";
    esp_session_explain(worker->session, esp_mailbox_watched(&worker->mailbox));
    int status = esp_session_step(worker->session, err, sizeof err);
    if (status > 0)
        return true;
    if (status < 0)
        tell(worker, ESP_SNAPSHOT_ERROR, err);
    tell_phase(worker, ESP_PHASE_IDLE, "", 0);
    return false;
}

/* ------------------------------------------------------------------ the thread */

static bool load(struct esp_worker *worker)
{
    char err[512] = "";
    worker->engine_options.progress = report_progress;
    worker->engine_options.user = worker;
    worker->session_options.observer = observe;
    worker->session_options.user = worker;
    tell_phase(worker, ESP_PHASE_LOADING, "the models", 0);
    int status = esp_engine_open(&worker->engine, &worker->engine_options, err, sizeof err);
    if (status == 0)
        status = esp_session_open(&worker->session, worker->engine, &worker->session_options,
                                  err, sizeof err);
    if (status < 0) {
        tell_phase(worker, ESP_PHASE_FAILED, err, 0);
        return false;
    }
    tell_loaded(worker);
    tell_phase(worker, ESP_PHASE_IDLE, "", 1);
    return true;
}

static void *run(void *user)
{
    struct esp_worker *worker = user;
    bool loaded = load(worker), generating = false, stop, quit;
    for (;;) {
        struct esp_posted *command =
            esp_mailbox_take(&worker->mailbox, !generating, &stop, &quit);
        if (quit) {
            free(command);
            break;
        }
        if (generating && stop) {
            generating = false;
            tell_phase(worker, ESP_PHASE_IDLE, "", 0);
        }
        if (command && loaded)
            generating = run_command(worker, command, generating);
        free(command);
        if (generating && !command)
            generating = iterate(worker);
    }
    esp_session_close(worker->session);
    esp_engine_close(worker->engine);
    return NULL;
}

static void destroy(struct esp_worker *worker)
{
    esp_mailbox_close(&worker->mailbox);
    esp_ring_close(worker->ring);
    if (worker->wake >= 0)
        close(worker->wake);
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
    worker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status = worker->wake < 0 ? ESP_E_MEMORY
                                  : esp_ring_open(&worker->ring, SLOTS, ESP_MAX_NODES + 1);
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
    esp_ring_leave(worker->ring);
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
    return worker->wake;
}

void esp_worker_rest(struct esp_worker *worker)
{
    uint64_t count;
    if (read(worker->wake, &count, sizeof count) > 0)
        atomic_store(&worker->awake, false);
}

struct esp_ring *esp_worker_ring(struct esp_worker *worker)
{
    return worker->ring;
}

const char *esp_worker_token_text(void *user, int32_t token, size_t *length)
{
    struct esp_worker *worker = user;
    return esp_token_bytes(worker->engine, token, length);
}

void esp_worker_prompt(struct esp_worker *worker, const char *text, size_t length)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_PROMPT, "", text, length, 0);
}

void esp_worker_set(struct esp_worker *worker, const char *key, const char *value)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_SET, key, value, strlen(value), 0);
}

void esp_worker_limit(struct esp_worker *worker, int tokens)
{
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_LIMIT, "", "", 0, tokens);
}

void esp_worker_clear(struct esp_worker *worker)
{
    esp_mailbox_stop(&worker->mailbox);
    esp_mailbox_post(&worker->mailbox, ESP_COMMAND_CLEAR, "", "", 0, 0);
}

struct esp_mailbox *esp_worker_mailbox(struct esp_worker *worker)
{
    return &worker->mailbox;
}

bool esp_worker_settled(struct esp_worker *worker)
{
    return esp_mailbox_settled(&worker->mailbox) && !esp_ring_front(worker->ring);
}
