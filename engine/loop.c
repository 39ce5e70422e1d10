/* loop.c - runs one iteration of tree speculation, which has six stages.
 *
 *   1 draft    the drafter grows a tree below the root, layer by layer
 *   2 flatten  the nodes get rows, parents before children, and ancestor bitmasks
 *   3 verify   one target pass over root and nodes with tree attention
 *   4 select   the verifier walks the tree: accepted path and bonus token
 *   5 commit   accepted key/value rows are moved into place, other rows are dropped
 *   6 adapt    the controller learns from the outcome
 *
 * The root is the last committed token. It has no row in the target's cache yet. Its row is
 * computed together with the tree's rows, so one target pass per iteration is enough. With
 * cache=rebuild, all rows of the tree are dropped, and the rows of the committed tokens are
 * computed again. This is what the papers literally say (dynatree, app. D, line 6).
 *
 * Invariant between iterations: the target's cache contains the text without its last token;
 * the draft model's cache contains a prefix of the text.
 *
 * If the draft model is the target's own copy, stage 1 writes the copy's keys and values to the
 * rows after the text in the target's cache. The first of them is the root's row. These rows
 * are temporary: stage 3 runs root and nodes in the same rows, and in each layer it overwrites
 * every row before reading it.
 */
#include <math.h>
#include <string.h>

#include "engine/compatible.h"
#include "kernels/status.h"

/* On an asynchronous device, a call that submits a stage returns before the stage has run. When
 * the accepted path is back on the host, all earlier work is done, and the device's own time
 * stamps give the times of the first stages. They also give the time at which stage `select`
 * started. This function sets *start to that time. *start and `begun`, the start of the
 * iteration, are times of the host's clock. Time spent in the observer is not part of any
 * stage. */
static void read_marks(struct esp_session *s, double begun, double *start)
{
    struct esp_backend *backend = s->engine->backend;
    double *seconds = s->iteration.seconds;
    if (!s->ops->between)
        return;
    for (int i = 0; i <= ESP_STAGE_VERIFY; i++)
        seconds[i] = s->ops->between(backend, 2 * i, 2 * i + 1);
    seconds[ESP_STAGE_DRAFT] = fmax(seconds[ESP_STAGE_DRAFT] - s->draft.work->watched, 0);
    double verified = begun + s->ops->between(backend, 0, 2 * ESP_STAGE_VERIFY + 1);
    *start = fmax(*start, fmin(verified, esp_clock()));
}

static void stage_done(struct esp_session *s, enum esp_stage stage, double *start)
{
    s->iteration.seconds[stage] = esp_clock() - *start;
    if (stage <= ESP_STAGE_VERIFY)
        esp_session_mark(s, 2 * (int)stage + 1);
    esp_session_emit(s, (struct esp_event){
                            .type = ESP_EVENT_STAGE,
                            .stage = stage,
                            .iteration = &s->iteration,
                        });
    *start = esp_clock(); /* the next stage starts only now, because in step mode the observer
                             waits for the user */
    if (stage < ESP_STAGE_VERIFY)
        esp_session_mark(s, 2 * (int)stage + 2);
}

/* Selects a token as plain decoding does, but without using the session's random numbers. */
static int choose_plainly(struct esp_session *s)
{
    const double u = 0.5;
    int32_t row = 0, token;
    double value;
    if (s->set.sampling.temperature == 0)
        return s->ops->argmax(s->p, &row, 1, &token, ESP_NOW);
    int status = s->ops->softmax(s->p, &row, 1, &s->set.sampling);
    return status < 0 ? status
                      : s->ops->sample(s->p, &row, &u, 1, 1, NULL, 0, &token, &value, ESP_NOW);
}

/* Runs a pass over the token at `position` and the tokens before it, in reverse order. The pass
 * writes to the cache rows after the text, which the next iteration overwrites. The pass uses
 * different tokens, because in a mixture of experts copies of one token would all use the same
 * experts. The pass would then be faster than a pass over a tree. */
