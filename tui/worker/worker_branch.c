/* worker_branch.c - switches the session of the engine thread to other texts; see
 * worker_parts.h.
 *
 * A new branch, an undo and a return to an earlier text all do the same: they give the session
 * another text (esp_session_fork). The interface stores all texts as a tree
 * (sessions/branches.h), and is told about the switch by one report. In a recording, the switch
 * consists of the session's own events.
 *
 * Each new branch gets the next seed. Therefore it differs from the text that it replaces. A
 * new session with this seed and the text before the branch generates the same tokens.
 */
#include "tui/worker/worker_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "sessions/grow.h"

bool esp_worker_go_on(struct esp_worker *worker)
{
    worker->keeping.begun = false;
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
    if (worker->keeping.keeper)
        esp_keeper_fork(worker->keeping.keeper, kept, text, count);
}

/* Sets the next seed, so another text will be generated. Does nothing at temperature 0, because
 * then no random numbers are used. */
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

/* Switches the session to a text. `why` is a value of enum esp_fork. Returns 0, or a negative
 * status after reporting the error. */
static int turn_to(struct esp_worker *worker, const struct esp_text_token *text, int count,
                   int why)
{
    char err[256] = "";
    if (why != ESP_FORK_TURN)
        esp_reporter_phase(&worker->report, ESP_PHASE_PREFILL, "", 0);
    worker->hidden = true;
    const int kept = esp_session_fork(worker->pair.session, text, count, err, sizeof err);
    worker->hidden = false;
    if (kept >= 0) {
        show_fork(worker, kept, text, count, why);
        return ESP_OK;
    }
    ESP_TELL(worker, ERROR, "%s", err);
    esp_session_tokens(worker->pair.session, &count); /* the old text or the common prefix */
    show_fork(worker, count, text, count, ESP_FORK_NEW);
    return kept;
}

/* Returns the text followed by the tokens of the words that the user has typed, in allocated
 * memory. Returns NULL if there is no memory or the words cannot be tokenized. */
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

void esp_worker_resume(struct esp_worker *worker, const struct esp_message *command)
{
    const struct esp_resume *resume = (const void *)command->text[0];
    const struct esp_text_token *text = (const void *)(resume + 1);
    esp_session_count_from(worker->pair.session, resume->iterations);
    if (turn_to(worker, text, resume->tokens, ESP_FORK_RESUME) == ESP_OK && resume->tokens > 0)
        ESP_TELL(worker, MESSAGE, "session %d is open again; Enter continues its text",
                 resume->session);
    esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
}

/* ------------------------------------------------------------------ continuations */

/* Continuations are generated in turns, so the user sees all of them grow. The first turn of
 * each is one iteration. When the session switches to a continuation, it computes the KV cache
 * rows of the continuation's tokens again, in one pass. Later turns are longer, to make this
 * work small in comparison: a turn ends when it has generated a quarter of the continuation.
 * Each continuation has its own range of 2^DRAWS_LOG random numbers. */
enum { TURN_PART = 4, DRAWS_LOG = 40 };

void esp_worker_continue_end(struct esp_worker *worker)
{
    struct esp_continuations *c = &worker->continuations;
    for (int i = 0; i < c->count; i++)
        free(c->each[i].text);
    *c = (struct esp_continuations){.count = 0};
}

/* Switches the session to the continuation that has the next turn. Returns whether this
 * succeeded. */
static bool begin_turn(struct esp_worker *worker)
{
    struct esp_continuations *c = &worker->continuations;
    const struct esp_continuation *now = &c->each[c->now];
    if (turn_to(worker, now->text, now->count, ESP_FORK_TURN) < 0) {
        esp_worker_continue_end(worker);
        esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    }
    c->turn = now->count;
    esp_session_set_generator(worker->pair.session, &now->generator);
    esp_session_allow(worker->pair.session, now->left);
    esp_worker_compare_begin(worker);
    esp_worker_keep_again(worker, now->generation);
    return true;
}

/* Returns the next continuation that has not ended, which can be the current one. Returns -1 if
 * all have ended. */
static int next_of(const struct esp_continuations *c)
{
    for (int step = 1; step <= c->count; step++)
        if (c->each[(c->now + step) % c->count].left > 0)
            return (c->now + step) % c->count;
    return -1;
}

