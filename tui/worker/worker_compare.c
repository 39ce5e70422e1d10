/* worker_compare.c - the compared session of the engine thread; see worker_parts.h.
 *
 * A second session of the same engine decodes the text that the first session generates, in
 * lock step (engine/compare.h). The second session has its own caches, so the caches take twice
 * the memory until this session ends. Its events are written to the ring. An error in it ends
 * the comparison, but the first session continues.
 */
#include "tui/worker/worker_parts.h"

#include <stdio.h>

/* ------------------------------------------------------------------ beginning and ending */

void esp_worker_compare_end(struct esp_worker *worker)
{
    if (!worker->second.compare.second)
        return;
    esp_compare_close(&worker->second.compare);
    esp_reporter_compared(&worker->report, NULL);
}

static void give_up(struct esp_worker *worker, const char *why)
{
    esp_worker_compare_end(worker);
    ESP_TELL(worker, ERROR, "%.400s; the comparison has ended", why);
}

/* Opens a second session with the named drafter and verifier, then closes the old one. */
static int open_second(struct esp_worker *worker, char *err, size_t errlen)
{
    struct esp_compare next;
    struct esp_second *s = &worker->second;
    struct esp_session_options options = {.drafter = s->drafter,
                                          .verifier = *s->verifier ? s->verifier : NULL,
                                          .observer = esp_worker_observe_second,
                                          .user = worker};
    int status = esp_compare_open(&next, worker->pair.session, &options, err, errlen);
    if (status < 0)
        return status;
    esp_worker_compare_end(worker);
    s->compare = next;
    s->differed = false;
    esp_reporter_compared(&worker->report, next.second);
    return status;
}

/* Stores the names of drafter and verifier. Returns false if they are longer than any valid
 * name. */
static bool keep_names(struct esp_second *s, const char *drafter, const char *verifier)
{
    return snprintf(s->drafter, sizeof s->drafter, "%s", drafter) < (int)sizeof s->drafter &&
           snprintf(s->verifier, sizeof s->verifier, "%s", verifier ? verifier : "") <
               (int)sizeof s->verifier;
}

void esp_worker_compare(struct esp_worker *worker, const char *drafter, const char *verifier)
{
    char err[256] = "";
    int status = ESP_E_ARGUMENT;
    const struct esp_second before = worker->second;
    if (!drafter) {
        esp_worker_compare_end(worker);
        ESP_TELL(worker, MESSAGE, "%s",
                 before.compare.second ? "the comparison has ended"
                                       : "there is no comparison; :compare ar starts one");
        return;
    }
    if (keep_names(&worker->second, drafter, verifier))
        status = open_second(worker, err, sizeof err);
    else
        snprintf(err, sizeof err, "the name of the drafter or verifier is too long");
    if (status < 0) {
        worker->second = before;
        ESP_TELL(worker, ERROR, "%s%s",
                 status == ESP_E_MEMORY ? "a second session needs its own caches: " : "", err);
    }
}

void esp_worker_compare_again(struct esp_worker *worker)
{
    char err[256] = "";
    if (open_second(worker, err, sizeof err) < 0)
        give_up(worker, err);
}

/* ------------------------------------------------------------------ running */

void esp_worker_compare_begin(struct esp_worker *worker)
{
    char err[256] = "";
    if (worker->second.compare.second &&
        esp_compare_begin(&worker->second.compare, err, sizeof err) < 0)
        give_up(worker, err);
}

void esp_worker_compare_set(struct esp_worker *worker, const char *key, const char *value)
{
    char err[256] = "";
    if (!worker->second.compare.second)
        return;
    int status = esp_compare_set(&worker->second.compare, key, value, err, sizeof err);
    if (status < 0)
        give_up(worker, err);
    else if (status > 0)
        esp_reporter_compared(&worker->report, worker->second.compare.second);
}

/* Reports an error if the texts differ at temperature 0, where they must be identical. */
static void check_texts(struct esp_worker *worker)
{
    struct esp_second *s = &worker->second;
    struct esp_session_options now;
    if (s->differed || s->compare.difference < 0)
        return;
    esp_session_current(s->compare.first, &now);
    if (now.values.temperature > 0)
        return;
    s->differed = true;
    ESP_TELL(worker, ERROR, "at token %d the second session would have chosen another token",
             s->compare.difference);
}

bool esp_worker_compare_turn(struct esp_worker *worker)
{
    char err[256] = "";
    if (!worker->second.compare.second)
        return false;
    bool turn = esp_compare_turn(&worker->second.compare);
    check_texts(worker);
    if (turn && esp_compare_step(&worker->second.compare, err, sizeof err) < 0)
        give_up(worker, err);
    return turn;
}