static int pass_over(struct esp_session *s, struct esp_kv_cache *c, int position, int rows,
                     struct esp_rows *logits)
{
    const bool draft = c == &s->draft_cache;
    const int32_t spare = s->draft.capacity; /* index of a row of q that no drafter needs
                                                later */
    int status = esp_kv_cache_make_room(c, rows);
    if (status < 0)
        return status;
    for (int i = 0; i < rows; i++) {
        s->tokens[i] = *esp_kv_cache_known(c, s->text + position - i % (position + 1), 1);
        s->positions[i] = (draft ? esp_kv_cache_text_rows(c) : position) + i;
    }
    struct esp_batch batch = {
        .rows = rows,
        .tokens = s->tokens,
        .positions = s->positions,
        .logits = logits,
        .logits_row = draft ? &spare : NULL,
        .input = draft ? s->states : NULL,
    };
    esp_kv_cache_place(c, 0, &batch);
    return esp_kv_cache_forward(c, &batch);
}

/* If the draft model is a quantised copy of the target, prepares its cache for passes over the
 * rows after the target's text. These rows never count as text, so nothing has to be removed if
 * an iteration ends early. */
static int follow_target(struct esp_session *s)
{
    return esp_session_has_copy(s)
               ? esp_kv_cache_follow(&s->draft_cache, &s->target, s->draft.capacity)
               : (int)ESP_OK;
}

void esp_session_warm(struct esp_session *s)
{
    const struct esp_kv_cache *draft = &s->draft_cache;
    const int nodes = s->iteration.tree.verified; /* the next tree is assumed to have this
                                                   * size */
    int32_t row = 0, token;
    if (s->length == 0)
        return;
    if (draft->cache && follow_target(s) == ESP_OK && draft->length < s->length &&
        esp_kv_cache_text_rows(draft) < draft->context)
        pass_over(s, &s->draft_cache, draft->length, 1, s->q);
    if (pass_over(s, &s->target, s->length - 1, nodes > 1 ? nodes : 1, s->p) == ESP_OK)
        s->ops->argmax(s->p, &row, 1, &token, ESP_NOW); /* waits for the device */
}

/* Measures the time of a plain step: a target pass over the root alone, and the selection of a
 * token. The pass writes the root's row, which the verify pass will write again with the same
 * values. A plain step is timed in iterations 0 (after a warm-up pass), 1, 2, 4, 8 ..., to get
 * an early result, and then once every ESP_BASELINE_EVERY iterations. If an iteration takes as
 * long as a plain step, the timed steps take about 3 % of the time; if an iteration takes twice
 * as long, about 1.5 %. Passes over the start of a text are faster than average. The samples
 * are therefore spread over the whole text, as the iterations are. */
static int measure_baseline(struct esp_session *s)
{
    int index = s->stats.iterations, runs = index == 0 ? 2 : 1;
    if (index < ESP_BASELINE_EVERY ? index & (index - 1) : index % ESP_BASELINE_EVERY)
        runs = 0;
    for (int i = 0; i < runs; i++) {
        double start = esp_clock(), seconds[ESP_STAGES] = {0};
        int status = pass_over(s, &s->target, s->length - 1, 1, s->p);
        if (status == ESP_OK)
            status = choose_plainly(s);
        if (status < 0)
            return status;
        seconds[ESP_STAGE_VERIFY] = esp_clock() - start;
        if (i == runs - 1)
            esp_pace_add(&s->plain, seconds, 1, 1);
    }
    s->stats.baseline = s->iteration.baseline = esp_pace_per_token(&s->plain);
    return ESP_OK;
}

/* ------------------------------------------------------------------ the stages */

/* Drafts the tree of a drafter with a fixed shape. */
static int draft_paths(struct esp_draft *d, const struct esp_drafter_ops *drafter)
{
    int width[ESP_MAX_LEVELS];
    const struct esp_path_rule rule = {.width = width,
                                       .levels = drafter->widths(d->params, width)};
    return esp_draft_paths(d, &rule);
}

