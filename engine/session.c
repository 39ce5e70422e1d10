/* session.c - manages the memory, the prompt and the statistics of a session.
 *
 * All memory is allocated when the session is opened; iterations (loop.c) allocate nothing.
 */
#include "engine/session_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/model/own_copy.h"
#include "kernels/status.h"

enum { FAR_TOO_LONG = 4 /* multiples of the context */ };

/* Called when the tree has grown by a layer. The observer's time is not included in any
 * stage. */
static void layer_done(void *user)
{
    struct esp_session *s = user;
    double start = esp_clock();
    if (!s->observer)
        return;
    s->iteration.tree = s->tree.tree;
    s->iteration.draft_passes = s->draft.passes;
    esp_session_emit(s,
                     (struct esp_event){.type = ESP_EVENT_LAYER, .iteration = &s->iteration});
    s->draft.work->watched += esp_clock() - start;
}

/* ------------------------------------------------------------------ opening and closing */

/* Returns the number of parameters that a draft pass uses, divided by the number that a target
 * pass uses. A shared LM head is included in both numbers. For a quantised copy of the target,
 * returns the ratio of their bytes.
 */
static double relative_cost(const struct esp_engine *e)
{
    const struct esp_model_desc *d = &e->draft->desc;
    if (e->draft->original)
        return esp_own_copy_share(e->target, e->draft->path);
    double parameters = (double)(e->draft->parameters - e->draft->idle);
    if (d->reads == ESP_READS_EAGLE)
        parameters += (double)d->outputs * d->hidden;
    return parameters / (double)(e->target->parameters - e->target->idle);
}

static int take_memory(struct esp_session *s, char *err, size_t errlen)
{
    struct esp_engine *e = s->engine;
    const bool head = esp_session_has_head(s);
    const int nodes = e->max_nodes, rows = nodes + 1, vocabulary = e->target->desc.vocabulary;
    const struct esp_wanted_rows wanted[] = {
        {&s->p, rows, vocabulary},
        {&s->q, e->draft ? rows + 1 : 0, vocabulary},
        {&s->states, head ? rows : 0, head ? e->draft->desc.hidden : 0},
    };
    int status = esp_tree_open(&s->tree, nodes, err, errlen);
    if (status == ESP_OK)
        status = esp_session_open_rows(s, wanted, 3, err, errlen);
    if (status == ESP_OK && head)
        status = esp_features_open(&s->features, e->backend, e->draft, e->target,
                                   esp_kv_cache_batch(INT32_MAX / 2, rows), err, errlen);
    if (status == ESP_OK)
        status = esp_draft_open(&s->draft, &s->tree, err, errlen);
    if (status == ESP_OK)
        status = esp_verify_open(&s->verify, &s->tree, err, errlen);
    if (status < 0)
        return status;
    s->positions = esp_arrays_add(&s->arrays, (size_t)rows, sizeof *s->positions);
    s->tokens = esp_arrays_add(&s->arrays, (size_t)rows, sizeof *s->tokens);
    s->committed = esp_arrays_add(&s->arrays, (size_t)rows, sizeof *s->committed);
    if (s->arrays.failed || esp_session_text_room(s, rows) < 0)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for trees of %d nodes",
                        nodes);
    return ESP_OK;
}

/* Sets the members that never change in a session. */
static void connect(struct esp_session *s)
{
    const struct esp_engine *e = s->engine;
    struct esp_draft_work *w = s->draft.work;
    struct esp_verify *v = &s->verify;
    if (e->draft && e->target->name && e->draft->name)
        snprintf(s->pair, sizeof s->pair, "%.64s (%lld), %.64s (%lld)", e->target->name,
                 (long long)e->target->parameters, e->draft->name,
                 (long long)e->draft->parameters);
    else if (e->target->name)
        snprintf(s->pair, sizeof s->pair, "%.64s (%lld)", e->target->name,
                 (long long)e->target->parameters);
    if (e->draft && e->target->parameters > 0)
        s->costs.relative = relative_cost(e);
    s->draft_context = (struct esp_draft_context){.calibration = &s->calibration,
                                                  .costs = &s->costs,
                                                  .pair = s->repeatable ? "" : s->pair};
    s->respelling.target = esp_engine_language(e, false);
    if (e->draft_tokenizer)
        s->respelling.draft = esp_engine_language(e, true);
    w->cache = e->draft ? &s->draft_cache : NULL;
    w->scratch = esp_session_has_copy(s);
    w->rng = &s->draft_rng;
    w->q = s->q;
    w->features = esp_session_has_head(s) ? &s->features : NULL;
    w->states = s->states;
    w->layer = layer_done;
    w->user = s;
    v->ops = s->ops;
    v->p = s->p;
    v->q = s->q;
    v->q_row = s->draft.q_row;
    v->chance.rng = &s->verify_rng;
}