bool esp_worker_continue_turn(struct esp_worker *worker, bool ended)
{
    struct esp_continuations *c = &worker->continuations;
    struct esp_continuation *now = &c->each[c->now];
    if (ended)
        now->left = 0;
    /* During a comparison, each continuation is generated to its end in a single turn, because
     * the compared session cannot switch between continuations. */
    const bool compared = worker->second.compare.second != NULL;
    const int turn = now->count - c->turn, own = now->count - now->begin;
    if (!ended && (compared || TURN_PART * turn < own))
        return true;
    const int next = next_of(c);
    if (next == c->now)
        return true;
    esp_session_generator(worker->pair.session, &now->generator);
    now->generation = worker->keeping.generation;
    if (next >= 0) {
        c->now = next;
        return begin_turn(worker);
    }
    ESP_TELL(worker, MESSAGE, "%d continuations: [ and ] go from one to the next", c->count);
    esp_worker_continue_end(worker);
    esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
    return false;
}

/* Adds a continuation that begins with token `first`, or with any token if `first` is -1.
 * Returns 0 or ESP_E_MEMORY. */
static int add_continuation(struct esp_worker *worker, const struct esp_text_token *text,
                            int count, int32_t first)
{
    struct esp_continuations *c = &worker->continuations;
    struct esp_continuation *next = &c->each[c->count];
    *next = (struct esp_continuation){
        .begin = count, .count = count, .generation = -1, .left = worker->limit};
    if (esp_reserve(&next->text, count + 64, &next->capacity, sizeof *next->text) < 0)
        return ESP_E_MEMORY;
    if (count > 0)
        memcpy(next->text, text, (size_t)count * sizeof *text);
    if (first >= 0)
        next->text[next->count++] = (struct esp_text_token){first, ESP_TEXT_CHOSEN};
    esp_session_generator(worker->pair.session, &next->generator);
    next->generator.draft += (uint64_t)(c->count + 1) << DRAWS_LOG;
    next->generator.verify += (uint64_t)(c->count + 1) << DRAWS_LOG;
    c->count++;
    return ESP_OK;
}

/* Adds all continuations. At temperature 0 they would all be the same. Therefore
 * continuation i begins with the i-th likeliest token. */
static int add_all(struct esp_worker *worker, const struct esp_message *command, char *err,
                   size_t errlen)
{
    const struct esp_text_token *text = (const void *)command->text[0];
    const int count = (int)(command->length / sizeof *text);
    struct esp_session_options now;
    struct esp_token_score score = {.count = 0};
    int wanted = command->number[0], status = ESP_OK;
    esp_session_current(worker->pair.session, &now);
    if (now.values.temperature == 0) {
        status = esp_session_score_text(worker->pair.session, count, 1, &score, err, errlen);
        wanted = wanted < score.count ? wanted : score.count;
    }
    for (int i = 0; i < wanted && i < ESP_MOST_CONTINUATIONS && status == ESP_OK; i++)
        status = add_continuation(worker, text, count, i < score.count ? score.likely[i] : -1);
    return status == ESP_E_MEMORY
               ? esp_fail(err, errlen, status, "not enough memory for the continuations")
               : status;
}

bool esp_worker_continue(struct esp_worker *worker, const struct esp_message *command)
{
    const struct esp_text_token *text = (const void *)command->text[0];
    char err[256] = "";
    esp_worker_continue_end(worker);
    int status = turn_to(worker, text, (int)(command->length / sizeof *text), ESP_FORK_NEW);
    if (status == ESP_OK && (status = add_all(worker, command, err, sizeof err)) < 0)
        ESP_TELL(worker, ERROR, "%s", err);
    if (status < 0 || worker->continuations.count == 0) {
        esp_worker_continue_end(worker);
        esp_reporter_phase(&worker->report, ESP_PHASE_IDLE, "", 0);
        return false;
    }
    esp_reporter_phase(&worker->report, ESP_PHASE_GENERATING, "", 0);
    return begin_turn(worker);
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
        count = 0;
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
    if (count > 0 && worker->keeping.keeper)
        esp_keeper_scores(worker->keeping.keeper, first, scores, count);
    free(scores);
}
