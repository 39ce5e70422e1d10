/* worker_events.c - reports the events and the progress of the engine thread's session.
 *
 * An event is recorded before it is shown, so a replay shows what the user saw. Between
 * iterations, the thread waits in these functions for the next step, or to keep the pace.
 */
#include "viz/gauges.h"
#include "tui/worker/worker_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/clock.h"
#include "sessions/grow.h"

static const double WARM = 8e-3; /* seconds that processors need to reach full speed */

/* Returns the session's mean tokens per iteration, at least 1. */
static double stride(const struct esp_session *session)
{
    struct esp_stats stats;
    esp_session_stats(session, &stats);
    return fmax(stats.tokens_per_iteration, 1);
}

/* The pace sets a time per iteration. Returns the fraction of this time that an iteration gets.
 * In a comparison, half of the time is for the second session. That half is divided among the
 * second session's iterations for the same tokens. */
static double share_of_pace(const struct esp_worker *worker, bool second)
{
    const struct esp_session *other = worker->second.compare.second;
    if (!other)
        return 1;
    return second ? fmin(0.5 * stride(other) / stride(worker->pair.session), 1) : 0.5;
}

/* Waits to keep the pace. After a pause, caches are cold and processors are slow, so an
 * iteration would take several times as long. If iterations are short compared to the pause,
 * this function runs some passes first, which are not counted. Then the iteration runs at full
 * speed, and its displayed time is typical. */
static void keep_pace(struct esp_worker *worker, bool second)
{
    struct esp_stats stats;
    const double before = esp_clock();
    esp_mailbox_wait_pace(&worker->mailbox, share_of_pace(worker, second));
    const double start = esp_clock(), paused = start - before;
    const double enough = paused / 10 < WARM ? paused / 10 : WARM;
    esp_session_stats(worker->pair.session, &stats);
    if (stats.iterations == 0 || paused < 4 * stats.decode_seconds / stats.iterations)
        return;
    while (esp_clock() - start < enough)
        esp_session_warm(worker->pair.session);
}

/* Enters step mode if a breakpoint applies. */
static void check_breakpoints(struct esp_worker *worker, const struct esp_iteration *it)
{
    const struct esp_breakpoints breakpoints = esp_mailbox_now(&worker->mailbox).breakpoints;
    char text[200] = "", name[64];
    for (int i = 0; breakpoints.threshold && i < it->gauge_count && !*text; i++)
        if (it->gauges[i].before != it->gauges[i].after)
            snprintf(text, sizeof text, "the %s moved",
                     esp_gauge_full_name(name, it, it->gauges[i].name));
    if (breakpoints.rejected && it->path_length == 0 && it->tree.count > 1)
        snprintf(text, sizeof text, "everything was rejected");
    if (breakpoints.path > 0 && it->path_length > breakpoints.path)
        snprintf(text, sizeof text, "a path of %d tokens was accepted", it->path_length);
    if (!*text || esp_mailbox_steps(&worker->mailbox))
        return;
    esp_mailbox_step_mode(&worker->mailbox, true);
    ESP_TELL(worker, MESSAGE, "%s; Space runs the next stage, F5 ends step mode", text);
    esp_reporter_phase(&worker->report, ESP_PHASE_WAITING, "", 0);
    esp_mailbox_wait_step(&worker->mailbox);
}

static void show(struct esp_worker *worker, const struct esp_event *event, bool second)
{
    if (esp_ring_write_event(worker->report.ring, event, second) < 0)
        ESP_TELL(worker, ERROR, "out of memory: an iteration could not be shown");
}

/* If several continuations are being generated, adds the tokens of an iteration to the current
 * continuation. */
