/* worker.c - the engine's thread; see worker.h.
 *
 * What both threads touch is in the mailbox (what is asked of this thread) and in the ring
 * (what it reports). The pair of models and their session belong to the thread alone; the
 * interface reads only an engine's token texts, which never change, after the READY snapshot
 * has named it and before it has seen the next one.
 */
#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "record.h"
#include "report.h"
#include "second.h"

enum { PATIENCE = 3 /* seconds to wait for the thread at the end */ };

/* Models that others took the place of, whose tokens may still be on the screen. */
struct retired {
    struct retired *next;
    struct esp_pair pair;
    int serial;
};

struct esp_worker {
    pthread_t thread;
    struct esp_mailbox mailbox;
    struct esp_report report;

    struct esp_engine_options engine_options;
    struct esp_session_options session_options;
    int limit;
    struct esp_pair pair;
    struct esp_second second; /* that is compared with */
    struct retired *retired;
    int serial; /* of the pair; see esp_loaded */
    struct esp_record record;
    bool quiet; /* the session does nothing that the interface does not know */
    double progress;
};

/* ------------------------------------------------------------------ out: events */

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
    esp_report_tell(&worker->report, ESP_SNAPSHOT_MESSAGE, text);
    esp_report_phase(&worker->report, ESP_PHASE_WAITING, "", 0);
    esp_mailbox_wait_step(&worker->mailbox);
}

/* Nothing is recorded any more. */
static void tell_not_recording(struct esp_worker *worker, int type, const char *text)
{
    esp_report_tell(&worker->report, ESP_SNAPSHOT_RECORD, "");
    esp_report_tell(&worker->report, type, text);
}

static void record(struct esp_worker *worker, const struct esp_event *event)
{
    char err[512];
    bool stepped = event->type == ESP_EVENT_ITERATION && esp_mailbox_steps(&worker->mailbox);
    if ((event->type == ESP_EVENT_ITERATION &&
         !esp_record_step(&worker->record, stepped, err, sizeof err)) ||
        !esp_record_event(&worker->record, event, err, sizeof err))
        tell_not_recording(worker, ESP_SNAPSHOT_ERROR, err);
}

/* Partial trees are sent only in step mode: nobody could see them otherwise. */
static void observe(void *user, const struct esp_event *event)
{
    struct esp_worker *worker = user;
    if (worker->quiet)
        return;
    record(worker, event);
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
    if (iteration && !stepping && esp_mailbox_wait_pace(&worker->mailbox))
        wake_helpers();
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
    if (!esp_mailbox_steps(&worker->mailbox) && esp_mailbox_wait_pace(&worker->mailbox))
        wake_helpers();
}

static bool report_progress(void *user, const char *what, size_t done, size_t total)
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

/* ------------------------------------------------------------------ in: commands */

/* The text joined to what is there: a prompt that does not start with a blank starts a
 * paragraph. */
static char *joined(struct esp_worker *worker, const struct esp_posted *command, size_t *length)
{
    int count;
    const int32_t *tokens = esp_session_tokens(worker->pair.session, &count);
    size_t last_length = 0;
    const char *last =
        count > 0 ? esp_token_bytes(worker->pair.engine, tokens[count - 1], &last_length)
                  : NULL;
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
        int count = esp_tokenize(worker->pair.engine, text, length, tokens, (int)length + 1);
        status = esp_session_prompt(worker->pair.session, tokens, count, err, errlen);
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
    esp_session_tokens(worker->pair.session, &count);
    if (command->length == 0 && count == 0) {
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR,
                        "type the beginning of a text first");
        return false;
    }
    if (command->length > 0) {
        esp_report_phase(&worker->report, ESP_PHASE_PREFILL, "", 0);
        if (prefill(worker, command, err, sizeof err) < 0) {
            esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR, err);
            esp_report_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
            return false;
        }
    }
    esp_session_allow(worker->pair.session, worker->limit);
    esp_second_begin(&worker->second);
    esp_report_phase(&worker->report, ESP_PHASE_GENERATING, "", 0);
    return true;
}