static int draft(struct esp_session *s, int remaining)
{
    const struct esp_drafter_ops *drafter = s->set.drafter;
    struct esp_draft *d = &s->draft;
    d->sampling = esp_draft_sampling(&s->set);
    d->sampling.temperature /= s->beta = esp_session_beta(s);
    d->seen = esp_session_seen(s, s->length);
    esp_costs_at(&s->costs, d->seen);
    d->text = s->text;
    d->text_length = s->length;
    d->max_depth = remaining - 1; /* one of the remaining tokens is the bonus token */
    const int left = drafter->without_model
                         ? d->max_depth
                         : esp_kv_cache_left(&s->draft_cache, s->text, s->length);
    if (d->max_depth > left)
        d->max_depth = left;
    if (!drafter->without_model && d->work->features && s->length < 2)
        d->max_depth = 0; /* no hidden state precedes the first token */
    esp_tree_reset(&s->tree, s->text[s->length - 1]);
    esp_draft_begin(d);
    int status = ESP_OK;
    if (!drafter->without_model && d->work->features && d->max_depth > 0)
        status = esp_features_catch_up(&s->features, &s->target, &s->draft_cache, s->text,
                                       s->length);
    if (status == ESP_OK && d->max_depth > 0 && !drafter->without_model)
        status = follow_target(s);
    if (status == ESP_OK && d->max_depth > 0)
        status = drafter->draft ? drafter->draft(d) : draft_paths(d, drafter);
    esp_draft_end(d);
    s->iteration.tree = s->tree.tree;
    s->iteration.draft_passes = d->passes;
    s->iteration.deepest = esp_tree_deepest(&s->tree.tree);
    s->iteration.choice_count = drafter->chooser && d->max_depth > 0
                                    ? drafter->chooser->choices(d->state, s->iteration.choices)
                                    : 0;
    return status;
}

static void count_states(struct esp_session *s, const struct esp_state_traffic *before)
{
    const struct esp_state_traffic *now = &s->target.cache->traffic;
    const size_t each = s->ops->state_bytes ? s->ops->state_bytes(s->target.weights->desc) : 0;
    struct esp_iteration *it = &s->iteration;
    it->state_bytes = (int64_t)each;
    it->state_read = now->read - before->read;
    it->state_written = now->written - before->written;
    s->stats.state_steps += now->steps - before->steps;
    s->stats.state_read += it->state_read;
    s->stats.state_written += it->state_written;
    s->stats.state_copies += it->state_bytes * s->tree.tree.verified;
}

static int target_pass(struct esp_session *s)
{
    const struct esp_tree *tree = &s->tree.tree;
    for (int i = 0; i < tree->verified; i++) {
        const struct esp_node *node = &tree->nodes[tree->order[i]];
        s->tokens[i] = node->token;
        s->positions[i] = s->length - 1 + node->depth;
    }
    const struct esp_states states = {1, {ESP_STATE_NORMED}, s->draft_context.back.state, NULL};
    struct esp_batch batch = {
        .rows = tree->verified,
        .tokens = s->tokens,
        .positions = s->positions,
        .mask = s->tree.mask,
        .mask_words = s->tree.mask_words,
        .text = s->rebuild ? 0 : 1,
        .logits = s->p,
        .states = esp_session_has_head(s)     ? esp_features_ask(&s->features, tree->verified)
                  : esp_session_keeps_past(s) ? &states
                                              : NULL,
    };
    int status = esp_kv_cache_make_room(&s->target, tree->verified);
    if (status < 0)
        return status;
    esp_kv_cache_place(&s->target, 0, &batch);
    s->target.passes++;
    const struct esp_state_traffic before = s->target.cache->traffic;
    status = esp_kv_cache_forward(&s->target, &batch);
    if (status == ESP_OK)
        count_states(s, &before);
    return status;
}

/* Stores the results of both models for the last token of the path. The next root was chosen
 * from these results, and the drafter reads them in the next iteration. At temperature 0, the
 * target's distribution is computed at temperature `low`. */