int esp_session_open(struct esp_session **session, struct esp_engine *engine,
                     const struct esp_session_options *options, char *err, size_t errlen)
{
    const struct esp_session_options none = {0}, *o = options ? options : &none;
    struct esp_session *s = calloc(1, sizeof *s);
    *session = NULL;
    if (!s)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a session");
    s->engine = engine;
    s->ops = engine->backend->ops;
    s->observer = o->observer;
    s->user = o->user;
    s->opened = esp_clock();
    s->repeatable = o->repeatable;
    s->end = "";
    s->pace.most = ESP_PACE_STEPS;
    s->plain.most = ESP_PACE_STEPS / ESP_BASELINE_EVERY;
    int status = take_memory(s, err, errlen);
    if (status == ESP_OK)
        connect(s);
    if (o->repeatable)
        esp_costs_nominal(&s->costs, o->nominal);
    if (status == ESP_OK)
        status = esp_session_first_settings(s, o, err, errlen);
    if (status < 0) {
        esp_session_close(s);
        return status;
    }
    *session = s;
    return ESP_OK;
}

void esp_session_close(struct esp_session *s)
{
    struct esp_session_values none = {.system = NULL};
    if (!s)
        return;
    const struct esp_look_back *back = &s->draft_context.back;
    struct esp_rows *const rows[] = {
        s->p, s->q, s->states, back->draft_states, back->state, back->p, s->respelling.logits};
    esp_calibration_save(&s->calibration);
    esp_costs_save(&s->costs);
    esp_recycling_close(&s->recycling);
    esp_expectation_close(&s->expectation);
    esp_session_close_drafter(s);
    esp_draft_close(&s->draft);
    esp_kv_cache_close(&s->draft_cache);
    esp_kv_cache_close(&s->target);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i])
            s->ops->rows_close(rows[i]);
    esp_features_close(&s->features, s->ops);
    esp_tree_close(&s->tree);
    esp_scores_close(&s->scores);
    esp_conversation_close(&s->conversation);
    esp_session_keep_texts(s, &none, NULL, 0);
    free(s->text);
    esp_arrays_free(&s->arrays);
    esp_verify_close(&s->verify);
    free(s);
}

/* ------------------------------------------------------------------ text */

void esp_session_count_from(struct esp_session *s, int first)
{
    s->first_index = first;
}

int esp_session_context(const struct esp_session *s)
{
    return s->context;
}

void esp_session_mark(struct esp_session *s, int slot)
{
    if (s->ops->mark)
        s->ops->mark(s->engine->backend, slot);
}

int esp_session_append(struct esp_session *s, const int32_t *tokens, int count, bool begin,
                       int said, int said_end, char *err, size_t errlen)
{
    const struct esp_tokenizer *tokenizer = s->engine->tokenizer;
    int32_t prefix =
        begin && tokenizer && s->length == 0 ? esp_tokenizer_prefix(tokenizer) : -1;
    int before = s->length, room = s->context - s->length;
    if (count < 1)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "the prompt is empty");
    if (prefix >= 0 && tokens[0] != prefix)
        room--;
    else
        prefix = -1;
    if (count > room - 1)
        return esp_fail(err, errlen, ESP_E_CONTEXT,
                        "the prompt has %d tokens, but only %d of the context's %d are free%s",
                        count, room > 0 ? room - 1 : 0, s->context,
                        s->length ? "; clear the text to start again" : "");
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= s->engine->target->desc.vocabulary)
            return esp_fail(err, errlen, ESP_E_ARGUMENT, "the model has no token %d",
                            tokens[i]);
    if (esp_session_text_room(s, s->length + count + 1) < 0)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a text of %d tokens",
                        s->length + count);
    double start = esp_clock();
    if (prefix >= 0)
        s->text[s->length++] = prefix;
    memcpy(s->text + s->length, tokens, (size_t)count * sizeof *tokens);
    s->length += count;
    esp_session_mark(s, ESP_MARK_PREFILL);
    int status = esp_session_prefill(s);
    esp_session_mark(s, ESP_MARK_PREFILLED);
    if (status == ESP_OK)
        status = esp_conversation_add(&s->conversation,
                                      (struct esp_turn_places){before, s->length - count + said,
                                                               s->length - count + said_end,
                                                               s->length});
    if (status < 0) {
        esp_session_shorten(s, before);
        return esp_fail(err, errlen, status, "prefill of the prompt failed: %s",
                        esp_session_failure(s, status));
    }
    s->end = "";
    s->stats.prompt_tokens += s->length - before;
    s->stats.prefill_seconds +=
        s->ops->between
            ? s->ops->between(s->engine->backend, ESP_MARK_PREFILL, ESP_MARK_PREFILLED)
            : esp_clock() - start;
    esp_session_emit(s, (struct esp_event){
                            .type = ESP_EVENT_PROMPT,
                            .tokens = s->text + before,
                            .token_count = s->length - before,
                            .marks = s->length - count - before + said,
                            .marks_after = count - said_end,
                        });
    return ESP_OK;
}