/* What the user chose is kept when other models are loaded. */
static void note_choice(struct esp_pair *pair, const struct esp_posted *command)
{
    static const char *const others[] = {
#define X(name) #name,
        ESP_SESSION_VALUES(X)
#undef X
    };
    if (strcmp(command->key, "verifier") == 0) {
        pair->verifier_chosen = strcmp(command->text, "auto") != 0;
        return;
    }
    for (int i = 0; i < ESP_VALUES; i++)
        if (strcmp(command->key, others[i]) == 0)
            return;
    pair->drafter_chosen = true; /* the drafter, or a parameter of it */
}

static void run_set(struct esp_worker *worker, const struct esp_posted *command)
{
    char err[256], now[256], text[600];
    const size_t value_length = strlen(command->text);
    const char *origin =
        command->length > value_length ? command->text + value_length + 1 : NULL;
    if (esp_session_set(worker->pair.session, command->key, command->text, err, sizeof err) <
        0) {
        snprintf(text, sizeof text, "%.300s%s", origin ? origin : "", err);
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR, text);
        return;
    }
    if (esp_session_get(worker->pair.session, command->key, now, sizeof now) < 0)
        snprintf(now, sizeof now, "%.200s", command->text);
    note_choice(&worker->pair, command);
    esp_report_loaded(&worker->report, &worker->pair, worker->serial, false);
    snprintf(text, sizeof text, "%s = %s", command->key, now);
    if (!origin)
        esp_report_tell(&worker->report, ESP_SNAPSHOT_MESSAGE, text);
    esp_second_set(&worker->second, command->key, command->text);
}

static void stop_recording(struct esp_worker *worker)
{
    char err[512], text[600];
    if (!worker->record.recorder)
        return;
    int status = esp_record_stop(&worker->record, err, sizeof err);
    snprintf(text, sizeof text, "recorded to %.500s", worker->record.path);
    tell_not_recording(worker, status < 0 ? ESP_SNAPSHOT_ERROR : ESP_SNAPSHOT_MESSAGE,
                       status < 0 ? err : text);
}

static void run_record(struct esp_worker *worker, const struct esp_posted *command)
{
    char err[512], text[600];
    if (command->length == 0) {
        stop_recording(worker);
        return;
    }
    if (worker->record.recorder) {
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR,
                        "one recording is going on; :record ends it");
        return;
    }
    if (esp_record_start(&worker->record, &worker->pair, command, err, sizeof err) < 0) {
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR, err);
        return;
    }
    snprintf(text, sizeof text, "recording to %.500s", worker->record.path);
    esp_report_tell(&worker->report, ESP_SNAPSHOT_RECORD, worker->record.path);
    esp_report_tell(&worker->report, ESP_SNAPSHOT_MESSAGE, text);
}

/* The generation was ended by the user, or by a failure. */
static void end_generation(struct esp_worker *worker)
{
    if (worker->record.recorder)
        esp_recorder_end(worker->record.recorder, "");
    esp_report_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
}

/* ------------------------------------------------------------------ other models */

/* Keeps a pair until the interface has seen the one that took its place, just now. */
static void retire(struct esp_worker *worker, struct esp_pair *pair)
{
    struct retired *retired = malloc(sizeof *retired);
    esp_session_close(pair->session);
    pair->session = NULL;
    if (!retired)
        return; /* it stays for good: better than under the interface's feet */
    *retired = (struct retired){worker->retired, *pair, worker->serial - 1};
    worker->retired = retired;
}

/* Closes the pairs older than `serial`. */
static void close_retired(struct esp_worker *worker, int serial)
{
    for (struct retired **at = &worker->retired; *at;) {
        struct retired *retired = *at;
        if (retired->serial >= serial) {
            at = &retired->next;
            continue;
        }
        *at = retired->next;
        esp_pair_close(&retired->pair);
        free(retired);
    }
}