static int look_back(struct esp_session *s)
{
    static const struct esp_sampling low = {0.2, 1, 0};
    const struct esp_combination all = {.a = 1};
    const struct esp_verify *v = &s->verify;
    struct esp_look_back *back = &s->draft_context.back;
    const int node = v->path_length > 0 ? v->path[v->path_length - 1] : 0;
    const int32_t row = s->tree.row[node];
    int status = ESP_OK;
    if (!esp_session_keeps_past(s))
        return ESP_OK;
    if (s->set.sampling.temperature == 0) {
        status = s->ops->softmax(s->p, &row, 1, &low);
        if (status == ESP_OK)
            status = s->ops->combine(s->p, row, s->p, row, &all, back->p, 0, NULL);
    }
    back->state_row = row;
    back->draft_row = s->draft.q_row[node];
    back->length = s->length + v->path_length + 1;
    return status;
}

static int select_path(struct esp_session *s)
{
    struct esp_verify *v = &s->verify;
    int status = esp_calibration_look(&s->calibration, &s->draft, s->beta);
    if (status == ESP_OK)
        status = esp_recycling_look(s);
    if (status == ESP_OK)
        status = esp_verify_run(v, s->set.verifier);
    if (status == ESP_OK)
        status = esp_session_score_path(s);
    if (status == ESP_OK)
        status = look_back(s);
    s->iteration.path = v->path;
    s->iteration.path_length = v->path_length;
    s->iteration.bonus = v->bonus;
    s->iteration.bonus_u = v->bonus_u;
    return status;
}

/* Determines the tokens to commit: the path, then the bonus token, up to the first token that
 * ends the text and at most `remaining`. Returns their number. */
static int choose_committed(struct esp_session *s, int remaining)
{
    const struct esp_verify *v = &s->verify;
    int count = 0;
    s->end = "";
    while (count <= v->path_length && count < remaining) {
        int32_t token =
            count < v->path_length ? s->tree.tree.nodes[v->path[count]].token : v->bonus;
        s->committed[count++] = token;
        if (!s->set.values.ignore_eos && esp_session_is_end(s, token)) {
            s->end = s->conversation.chat.format ? "end of turn" : "end of text";
            break;
        }
    }
    return count;
}

static int commit(struct esp_session *s, int count)
{
    const struct esp_verify *v = &s->verify;
    int status;
    if (s->rebuild) {
        /* These rows are the root, then all committed tokens except the last, which is the next
         * root. */
        s->tokens[0] = s->text[s->length - 1];
        memcpy(s->tokens + 1, s->committed, (size_t)(count - 1) * sizeof *s->tokens);
        status = esp_kv_cache_append(&s->target, s->tokens, count, NULL, NULL);
    } else {
        s->tokens[0] = 0;
        for (int i = 1; i < count; i++)
            s->tokens[i] = s->tree.row[v->path[i - 1]];
        status = esp_kv_cache_keep(&s->target, s->tokens, count);
    }
    if (status == ESP_OK && s->draft.expanded > 0)
        status = esp_draft_commit(&s->draft, v->path, count - 1, s->rebuild);
    if (status < 0) { /* the text keeps its old length, and its last token stays the root */
        esp_kv_cache_cut(&s->target, s->length - 1);
        return status;
    }
    if (esp_session_has_head(s)) {
        for (int i = 0; i < count; i++)
            s->tokens[i] = i ? s->tree.row[v->path[i - 1]] : 0;
        esp_features_add(&s->features, s->length - 1, s->tokens, count);
    }
    memcpy(s->text + s->length, s->committed, (size_t)count * sizeof *s->text);
    s->length += count;
    s->iteration.committed = s->committed;
    s->iteration.committed_count = count;
    return status;
}

/* Learns how long the passes took, and which drafted tokens were accepted. */
static void learn(struct esp_session *s)
{
    const struct esp_draft *d = &s->draft;
    const struct esp_iteration *it = &s->iteration;
    double rest = 0;
    esp_calibration_learn(&s->calibration, d, it, s->beta,
                          s->set.values.draft_temp == ESP_DRAFT_AUTO &&
                              !s->set.drafter->chooser);
    for (int i = 0; i < d->passes && i < ESP_TIMED_PASSES; i++)
        esp_costs_took(&s->costs, ESP_COST_DRAFT, d->work->pass_rows[i],
                       d->work->pass_seconds[i]);
    for (int i = ESP_STAGE_FLATTEN; i <= ESP_STAGE_COMMIT; i++)
        rest += it->seconds[i];
    esp_costs_took(&s->costs, ESP_COST_VERIFY, it->tree.verified, rest);
    esp_recycling_learn(s);
}

