/* worker_branch.c - turns the session of the engine thread to other texts; see worker_parts.h.
 *
 * A branch, an undo and a return to an earlier text are one thing: a text that becomes the
 * session's (esp_session_fork). The interface keeps all texts as a tree (tui/model/branches.h); it
 * follows through one report, and recordings through the session's own events.
 *
 * Each branch gets the next seed, so that it differs from what was there; a fresh session with
 * this seed and the branch's text writes the same.
 */
#include "tui/worker/worker_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

bool esp_worker_go_on(struct esp_worker *worker)
{
    esp_session_allow(worker->pair.session, worker->limit);
    esp_worker_compare_begin(worker);
    esp_reporter_phase(&worker->report, ESP_PHASE_GENERATING, "", 0);
    return true;
}

static void show_fork(struct esp_worker *worker, int kept, const struct esp_text_token *text,
                      int count, int why)
{
    struct esp_snapshot *snapshot = esp_ring_write(worker->report.ring, ESP_SNAPSHOT_FORK);
    if (!snapshot)
        return;
    snapshot->kept = kept;
    snapshot->stage = why;
    if (esp_snapshot_reserve(snapshot, count - kept) < 0)
        count = kept;
    for (int i = kept; i < count; i++)
        snapshot->tokens[snapshot->token_count++] = (struct esp_written){
            .token = text[i].token, .iteration = ESP_BY_NO_ITERATION, .kind = text[i].kind};
    esp_ring_publish(worker->report.ring);
    esp_reporter_wake(&worker->report);
}

/* The next seed, for another text than before. At temperature 0 nothing is drawn. */
static void next_seed(struct esp_worker *worker)
{
    struct esp_session *session = worker->pair.session;
    struct esp_session_options now;
    char seed[32], err[256];
    esp_session_current(session, &now);
    if (now.values.temperature == 0)
        return;
    snprintf(seed, sizeof seed, "%" PRIu64, now.values.seed + 1);
    if (esp_session_set(session, "seed", seed, err, sizeof err) == ESP_OK)
        esp_worker_compare_set(worker, "seed", seed);
}

/* Returns 0 or a negative status, which the user is told. */
static int turn_to(struct esp_worker *worker, const struct esp_text_token *text, int count,
                   int why)
{
    char err[256] = "";
    esp_reporter_phase(&worker->report, ESP_PHASE_PREFILL, "", 0);
    worker->hidden = true;
    const int kept = esp_session_fork(worker->pair.session, text, count, err, sizeof err);
    worker->hidden = false;
    if (kept >= 0) {
        show_fork(worker, kept, text, count, why);
        return ESP_OK;
    }
    ESP_TELL(worker, ERROR, "%s", err);
    esp_session_tokens(worker->pair.session, &count); /* as before, or the common prefix */
    show_fork(worker, count, text, count, ESP_FORK_NEW);
    return kept;
}

/* Appends the tokens of what the user typed. NULL: no memory, or it cannot be tokenized. */
static struct esp_text_token *with_words(struct esp_worker *worker,
                                         const struct esp_text_token *text, int *count,
                                         const char *words)
{
    const size_t length = strlen(words);
    const int more = esp_tokenize(worker->pair.engine, words, length, NULL, 0);
    if (more < 0)
        return NULL;
    struct esp_text_token *whole = malloc(((size_t)*count + (size_t)more + 1) * sizeof *whole);
    int32_t *ids = malloc(((size_t)more + 1) * sizeof *ids);
    if (whole && ids) {
        memcpy(whole, text, (size_t)*count * sizeof *whole);
        esp_tokenize(worker->pair.engine, words, length, ids, more);
        for (int i = 0; i < more; i++)
            whole[(*count)++] = (struct esp_text_token){ids[i], ESP_TEXT_CHOSEN};
    } else {
        free(whole);
        whole = NULL;
    }
    free(ids);
    return whole;
}

bool esp_worker_fork(struct esp_worker *worker, const struct esp_message *command)
{
    const struct esp_text_token *text = (const void *)command->text[0];
    int count = (int)(command->length / sizeof *text);
    const char *words = command->text[1];
    struct esp_text_token *whole = words ? with_words(worker, text, &count, words) : NULL;
    esp_worker_continue_end(worker);
    if (words && !whole)
        ESP_TELL(worker, ERROR, "the words cannot be tokenized");
    const int status = turn_to(worker, whole ? whole : text, count, command->number[0]);
    free(whole);
    if (status == ESP_OK && command->flag) {
        next_seed(worker);
        return esp_worker_go_on(worker);
    }
    esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
    return false;
}