/* Puts a pair in the place of the one that is there, and hands it the text. */
static void take_over(struct esp_worker *worker, struct esp_pair *next, const char *note)
{
    char err[256] = "", text[1024];
    struct esp_pair before = worker->pair;
    struct esp_model_info target = {.name = ""}, draft = {.name = "none"};
    const bool anew = !esp_pair_shares_tokens(&before, next);
    const bool compared = worker->second.compare.second != NULL;
    esp_second_end(&worker->second);
    stop_recording(worker); /* its header names the models */
    if (anew)
        esp_report_tell(&worker->report, ESP_SNAPSHOT_CLEAR, "");
    worker->pair = *next;
    worker->serial++;
    esp_report_loaded(&worker->report, &worker->pair, worker->serial, anew);
    esp_report_phase(&worker->report, ESP_PHASE_PREFILL, "", 0);
    worker->quiet = !anew;
    int status = esp_pair_hand_over(&before, &worker->pair, err, sizeof err);
    worker->quiet = false;
    retire(worker, &before);
    if (status < 0)
        esp_report_tell(&worker->report, ESP_SNAPSHOT_CLEAR, "");
    esp_engine_target(worker->pair.engine, &target);
    esp_engine_draft(worker->pair.engine, &draft);
    snprintf(text, sizeof text, "%.60s, draft %.60s, on %.60s%s%s%s", target.name, draft.name,
             esp_engine_device(worker->pair.engine), note,
             status < 0 ? "; the text was forgotten: " : "", err);
    esp_report_tell(&worker->report, status < 0 ? ESP_SNAPSHOT_ERROR : ESP_SNAPSHOT_MESSAGE,
                    text);
    if (compared)
        esp_second_again(&worker->second, worker->pair.session);
}

/* Loads other models beside those that are there; they stay if that fails. */
static void run_load(struct esp_worker *worker, const struct esp_posted *command)
{
    char err[512] = "", note[300], text[600];
    struct esp_pair next;
    struct esp_engine_options options;
    const bool had = worker->pair.session != NULL;
    esp_pair_options(&options, &worker->pair, command->key, command->text);
    options.progress = report_progress;
    options.user = worker;
    worker->progress = 0;
    esp_report_phase(&worker->report, ESP_PHASE_LOADING, "the models", 0);
    int status = esp_pair_follow(&next, &worker->pair, &options, &worker->session_options, note,
                                 sizeof note, err, sizeof err);
    if (status == ESP_OK) {
        take_over(worker, &next, note);
    } else if (had) {
        snprintf(text, sizeof text, "%s; the models of before stay",
                 status == ESP_E_CANCELLED ? "loading was stopped" : err);
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR, text);
    }
    esp_report_phase(&worker->report, status < 0 && !had ? ESP_PHASE_FAILED : ESP_PHASE_IDLE,
                     err, 1);
}

/* Returns whether a generation runs after the command. */
static bool run_command(struct esp_worker *worker, const struct esp_posted *command,
                        bool generating)
{
    switch (command->type) {
    case ESP_COMMAND_LOAD:
        run_load(worker, command);
        return false;
    case ESP_COMMAND_RETIRE:
        close_retired(worker, command->number);
        return generating;
    case ESP_COMMAND_LIMIT:
        worker->limit = command->number;
        return generating;
    default:
        break;
    }
    if (!worker->pair.session) {
        esp_report_tell(&worker->report, ESP_SNAPSHOT_ERROR,
                        "no models are loaded; :model loads some");
        return false;
    }
    switch (command->type) {
    case ESP_COMMAND_PROMPT:
        return run_prompt(worker, command);
    case ESP_COMMAND_SET:
        run_set(worker, command);
        return generating;
    case ESP_COMMAND_COMPARE:
        esp_second_choose(&worker->second, worker->pair.session, command->text);
        return generating;
    case ESP_COMMAND_RECORD:
        run_record(worker, command);
        return generating;
    case ESP_COMMAND_MARK:
        record(worker, &(struct esp_event){.type = ESP_EVENT_MARKER, .text = command->text});
        esp_report_tell(&worker->report, ESP_SNAPSHOT_MESSAGE, "marked");
        return generating;
    case ESP_COMMAND_REWIND:
        if (esp_session_rewind(worker->pair.session, command->number) == ESP_OK)
            esp_report_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    default: /* ESP_COMMAND_CLEAR */
        esp_session_clear(worker->pair.session);
        record(worker, &(struct esp_event){.type = ESP_EVENT_CLEAR});
        esp_report_tell(&worker->report, ESP_SNAPSHOT_CLEAR, "");
        esp_report_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    }
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

/* ------------------------------------------------------------------ the thread */

static void load(struct esp_worker *worker)
{
    char err[512] = "";
    worker->engine_options.progress = report_progress;
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
            generating = run_command(worker, command, generating);
        free(command);
        if (generating && !command)
            generating = iterate(worker);
    }
    esp_compare_close(&worker->second.compare);
    stop_recording(worker);
    close_retired(worker, worker->serial);
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
