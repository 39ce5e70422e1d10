/* worker.c - the engine's thread, its mailbox and its step mode; see worker.h.
 *
 * `lock` protects what both threads touch: the list of commands and the flags and numbers up to
 * `busy`. The engine and the session belong to the thread alone; the interface reads only the
 * engine's token texts, which never change, after it has seen the READY snapshot.
 */
#include "worker.h"

#include <pthread.h>
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

enum command_type { COMMAND_PROMPT, COMMAND_SET, COMMAND_LIMIT, COMMAND_CLEAR };

struct command {
    struct command *next;
    int type, number;
    size_t length;
    char key[64];
    char text[]; /* (length) and a NUL */
};

struct esp_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct command *first, **last;
    bool stop, quit, stepping;
    int steps;         /* stages that may run without waiting */
    double pace;       /* iterations per second, or 0 */
    struct esp_breakpoints breakpoints;
    bool working;      /* not waiting for a command or a step */
    bool busy;         /* not waiting for a command */
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
    struct timespec iterated; /* when the last iteration ended, pauses included */
    struct timespec woken;    /* when an iteration last woke the interface */
};

/* ------------------------------------------------------------------ out: snapshots */

static void wake(struct esp_worker *worker)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&worker->awake, true) && write(worker->wake, &one, sizeof one) < 0)
        atomic_store(&worker->awake, false);
}

/* The same for an iteration, but not for each of many: every wake-up takes a processor from those
 * that compute. What is not announced now goes with the next. */
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

/* In step mode: waits until told to go on. */
static void wait_for_step(struct esp_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (worker->stepping && worker->steps == 0 && !worker->stop && !worker->quit) {
        worker->working = false;
        pthread_cond_wait(&worker->changed, &worker->lock);
        worker->working = true;
    }
    if (worker->stepping && worker->steps > 0)
        worker->steps--;
    pthread_mutex_unlock(&worker->lock);
}

static bool is_stepping(struct esp_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool stepping = worker->stepping && !worker->stop && !worker->quit;
    pthread_mutex_unlock(&worker->lock);
    return stepping;
}

static bool earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Wakes the threads that help the engine compute. After a pause they sleep, and the time it
 * takes to wake them would be counted as the next iteration's. */
static void wake_helpers(void)
{
#pragma omp parallel
    {
    }
}

/* Waits until the pace allows the next iteration, or something else is to do. */
static void keep_pace(struct esp_worker *worker)
{
    struct timespec due = worker->iterated;
    pthread_mutex_lock(&worker->lock);
    double pause = worker->pace > 0 ? 1 / worker->pace : 0;
    double pace = worker->pace;
    due.tv_sec += (time_t)pause;
    due.tv_nsec += (long)((pause - (double)(time_t)pause) * 1e9);
    if (due.tv_nsec >= 1000000000) {
        due.tv_nsec -= 1000000000;
        due.tv_sec++;
    }
    while (pace > 0 && worker->pace == pace && !worker->first && !worker->stop &&
           !worker->quit && !worker->stepping)
        if (pthread_cond_timedwait(&worker->changed, &worker->lock, &due) != 0)
            break;
    pthread_mutex_unlock(&worker->lock);
    clock_gettime(CLOCK_MONOTONIC, &worker->iterated);
    if (pace > 0 && earlier(&worker->iterated, &due))
        worker->iterated = due;
    if (pace > 0)
        wake_helpers();
}

/* Goes into step mode where a breakpoint says so. */
static void check_breakpoints(struct esp_worker *worker, const struct esp_iteration *it)
{
    pthread_mutex_lock(&worker->lock);
    const struct esp_breakpoints breakpoints = worker->breakpoints;
    pthread_mutex_unlock(&worker->lock);
    char text[128] = "";
    for (int i = 0; breakpoints.threshold && i < it->gauge_count && !*text; i++)
        if (it->gauges[i].before != it->gauges[i].after)
            snprintf(text, sizeof text, "%s moved", it->gauges[i].name);
    if (breakpoints.rejected && it->path_length == 0)
        snprintf(text, sizeof text, "everything was rejected");
    if (breakpoints.path > 0 && it->path_length > breakpoints.path)
        snprintf(text, sizeof text, "a path of %d tokens was accepted", it->path_length);
    if (!*text || is_stepping(worker))
        return;
    esp_worker_step_mode(worker, true);
    tell(worker, ESP_SNAPSHOT_MESSAGE, text);
    tell_phase(worker, ESP_PHASE_WAITING, "", 0);
    wait_for_step(worker);
}

/* Partial trees are sent only in step mode: nobody could see them otherwise. */
static void observe(void *user, const struct esp_event *event)
{
    struct esp_worker *worker = user;
    bool partial = event->type == ESP_EVENT_LAYER || event->type == ESP_EVENT_STAGE;
    bool iteration = event->type == ESP_EVENT_ITERATION;
    bool stepping = (partial || iteration) && is_stepping(worker);
    if (partial && !stepping)
        return;
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
        wait_for_step(worker);
    if (iteration)
        check_breakpoints(worker, event->iteration);
    if (iteration && !stepping)
        keep_pace(worker);
}