/* ------------------------------------------------------------------ continuations */

void esp_worker_continue_end(struct esp_worker *worker)
{
    free(worker->continuations.text);
    worker->continuations = (struct esp_continuations){.wanted = 0};
}

/* At temperature 0 the continuations begin with the likeliest tokens. Returns 0 or a negative
 * status. */
static int choose_first(struct esp_worker *worker, char *err, size_t errlen)
{
    struct esp_continuations *c = &worker->continuations;
    struct esp_session_options now;
    struct esp_token_score score;
    int count, status = ESP_OK;
    esp_session_current(worker->pair.session, &now);
    esp_session_tokens(worker->pair.session, &count);
    for (int i = 0; i < ESP_LIKELY; i++)
        c->first[i] = -1;
    if (now.values.temperature > 0)
        return ESP_OK;
    status = esp_session_score_text(worker->pair.session, count, 1, &score, err, errlen);
    if (status < 0)
        return status;
    c->wanted = c->wanted < score.count ? c->wanted : score.count;
    memcpy(c->first, score.likely, sizeof c->first);
    return ESP_OK;
}

bool esp_worker_continue_next(struct esp_worker *worker)
{
    struct esp_continuations *c = &worker->continuations;
    if (c->done == c->wanted) {
        if (c->wanted > 0)
            ESP_TELL(worker, MESSAGE, "%d continuations: [ and ] go from one to the next",
                     c->wanted);
        esp_worker_continue_end(worker);
        return false;
    }
    const int32_t first = c->first[c->done++];
    int count = c->count;
    if (first >= 0)
        c->text[count++] = (struct esp_text_token){first, ESP_TEXT_CHOSEN};
    if (turn_to(worker, c->text, count, ESP_FORK_NEW) < 0) {
        esp_worker_continue_end(worker);
        esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    }
    next_seed(worker);
    return esp_worker_go_on(worker);
}

bool esp_worker_continue(struct esp_worker *worker, const struct esp_message *command)
{
    struct esp_continuations *c = &worker->continuations;
    char err[256] = "";
    esp_worker_continue_end(worker);
    c->count = (int)(command->length / sizeof *c->text);
    c->wanted = command->number[0] < ESP_LIKELY ? command->number[0] : ESP_LIKELY;
    c->text = malloc(command->length + sizeof *c->text);
    int status = c->text ? ESP_OK : esp_fail(err, sizeof err, ESP_E_MEMORY, "no memory");
    if (status == ESP_OK) {
        memcpy(c->text, command->text[0], command->length);
        status = turn_to(worker, c->text, c->count, ESP_FORK_NEW);
    }
    if (status == ESP_OK)
        status = choose_first(worker, err, sizeof err);
    if (status < 0) {
        if (*err)
            ESP_TELL(worker, ERROR, "%s", err);
        esp_worker_continue_end(worker);
        esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    }
    return esp_worker_continue_next(worker);
}

/* ------------------------------------------------------------------ scores */

void esp_worker_scores(struct esp_worker *worker, int first, int count)
{
    char err[256];
    int length;
    const int32_t *tokens = esp_session_tokens(worker->pair.session, &length);
    if (first < 1 || first >= length)
        return;
    count = count < length - first ? count : length - first;
    struct esp_token_score *scores = malloc((size_t)count * sizeof *scores);
    if (!scores ||
        esp_session_score_text(worker->pair.session, first, count, scores, err, sizeof err) < 0)
        count = 0; /* then there is nothing to show */
    struct esp_snapshot *snapshot =
        count > 0 ? esp_ring_write(worker->report.ring, ESP_SNAPSHOT_SCORES) : NULL;
    if (snapshot && esp_snapshot_reserve(snapshot, count) == ESP_OK) {
        snapshot->start = first;
        for (int i = 0; i < count; i++)
            snapshot->tokens[snapshot->token_count++] =
                (struct esp_written){.token = tokens[first + i], .score = scores[i]};
    }
    if (snapshot) {
        esp_ring_publish(worker->report.ring);
        esp_reporter_wake(&worker->report);
    }
    free(scores);
}
