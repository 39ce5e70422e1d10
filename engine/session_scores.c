/* session_scores.c - computes the target's probabilities for the tokens that an iteration
 * commits, and for any tokens of the text; see scores.h. */
#include <math.h>
#include <stdlib.h>

#include "engine/session_parts.h"
#include "kernels/status.h"

/* ------------------------------------------------------------------ tokens of an iteration */

/* At temperature 0, the row after a node without children still has logits. They are turned
 * into probabilities: in a copy of the row if the drafter reads the logits later
 * (esp_look_back), otherwise in the row itself. */
static int to_probabilities(struct esp_session *s, int32_t *row, struct esp_rows **rows)
{
    const struct esp_sampling plain = {.temperature = 1, .top_p = 1};
    float *values;
    if (!esp_session_keeps_past(s))
        return s->ops->softmax(s->p, row, 1, &plain);
    if (!(values = malloc((size_t)s->p->vocabulary * sizeof *values)))
        return ESP_E_MEMORY;
    int status = s->ops->read_row(s->p, *row, values);
    if (status == ESP_OK)
        status = s->ops->write_row(s->scores.end, 0, values);
    free(values);
    *rows = s->scores.end;
    *row = 0;
    return status < 0 ? status : s->ops->softmax(*rows, row, 1, &plain);
}

/* Stores the scores of the distribution at the end of the path. Above temperature 0, a residual
 * may have replaced that distribution in its row, so the verifier's copy of it is used. */
static int keep_end(struct esp_session *s, int node, struct esp_rows **rows, int32_t *row)
{
    const bool leaf = s->tree.first_child[node] < 0;
    *rows = s->p;
    *row = s->tree.row[node];
    int status = ESP_OK;
    if (s->set.sampling.temperature > 0) {
        *rows = s->verify.end;
        *row = 0;
    } else if (leaf) {
        status = to_probabilities(s, row, rows);
    }
    if (status < 0 || s->scores.known[node])
        return status;
    return esp_scores_keep(&s->scores, node, *rows, *row, ESP_NOW);
}

int esp_session_score_path(struct esp_session *s)
{
    const struct esp_verify *v = &s->verify;
    struct esp_scores *scores = &s->scores;
    struct esp_rows *rows;
    const double start = esp_clock();
    double bonus_p = NAN;
    int32_t row;
    int node = 0, status = ESP_OK;
    if (!v->scores)
        return ESP_OK;
    const double before = scores->seconds;
    for (int i = 0; i < v->path_length && status == ESP_OK; node = v->path[i++])
        status = esp_verify_keep_scores(&s->verify, node);
    if (status == ESP_OK)
        status = keep_end(s, node, &rows, &row);
    if (status == ESP_OK)
        status = s->ops->gather(rows, &row, &v->bonus, 1, &bonus_p, ESP_NOW);
    node = 0;
    for (int i = 0; i < v->path_length && status == ESP_OK; node = v->path[i++])
        scores->of[i] = esp_scores_of(scores, node, s->tree.tree.nodes[v->path[i]].token,
                                      (double)s->tree.tree.nodes[v->path[i]].p);
    if (!scores->end_exact) /* the probability is unknown if the token is not among the
                               likeliest */
        bonus_p = NAN;
    if (status == ESP_OK)
        scores->of[v->path_length] = esp_scores_of(scores, node, v->bonus, bonus_p);
    s->iteration.scores = status == ESP_OK ? scores->of : NULL;
    scores->seconds = before + esp_clock() - start;
    return status;
}

/* ------------------------------------------------------------------ tokens of the text */

int esp_session_score(struct esp_session *s, bool on, char *err, size_t errlen)
{
    int status = ESP_OK;
    if (on && !s->scores.end)
        status = esp_scores_open(&s->scores, s->engine->backend, s->tree.record,
                                 s->engine->target->desc.vocabulary, err, errlen);
    s->verify.scores = on && status == ESP_OK ? &s->scores : NULL;
    esp_session_choose_end(s);
    return status;
}

/* Returns whether the row of the token at `position` can be computed again. It cannot if a
 * window has dropped rows to which the token attends. In a model with recurrent layers, only
 * the row after the whole text can be computed, because the states of these layers include the
 * whole text. */
static bool is_reachable(const struct esp_kv_cache *c, int position)
{
    const struct esp_window *w = &c->window;
    return position >= 0 && position <= c->length && (c->slots == 0 || position == c->length) &&
           (w->dropped == 0 ||
            position + 1 - w->recent >= w->sinks + w->dropped + ESP_WINDOW_STEP);
}

/* Computes the rows of `count` tokens again, in place, starting with the token before
 * `first`. Their values do not change. */
static int pass_again(struct esp_session *s, int first, int count)
{
    struct esp_kv_cache *c = &s->target;
    for (int i = 0; i < count; i++) {
        s->tokens[i] = s->text[first - 1 + i];
        s->positions[i] = first - 1 + i;
    }
    struct esp_batch batch = {
        .rows = count, .tokens = s->tokens, .positions = s->positions, .logits = s->p};
    esp_kv_cache_place(c, 0, &batch);
    batch.first = batch.prefix = first - 1 - c->window.dropped;
    return esp_kv_cache_forward(c, &batch);
}

static int score_rows(struct esp_session *s, int first, int count, struct esp_token_score *to)
{
    const struct esp_sampling plain = {.temperature = 1, .top_p = 1};
    int status = pass_again(s, first, count);
    for (int32_t i = 0; i < count && status == ESP_OK; i++) {
        const int32_t token = first + i < s->length ? s->text[first + i] : 0;
        double p = NAN;
        status = s->ops->softmax(s->p, &i, 1,
                                 s->set.sampling.temperature > 0 ? &s->set.sampling : &plain);
        if (status == ESP_OK)
            status = esp_scores_keep(&s->scores, i, s->p, i, ESP_NOW);
        if (status == ESP_OK)
            status = s->ops->gather(s->p, &i, &token, 1, &p, ESP_NOW);
        to[i] = esp_scores_of(&s->scores, i, first + i < s->length ? token : -1,
                              first + i < s->length ? p : NAN);
    }
    return status;
}

int esp_session_score_text(struct esp_session *s, int first, int count,
                           struct esp_token_score *scores, char *err, size_t errlen)
{
    const int most =
        s->tree.capacity < s->target.max_batch ? s->tree.capacity + 1 : s->target.max_batch;
    int status = ESP_OK;
    if (first < 1 || count < 1 || first > s->length || count > s->length + 1 - first)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "the text has no tokens %d to %d", first,
                        first + count - 1);
    if (!is_reachable(&s->target, first - 1))
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "token %d cannot be computed again, because the window has dropped "
                        "tokens to which it attends",
                        first);
    if (!s->scores.end)
        status = esp_scores_open(&s->scores, s->engine->backend, s->tree.record,
                                 s->engine->target->desc.vocabulary, err, errlen);
    /* The last row is the root's. It needs one free row after the text. */
    if (status == ESP_OK && esp_kv_cache_make_room(&s->target, 1) < 0)
        status = esp_fail(err, errlen, ESP_E_CONTEXT, "the context is full");
    for (int done = 0, rows; done < count && status == ESP_OK; done += rows) {
        rows = count - done < most ? count - done : most;
        status = score_rows(s, first + done, rows, scores + done);
        if (status < 0)
            esp_fail(err, errlen, status, "the pass over the text failed: %s",
                     esp_session_failure(s, status));
    }
    return status;
}