int esp_session_prompt(struct esp_session *s, const int32_t *tokens, int count, char *err,
                       size_t errlen)
{
    return esp_session_append(s, tokens, count, true, 0, count, err, errlen);
}

/* Tokenizes only the beginning of the text, which is quick even if the text has megabytes. Only
 * a few of the resulting tokens can differ from the tokens of the whole text. So if the
 * beginning is far too long for the context, the whole text is, too. */
bool esp_session_is_far_too_long(const struct esp_session *s, const char *text, size_t length)
{
    const int64_t far = FAR_TOO_LONG * (int64_t)s->context;
    for (size_t part = 16 * (size_t)far; part < length; part *= 2)
        if (esp_tokenize(s->engine, text, part, NULL, 0) > far)
            return true;
    return false;
}

int esp_session_prompt_text(struct esp_session *s, const char *text, size_t length, int most,
                            char *err, size_t errlen)
{
    if (most == 0 && esp_session_is_far_too_long(s, text, length))
        return esp_fail(err, errlen, ESP_E_CONTEXT,
                        "the prompt is more than %d times as long as the context of %d tokens; "
                        "shorten it",
                        FAR_TOO_LONG, s->context);
    int count = esp_tokenize(s->engine, text, length, NULL, 0);
    if (count < 0)
        return esp_fail(err, errlen, count, "the prompt cannot be tokenized: %s",
                        esp_status_message(count));
    int32_t *tokens = calloc((size_t)count + 1, sizeof *tokens);
    if (!tokens)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the prompt");
    count = esp_tokenize(s->engine, text, length, tokens, count);
    if (most > 0 && count > most)
        count = most;
    int status = esp_session_prompt(s, tokens, count, err, errlen);
    free(tokens);
    return status;
}

void esp_session_allow(struct esp_session *s, int tokens)
{
    s->allowed = tokens > 0 ? tokens : 0;
    s->end = "";
    esp_expectation_begin(s);
}

void esp_session_explain(struct esp_session *s, bool on)
{
    s->verify.explain = on;
}

const char *esp_session_end(const struct esp_session *s)
{
    return s->end;
}

int esp_session_rewind(struct esp_session *s, int count)
{
    if (count < 0 || count > s->length)
        return ESP_E_ARGUMENT;
    bool shorter = count < s->length;
    esp_session_shorten(s, count);
    esp_conversation_cut(&s->conversation, count);
    s->allowed = 0;
    s->end = "";
    if (shorter)
        esp_session_emit(s, (struct esp_event){.type = ESP_EVENT_REWIND, .token_count = count});
    return ESP_OK;
}

void esp_session_clear(struct esp_session *s)
{
    esp_session_rewind(s, 0);
    s->path_sum = 0;
    s->pace.count = s->pace.next = 0;
    esp_session_restart_random(s);
    s->first_index = 0;
    memset(&s->stats, 0, sizeof s->stats);
}

const int32_t *esp_session_tokens(const struct esp_session *s, int *count)
{
    *count = s->length;
    return s->text;
}

void esp_session_stats(const struct esp_session *s, struct esp_stats *stats)
{
    struct rusage usage;
    *stats = s->stats;
    if (stats->iterations > 0) {
        stats->mean_path_length = (double)s->path_sum / stats->iterations;
        stats->tokens_per_iteration = (double)stats->generated_tokens / stats->iterations;
    }
    if (stats->drafted_nodes > 0)
        stats->acceptance_rate = (double)stats->accepted_nodes / (double)stats->drafted_nodes;
    stats->token_seconds = esp_pace_per_token(&s->pace);
    if (!s->set.drafter->without_model)
        stats->draft_temp = esp_draft_sampling(&s->set).temperature / esp_session_beta(s);
    stats->calibration_error_raw = esp_tally_error(&s->calibration.raw);
    stats->calibration_error = esp_tally_error(&s->calibration.tempered);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        stats->peak_bytes = (size_t)usage.ru_maxrss * 1024;
    const struct esp_backend *backend = s->engine->backend;
    if (backend->ops->memory_free) {
        const size_t left = backend->ops->memory_free(backend);
        stats->device_bytes = left < s->engine->device_free ? s->engine->device_free - left : 0;
    }
}
