/* compare_run.c - opens, runs and ends the compared session; see compare_run.h. */
#include "tui/worker/compare_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ out: snapshots */

__attribute__((format(printf, 3, 4))) static void tell(struct esp_compare_run *s, int type,
                                                       const char *format, ...)
{
    struct esp_snapshot *snapshot = esp_ring_write(s->ring, type);
    if (!snapshot)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(snapshot->text, sizeof snapshot->text, format, args);
    va_end(args);
    esp_ring_publish(s->ring);
    s->wake(s->user, false);
}

/* Reports the current configuration; empty names: none. */
static void tell_choice(struct esp_compare_run *s)
{
    struct esp_snapshot *snapshot = esp_ring_write(s->ring, ESP_SNAPSHOT_COMPARE);
    const struct esp_session *session = s->compare.second;
    if (!snapshot)
        return;
    struct esp_setup *loaded = &snapshot->loaded;
    *loaded = (struct esp_setup){.serial = 0};
    if (session) {
        esp_session_get(session, "drafter", loaded->drafter, sizeof loaded->drafter);
        esp_session_get(session, "verifier", loaded->verifier, sizeof loaded->verifier);
        loaded->lossy = esp_session_is_lossy(session);
    }
    esp_ring_publish(s->ring);
    s->wake(s->user, false);
}

static void observe(void *user, const struct esp_event *event)
{
    struct esp_compare_run *s = user;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    if (esp_ring_write_second(s->ring, event) < 0)
        tell(s, ESP_SNAPSHOT_ERROR, "out of memory: an iteration could not be shown");
    s->wake(s->user, true);
}

/* ------------------------------------------------------------------ beginning and ending */

void esp_compare_run_end(struct esp_compare_run *s)
{
    if (!s->compare.second)
        return;
    esp_compare_close(&s->compare);
    tell_choice(s);
}

static void give_up(struct esp_compare_run *s, const char *why)
{
    esp_compare_run_end(s);
    tell(s, ESP_SNAPSHOT_ERROR, "%.400s; the comparison has ended", why);
}

/* Opens the named configuration, then closes the old one. */
static int open_choice(struct esp_compare_run *s, struct esp_session *first, char *err,
                       size_t errlen)
{
    struct esp_compare next;
    struct esp_session_options options = {.drafter = s->drafter,
                                          .verifier = *s->verifier ? s->verifier : NULL,
                                          .observer = observe,
                                          .user = s};
    int status = esp_compare_open(&next, first, &options, err, errlen);
    if (status < 0)
        return status;
    esp_compare_run_end(s);
    s->compare = next;
    s->differed = false;
    tell_choice(s);
    return status;
}

/* Keeps the names. False: they are too long for anything that can be opened. */
static bool keep_choice(struct esp_compare_run *s, const char *drafter, const char *verifier)
{
    return snprintf(s->drafter, sizeof s->drafter, "%s", drafter) < (int)sizeof s->drafter &&
           snprintf(s->verifier, sizeof s->verifier, "%s", verifier ? verifier : "") <
               (int)sizeof s->verifier;
}

void esp_compare_run_choose(struct esp_compare_run *s, struct esp_session *first,
                            const char *drafter, const char *verifier)
{
    char err[256] = "";
    int status = ESP_E_ARGUMENT;
    const struct esp_compare_run before = *s;
    if (!drafter) {
        bool had = s->compare.second != NULL;
        esp_compare_run_end(s);
        tell(s, ESP_SNAPSHOT_MESSAGE,
             had ? "the comparison has ended"
                 : "there is no comparison; :compare ar starts one");
        return;
    }
    if (keep_choice(s, drafter, verifier))
        status = open_choice(s, first, err, sizeof err);
    else
        snprintf(err, sizeof err, "the name is too long");
    if (status < 0) {
        *s = before;
        tell(s, ESP_SNAPSHOT_ERROR, "%s%s",
             status == ESP_E_MEMORY ? "a second session needs its own caches: " : "", err);
    }
}

void esp_compare_run_again(struct esp_compare_run *s, struct esp_session *first)
{
    char err[256] = "";
    if (open_choice(s, first, err, sizeof err) < 0)
        tell(s, ESP_SNAPSHOT_ERROR, "%.400s; the comparison has ended", err);
}

/* ------------------------------------------------------------------ running */

void esp_compare_run_begin(struct esp_compare_run *s)
{
    char err[256] = "";
    if (s->compare.second && esp_compare_begin(&s->compare, err, sizeof err) < 0)
        give_up(s, err);
}

void esp_compare_run_set(struct esp_compare_run *s, const char *key, const char *value)
{
    char err[256] = "";
    if (!s->compare.second)
        return;
    int status = esp_compare_set(&s->compare, key, value, err, sizeof err);
    if (status < 0)
        give_up(s, err);
    else if (status > 0)
        tell_choice(s);
}

/* At temperature 0 both texts must be identical; a difference must be reported. */
static void check_texts(struct esp_compare_run *s)
{
    struct esp_session_options now;
    if (s->differed || s->compare.difference < 0)
        return;
    esp_session_current(s->compare.first, &now);
    if (now.values.temperature > 0)
        return;
    s->differed = true;
    tell(s, ESP_SNAPSHOT_ERROR,
         "at token %d the second session would have chosen another token",
         s->compare.difference);
}

bool esp_compare_run_run(struct esp_compare_run *s)
{
    char err[256] = "";
    if (!s->compare.second)
        return false;
    bool turn = esp_compare_turn(&s->compare);
    check_texts(s);
    if (turn && esp_compare_step(&s->compare, err, sizeof err) < 0)
        give_up(s, err);
    return turn;
}