/* Writes three gauges: the draft temperature, and the calibration error without and with this
 * temperature. */
static int session_gauges(const struct esp_session *s, struct esp_gauge *g)
{
    if (s->set.drafter->without_model)
        return 0;
    const double base = esp_draft_sampling(&s->set).temperature;
    g[0] = (struct esp_gauge){"draft_temp", .after = base / esp_session_beta(s), .minimum = 0,
                              .maximum = 2 * base};
    g[1] = (struct esp_gauge){"error_raw", .after = esp_tally_error(&s->calibration.raw),
                              .maximum = 1};
    g[2] = (struct esp_gauge){"error", .after = esp_tally_error(&s->calibration.tempered),
                              .maximum = 1};
    return 3;
}

static void read_gauges(struct esp_session *s, bool before)
{
    struct esp_gauge now[ESP_MAX_GAUGES];
    struct esp_iteration *it = &s->iteration;
    const struct esp_drafter_ops *drafter = s->set.drafter;
    it->gauge_count = drafter->gauges ? drafter->gauges(&s->draft, now) : 0;
    it->gauge_count += session_gauges(s, now + it->gauge_count);
    for (int i = 0; i < it->gauge_count; i++) {
        now[i].before = before ? now[i].after : it->gauges[i].before;
        it->gauges[i] = now[i];
    }
}

static void count_up(struct esp_session *s)
{
    struct esp_stats *stats = &s->stats;
    const struct esp_iteration *it = &s->iteration;
    stats->iterations++;
    stats->generated_tokens += it->committed_count;
    stats->drafted_nodes += it->tree.verified - 1;
    for (int i = 1; i < it->tree.verified; i++) {
        const struct esp_node *node = &it->tree.nodes[it->tree.order[i]];
        stats->source_nodes[node->source]++;
        stats->source_accepted[node->source] += node->verdict == ESP_ACCEPTED;
    }
    stats->accepted_nodes += it->path_length;
    stats->draft_passes += it->draft_passes;
    stats->draft_rows += s->draft.work->rows_computed;
    stats->target_passes += it->target_passes;
    for (int i = 0; i < ESP_STAGES; i++) {
        stats->stage_seconds[i] += it->seconds[i];
        stats->decode_seconds += it->seconds[i];
    }
    stats->draft_pass_seconds += s->draft.work->model_seconds;
    stats->exchange_seconds += it->exchange_seconds;
    if (stats->iterations == 1)
        stats->first_token_seconds = stats->prefill_seconds + stats->decode_seconds;
    esp_pace_add(&s->pace, it->seconds, it->committed_count,
                 it->tree.verified + it->draft_passes);
    s->path_sum += it->path_length;
}

/* ------------------------------------------------------------------ the iteration */

static int run(struct esp_session *s, int remaining)
{
    struct esp_iteration *it = &s->iteration;
    double begun = esp_clock(), start = begun;
    esp_session_mark(s, 0);
    int status = draft(s, remaining); /* 1 */
    if (status < 0)
        return status;
    start += s->draft.work->watched;
    stage_done(s, ESP_STAGE_DRAFT, &start);

    esp_tree_flatten(&s->tree, s->set.values.order); /* 2 */
    it->tree = s->tree.tree;
    it->mask_blocks = s->tree.mask_blocks;
    stage_done(s, ESP_STAGE_FLATTEN, &start);

    status = target_pass(s); /* 3 */
    if (status < 0)
        return status;
    stage_done(s, ESP_STAGE_VERIFY, &start);

    status = select_path(s); /* 4 */
    if (status < 0)
        return status;
    read_marks(s, begun, &start);
    start += s->verify.explained_seconds + (s->verify.scores ? s->scores.seconds : 0);
    stage_done(s, ESP_STAGE_SELECT, &start);

    int count = choose_committed(s, remaining);
    it->ends_turn = *s->end && s->conversation.chat.format;
    status = commit(s, count); /* 5 */
    it->target_passes = s->target.passes;
    if (status < 0)
        return status;
    stage_done(s, ESP_STAGE_COMMIT, &start);

    learn(s);
    if (s->set.drafter->adapt) /* 6 */
        s->set.drafter->adapt(&s->draft, it);
    read_gauges(s, false);
    stage_done(s, ESP_STAGE_ADAPT, &start);
    return count;
}