static void note_continuation(struct esp_worker *worker, const struct esp_event *event)
{
    struct esp_continuations *c = &worker->continuations;
    struct esp_continuation *now = &c->each[c->now];
    if (c->count == 0 || event->type != ESP_EVENT_ITERATION)
        return;
    const struct esp_iteration *it = event->iteration;
    if (esp_reserve(&now->text, now->count + it->committed_count, &now->capacity,
                    sizeof *now->text) < 0) {
        now->left = 0;
        return;
    }
    for (int i = 0; i < it->committed_count; i++)
        now->text[now->count++] =
            (struct esp_text_token){it->committed[i], (uint8_t)esp_text_kind_of(event, i)};
    now->left -= it->committed_count;
}

/* Reports and records an event of the session. Reports partial trees only in step mode, because
 * without it they would be replaced too fast to be seen. */
void esp_worker_observe(void *user, const struct esp_event *event)
{
    struct esp_worker *worker = user;
    if (worker->quiet)
        return;
    esp_worker_note(worker, event);
    if (event->type == ESP_EVENT_NOTE)
        ESP_TELL(worker, MESSAGE, "%s", event->text);
    if (worker->hidden || event->type == ESP_EVENT_NOTE)
        return;
    note_continuation(worker, event);
    esp_worker_keep_event(worker, event);
    bool partial = event->type == ESP_EVENT_LAYER || event->type == ESP_EVENT_STAGE;
    bool iteration = event->type == ESP_EVENT_ITERATION;
    bool stepping = (partial || iteration) && esp_mailbox_steps(&worker->mailbox);
    if (partial && !stepping)
        return;
    if (stepping)
        esp_session_explain(worker->pair.session, true);
    int phase = stepping ? ESP_PHASE_WAITING : ESP_PHASE_GENERATING;
    if ((partial || iteration) && worker->report.phase != phase)
        esp_reporter_phase(&worker->report, phase, "", 0);
    /* A stop after a stage changes the stage's time, so the times are set to 0. */
    struct esp_iteration untimed;
    struct esp_event shown = *event;
    if (partial && event->iteration) {
        untimed = *event->iteration;
        memset(untimed.seconds, 0, sizeof untimed.seconds);
        shown.iteration = &untimed;
    }
    show(worker, &shown, false);
    if (iteration && !stepping)
        esp_reporter_wake_for_iteration(&worker->report);
    else
        esp_reporter_wake(&worker->report);
    if (partial)
        esp_mailbox_wait_step(&worker->mailbox);
    if (iteration)
        check_breakpoints(worker, event->iteration);
    if (iteration && !stepping)
        keep_pace(worker, false);
}

/* Reports an event of the second session. This session also pauses to keep the pace. An
 * iteration after a pause takes longer. If only the first session paused, the pause would
 * always be before the same session, and its times would look worse. */
void esp_worker_observe_second(void *user, const struct esp_event *event)
{
    struct esp_worker *worker = user;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    show(worker, event, true);
    esp_reporter_wake_for_iteration(&worker->report);
    if (!esp_mailbox_steps(&worker->mailbox))
        keep_pace(worker, true);
}

bool esp_worker_is_patient(void *user, int rank, int ranks, double seconds)
{
    struct esp_worker *worker = user;
    const struct esp_mailbox_now now = esp_mailbox_now(&worker->mailbox);
    if (esp_clock() - worker->asked >= 1) {
        worker->asked = esp_clock();
        ESP_TELL(worker, MESSAGE,
                 "rank %d of %d has not answered for %.0f s; press Esc to stop waiting", rank,
                 ranks, seconds);
    }
    return !now.quit && !now.stop;
}

bool esp_worker_progress(void *user, const char *what, size_t done, size_t total)
{
    struct esp_worker *worker = user;
    double fraction = total > 0 ? (double)done / (double)total : 0;
    if (fraction < worker->progress || fraction >= worker->progress + 0.01 || fraction >= 1) {
        worker->progress = fraction;
        esp_reporter_phase(&worker->report, ESP_PHASE_LOADING, what, fraction);
    }
    const struct esp_mailbox_now now = esp_mailbox_now(&worker->mailbox);
    return !now.quit && !(now.stop && worker->pair.session);
}