static bool report_progress(void *user, const char *what, size_t done, size_t total)
{
    struct esp_worker *worker = user;
    double fraction = total > 0 ? (double)done / (double)total : 0;
    if (fraction < worker->progress || fraction >= worker->progress + 0.01 || fraction >= 1) {
        worker->progress = fraction;
        tell_phase(worker, ESP_PHASE_LOADING, what, fraction);
    }
    pthread_mutex_lock(&worker->lock);
    bool go_on = !worker->quit;
    pthread_mutex_unlock(&worker->lock);
    return go_on;
}

/* ------------------------------------------------------------------ in: commands */

/* The text joined to what is there: a prompt that does not start with a blank starts a
 * paragraph. */
static char *joined(struct esp_worker *worker, const struct command *command, size_t *length)
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

static int prefill(struct esp_worker *worker, const struct command *command, char *err,
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
static bool run_prompt(struct esp_worker *worker, const struct command *command)
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

static void run_set(struct esp_worker *worker, const struct command *command)
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
static bool run_command(struct esp_worker *worker, const struct command *command,
                        bool generating)
{
    switch (command->type) {
    case COMMAND_PROMPT:
        return run_prompt(worker, command);
    case COMMAND_SET:
        run_set(worker, command);
        return generating;
    case COMMAND_LIMIT:
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

/* Takes the next command, waiting for one if nothing else is to do. */
static struct command *next_command(struct esp_worker *worker, bool wait, bool *stop,
                                    bool *quit)
{
    pthread_mutex_lock(&worker->lock);
    while (wait && !worker->first && !worker->quit) {
        worker->working = worker->busy = worker->stop = false;
        worker->steps = 0;
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    worker->working = worker->busy = true;
    struct command *command = worker->first;
    if (command) {
        worker->first = command->next;
        if (!worker->first)
            worker->last = &worker->first;
    }
    *stop = worker->stop;
    *quit = worker->quit;
    worker->stop = false;
    pthread_mutex_unlock(&worker->lock);
    return command;
}

static void *run(void *user)
{
    struct esp_worker *worker = user;
    bool loaded = load(worker), generating = false, stop, quit;
    for (;;) {
        struct command *command = next_command(worker, !generating, &stop, &quit);
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
    while (worker->first) {
        struct command *next = worker->first->next;
        free(worker->first);
        worker->first = next;
    }
    esp_ring_close(worker->ring);
    if (worker->wake >= 0)
        close(worker->wake);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
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
    worker->last = &worker->first;
    worker->working = worker->busy = true;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
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
    pthread_mutex_lock(&worker->lock);
    worker->quit = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
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

static void post(struct esp_worker *worker, int type, const char *key, const char *text,
                 size_t length, int number)
{
    struct command *command = malloc(sizeof *command + length + 1);
    if (!command)
        return;
    *command = (struct command){.type = type, .number = number, .length = length};
    snprintf(command->key, sizeof command->key, "%s", key);
    if (length > 0)
        memcpy(command->text, text, length);
    command->text[length] = '\0';
    pthread_mutex_lock(&worker->lock);
    *worker->last = command;
    worker->last = &command->next;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

void esp_worker_prompt(struct esp_worker *worker, const char *text, size_t length)
{
    post(worker, COMMAND_PROMPT, "", text, length, 0);
}

void esp_worker_set(struct esp_worker *worker, const char *key, const char *value)
{
    post(worker, COMMAND_SET, key, value, strlen(value), 0);
}

void esp_worker_limit(struct esp_worker *worker, int tokens)
{
    post(worker, COMMAND_LIMIT, "", "", 0, tokens);
}

/* Commands that would start a generation are withdrawn. */
void esp_worker_stop(struct esp_worker *worker)
{
    struct command **at = &worker->first;
    pthread_mutex_lock(&worker->lock);
    worker->stop = worker->busy;
    while (*at) {
        struct command *command = *at;
        if (command->type == COMMAND_PROMPT) {
            *at = command->next;
            free(command);
        } else {
            at = &command->next;
        }
    }
    worker->last = at;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

void esp_worker_clear(struct esp_worker *worker)
{
    esp_worker_stop(worker);
    post(worker, COMMAND_CLEAR, "", "", 0, 0);
}

void esp_worker_pace(struct esp_worker *worker, double iterations)
{
    pthread_mutex_lock(&worker->lock);
    worker->pace = iterations;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

void esp_worker_break(struct esp_worker *worker, struct esp_breakpoints breakpoints)
{
    pthread_mutex_lock(&worker->lock);
    worker->breakpoints = breakpoints;
    pthread_mutex_unlock(&worker->lock);
}

void esp_worker_step_mode(struct esp_worker *worker, bool on)
{
    pthread_mutex_lock(&worker->lock);
    worker->stepping = on;
    worker->steps = 0;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

void esp_worker_step(struct esp_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->steps++;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

bool esp_worker_settled(struct esp_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool stopped = worker->stepping && worker->steps == 0 && !worker->stop;
    bool settled = !worker->working && !worker->first && (!worker->busy || stopped);
    pthread_mutex_unlock(&worker->lock);
    return settled && !esp_ring_front(worker->ring);
}