/* Returns the time that exchanges between ranks have taken so far. */
static struct esp_rank_times exchanged(const struct esp_session *s)
{
    struct esp_rank_times times = {.seconds = 0};
    if (s->ops->rank_times)
        s->ops->rank_times(s->engine->backend, &times);
    return times;
}

/* Calls run(), and records the part of its time in which ranks exchanged rows. */
static int run_timed(struct esp_session *s, int remaining)
{
    const double before = exchanged(s).seconds;
    const int status = run(s, remaining);
    const struct esp_rank_times times = exchanged(s);
    s->iteration.exchange_seconds = times.seconds - before;
    s->iteration.lap_count = times.lap_count;
    if (times.lap_count > 0)
        memcpy(s->iteration.laps, times.laps, (size_t)times.lap_count * sizeof *times.laps);
    return status;
}

static int finish(struct esp_session *s, const char *why)
{
    s->end = why;
    s->allowed = 0;
    if (s->set.drafter->finish)
        s->set.drafter->finish(&s->draft);
    esp_session_emit(s, (struct esp_event){.type = ESP_EVENT_END, .text = why});
    return 0;
}

/* Computes the end of the text again if the cache lacks it. With a window, this happens if the
 * cache was emptied because much of the text was removed. With recurrent layers, it happens if
 * their states went back to a checkpoint. */
static int compute_again(struct esp_session *s)
{
    const double start = esp_clock();
    esp_kv_cache_cut(&s->target,
                     s->length - 1); /* a failed iteration may have advanced the states */
    if (s->target.length == s->length - 1)
        return ESP_OK;
    const int status = esp_session_prefill(s);
    s->stats.prefill_seconds += esp_clock() - start;
    return status;
}

/* Runs an iteration for at most `remaining` tokens. */
static int iterate(struct esp_session *s, int index, int remaining)
{
    s->iteration = (struct esp_iteration){
        .index = index,
        .position = s->length,
        .drafter = s->set.drafter->name,
        .verifier = s->set.verifier->name,
        .lossy = esp_session_is_lossy(s),
    };
    s->target.passes = 0;
    read_gauges(s, true);
    int status = esp_session_text_room(s, s->length + s->tree.capacity + 1);
    if (status == ESP_OK)
        status = compute_again(s);
    if (status == ESP_OK && s->set.values.baseline)
        status = measure_baseline(s);
    return status == ESP_OK ? run_timed(s, remaining) : status;
}

int esp_session_step(struct esp_session *s, char *err, size_t errlen)
{
    if (s->length == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no prompt to continue");
    if (*s->end)
        return 0;
    int remaining = s->context - s->length;
    if (remaining <= 0)
        return finish(s, "context full");
    if (s->allowed <= 0)
        return finish(s, "length");
    if (remaining > s->allowed)
        remaining = s->allowed;

    const int index = s->first_index + s->stats.iterations;
    const struct esp_rng drafted = s->draft_rng, verified = s->verify_rng;
    int status = iterate(s, index, remaining);
    if (status < 0 && (status = esp_session_recover(s, status)) == ESP_OK) {
        s->draft_rng = drafted;
        s->verify_rng = verified;
        status = iterate(s, index, remaining);
    }
    if (status < 0) {
        s->end = "";
        return esp_fail(err, errlen, status, "iteration %d failed: %s", index,
                        esp_session_failure(s, status));
    }
    const char *end = s->end;
    count_up(s);
    s->allowed -= status;
    esp_session_emit(
        s, (struct esp_event){.type = ESP_EVENT_ITERATION, .iteration = &s->iteration});
    if (*end)
        finish(s, end);
    return status;
}
