/* lossless.c - tests a session's output against the target's exact distribution; see
 * lossless.h.
 *
 * After each continuation the session is rewound to the end of its original text: the KV caches
 * are shortened and nothing is computed again. The random numbers are not rewound, so the
 * continuations are independent.
 */
#include "engine/lossless.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session_parts.h"
#include "kernels/status.h"

enum { SMALLEST_BIN = 5 }; /* minimum number of tokens expected in a bin of test `first` */

struct scorer {
    struct esp_session *session;
    int start;                         /* length of the text that is continued, in tokens */
    struct esp_kv_cache target, draft; /* KV caches of the text without its last token */
    bool has_draft, has_head;          /* has_head: the draft is a draft head */
    struct esp_features features;      /* hidden states for the draft head */
    struct esp_rows *p, *q;            /* (tokens) */
    float *p_row, *q_row;              /* (vocabulary) */
    int32_t *rows;                     /* (tokens) row indices 0, 1, 2, ... */
    double *first, *first_p;           /* (vocabulary) how often each token came first, and its
                                          exact probability */
    struct esp_arrays arrays;          /* owns the five arrays above */
    double rank[ESP_LOSSLESS_BINS], serial[ESP_LOSSLESS_SIDE * ESP_LOSSLESS_SIDE];
    struct esp_rng rng;
};

const char *esp_lossless_test_name(int test)
{
    static const char *const names[] = {
#define X(name) #name,
        ESP_LOSSLESS_TESTS(X)
#undef X
    };
    return names[test];
}

/* ------------------------------------------------------------------ memory */

/* Returns the maximum number of rows that a cache needs for the text and `tokens` tokens after
 * it. The cache is for the same model as `like`. */
static int rows_needed(const struct scorer *s, const struct esp_kv_cache *like, int tokens)
{
    const int most = like->translation ? ESP_SPELLED_MOST : 1;
    return esp_kv_cache_count(like, s->session->text, 0, s->start) + tokens * most;
}

static int open_cache(struct scorer *s, struct esp_kv_cache *cache,
                      const struct esp_model *model, struct esp_weights *weights,
                      const struct esp_kv_cache *like, int tokens, char *err, size_t errlen)
{
    const int rows = rows_needed(s, like, tokens);
    int status = esp_kv_cache_open(cache, s->session->ops, weights, model->desc.vocabulary,
                                   rows, 1, err, errlen);
    if (status == ESP_OK)
        esp_kv_cache_set_window(cache, &like->window, rows);
    if (status == ESP_OK && like->translation)
        status = esp_kv_cache_translate(cache, like->translation, err, errlen);
    if (status == ESP_OK && !s->has_head)
        status = esp_kv_cache_append(cache, s->session->text, s->start - 1, NULL, NULL);
    if (status == ESP_OK) /* all continuations begin at the end of this text */
        status = esp_kv_cache_checkpoint(cache);
    return status;
}

static int open_head(struct scorer *s, char *err, size_t errlen)
{
    const struct esp_engine *e = s->session->engine;
    int status = esp_features_open(&s->features, e->backend, e->draft, e->target,
                                   s->target.max_batch, err, errlen);
    return status < 0 ? status
                      : esp_features_catch_up(&s->features, &s->target, &s->draft,
                                              s->session->text, s->start);
}

static void close_scorer(struct scorer *s)
{
    const struct esp_backend_ops *ops = s->session->ops;
    esp_kv_cache_close(&s->target);
    if (s->has_draft)
        esp_kv_cache_close(&s->draft);
    esp_features_close(&s->features, ops);
    if (s->p)
        ops->rows_close(s->p);
    if (s->q)
        ops->rows_close(s->q);
    esp_arrays_free(&s->arrays);
}

static int open_scorer(struct scorer *s, int tokens, char *err, size_t errlen)
{
    const struct esp_engine *e = s->session->engine;
    const size_t vocabulary = (size_t)e->target->desc.vocabulary;
    s->has_draft =
        e->draft && !e->draft_tokenizer &&
        rows_needed(s, &s->session->draft_cache, tokens) <= s->session->draft_cache.context;
    s->has_head = s->has_draft && e->draft->head;
    if (s->has_head && (s->start < 2 || tokens >= esp_kv_cache_batch(s->start + tokens, 1)))
        s->has_draft = s->has_head = false; /* without a draft, q is taken as uniform */
    s->rng = (struct esp_rng){.seed = s->session->set.values.seed, .stream = ESP_RNG_CHECK};
    s->p_row = esp_arrays_add(&s->arrays, vocabulary, sizeof *s->p_row);
    s->q_row = esp_arrays_add(&s->arrays, vocabulary, sizeof *s->q_row);
    s->first = esp_arrays_add(&s->arrays, vocabulary, sizeof *s->first);
    s->first_p = esp_arrays_add(&s->arrays, vocabulary, sizeof *s->first_p);
    s->rows = esp_arrays_add(&s->arrays, (size_t)tokens, sizeof *s->rows);
    if (s->arrays.failed)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to check %d tokens",
                        tokens);
    for (int i = 0; i < tokens; i++)
        s->rows[i] = i;
    int status =
        s->session->ops->rows_open(&s->p, e->backend, tokens, (int)vocabulary, err, errlen);
    if (status == ESP_OK)
        status = open_cache(s, &s->target, e->target, e->target_weights, &s->session->target,
                            tokens, err, errlen);
    if (status == ESP_OK && s->has_draft) {
        status =
            s->session->ops->rows_open(&s->q, e->backend, tokens, (int)vocabulary, err, errlen);
        if (status == ESP_OK)
            status = open_cache(s, &s->draft, e->draft, e->draft_weights,
                                &s->session->draft_cache, tokens, err, errlen);
    }
    if (status == ESP_OK && s->has_head)
        status = open_head(s, err, errlen);
    return status;
}

/* ------------------------------------------------------------------ one continuation */

/* Appends at least `tokens` tokens to the text, unless it ends earlier. Returns the number of
 * tokens appended, or `tokens` if there were more. */
static int continue_text(struct scorer *s, int tokens, struct esp_lossless *result, char *err,
                         size_t errlen)
{
    struct esp_session *session = s->session;
    int status;
    esp_session_rewind(session, s->start);
    esp_session_allow(session, session->context);
    do {
        status = esp_session_step(session, err, errlen);
        result->iterations += status > 0;
    } while (status > 0 && session->length - s->start < tokens && !*session->end);
    int written = session->length - s->start;
    return status < 0 ? status : written < tokens ? written : tokens;
}

/* Runs a plain pass over the last token of the text and all `count` new tokens except the last
 * one. Row i of `rows` becomes the distribution (at temperature 0, the logits) of the i-th new
 * token. */
static int plain_pass(struct scorer *s, struct esp_kv_cache *cache, struct esp_rows *rows,
                      int count, const struct esp_sampling *sampling)
{
    const int before = cache->length;
    int status = ESP_OK;
    for (int done = 0, n; done < count && status == ESP_OK; done += n) {
        n = count - done < cache->max_batch ? count - done : cache->max_batch;
        struct esp_batch batch = {
            .rows = n,
            .logits = rows,
            .logits_row = s->rows + done,
            .states = s->has_head ? esp_features_ask(&s->features, n) : NULL,
        };
        status = esp_kv_cache_run(cache, s->session->text + before + done, &batch);
        if (status == ESP_OK && s->has_head)
            esp_features_add(&s->features, before + done, NULL, n);
    }
    esp_kv_cache_cut(cache, before);
    return status < 0 || !(sampling->temperature > 0)
               ? status
               : s->session->ops->softmax(rows, s->rows, count, sampling);
}

/* Runs the pass of a draft head, which reads the hidden states of the target's pass (see
 * target_features.h). Fills q. */
static int head_pass(struct scorer *s, int count, const struct esp_sampling *sampling)
{
    const struct esp_backend_ops *ops = s->session->ops;
    struct esp_kv_cache *head = &s->draft;
    const int before = head->length;
    struct esp_batch batch = {.rows = count,
                              .logits = s->q,
                              .input = s->features.states.to,
                              .input_row =
                                  esp_features_find(&s->features, before, before + count)};
    if (!batch.input_row)
        return ESP_E_ARGUMENT;
    int status = esp_kv_cache_run(head, s->session->text + before + 1, &batch);
    head->length = before;
    esp_features_cut(&s->features, s->start - 1);
    return status < 0 ? status : ops->softmax(s->q, s->rows, count, sampling);
}

/* Computes v of token x (see lossless.h) twice: with the vocabulary in the order of p/q, and in
 * the order of falling p. */
static void place(struct scorer *s, int32_t x, double *ratio, double *rank)
{
    const int n = s->p->vocabulary;
    const double px = s->p_row[x], qx = s->q_row[x];
    double total = 0, below = 0, level = 0, above = 0, equal = 0;
    for (int y = 0; y < n; y++) {
        double p = s->p_row[y], left = p * qx, right = px * s->q_row[y];
        total += p;
        below += left < right ? p : 0;
        level += left == right ? p : 0;
        above += p > px ? p : 0;
        equal += p == px ? p : 0;
    }
    *ratio = (below + esp_rng_uniform(&s->rng) * level) / total;
    *rank = (above + esp_rng_uniform(&s->rng) * equal) / total;
}

static int bin_of(double v, int bins)
{
    int bin = (int)(v * bins);
    return bin < 0 ? 0 : bin < bins ? bin : bins - 1;
}

static int score_sampled(struct scorer *s, int count, struct esp_lossless *result)
{
    const struct esp_backend_ops *ops = s->session->ops;
    int before = 0;
    for (int i = 0; i < count; i++) {
        int32_t x = s->session->text[s->start + i];
        double ratio, rank;
        int status = ops->read_row(s->p, i, s->p_row);
        for (int y = 0; y < s->p->vocabulary && !s->has_draft; y++)
            s->q_row[y] = 1;
        if (status == ESP_OK && s->has_draft)
            status = ops->read_row(s->q, i, s->q_row);
        if (status < 0)
            return status;
        if (i == 0) {
            s->first[x]++;
            for (int y = 0; y < s->p->vocabulary; y++)
                s->first_p[y] = s->p_row[y];
        }
        result->impossible += !(s->p_row[x] > 0);
        place(s, x, &ratio, &rank);
        result->ratio[bin_of(ratio, ESP_LOSSLESS_BINS)]++;
        s->rank[bin_of(rank, ESP_LOSSLESS_BINS)]++;
        int side = bin_of(ratio, ESP_LOSSLESS_SIDE);
        if (i %
            2) /* pairs do not overlap, because a chi-square test needs independent counts */
            s->serial[before * ESP_LOSSLESS_SIDE + side]++;
        before = side;
    }
    return ESP_OK;
}

static int score_greedy(struct scorer *s, int count, struct esp_lossless *result)
{
    for (int i = 0; i < count; i++) {
        int32_t likeliest, row = i;
        int status = s->session->ops->argmax(s->p, &row, 1, &likeliest, ESP_NOW);
        if (status < 0)
            return status;
        result->impossible += s->session->text[s->start + i] != likeliest;
    }
    return ESP_OK;
}

static int score(struct scorer *s, int count, struct esp_lossless *result)
{
    const struct esp_settings *set = &s->session->set;
    const struct esp_sampling draft = esp_draft_sampling(set);
    int status = plain_pass(s, &s->target, s->p, count, &set->sampling);
    result->tokens += count;
    if (status < 0 || set->sampling.temperature == 0)
        return status < 0 ? status : score_greedy(s, count, result);
    if (s->has_head)
        status = head_pass(s, count, &draft);
    else if (s->has_draft)
        status = plain_pass(s, &s->draft, s->q, count, &draft);
    return status < 0 ? status : score_sampled(s, count, result);
}

/* ------------------------------------------------------------------ the tests */

/* Tests the first tokens. Every token that is expected often enough has its own bin; the
 * other tokens share one bin. */
static struct esp_chi_square test_first(struct scorer *s, int trials)
{
    const int n = s->p->vocabulary;
    double rest = 0, rest_p = 0;
    int bins = 0;
    for (int x = 0; x < n; x++) {
        double count = s->first[x], p = s->first_p[x];
        if (p * trials >= SMALLEST_BIN) {
            s->first[bins] = count;
            s->first_p[bins++] = p;
        } else {
            rest += count;
            rest_p += p;
        }
    }
    if (bins == 0 || rest_p * trials >= SMALLEST_BIN) {
        s->first[bins] = rest;
        s->first_p[bins++] = rest_p;
    } else { /* too few tokens for a separate bin: they are added to the last bin */
        s->first[bins - 1] += rest;
        s->first_p[bins - 1] += rest_p;
    }
    return esp_chi_square_fit(s->first, s->first_p, bins);
}

static void finish(struct scorer *s, int trials, struct esp_lossless *r)
{
    double even[ESP_LOSSLESS_BINS];
    for (int i = 0; i < ESP_LOSSLESS_BINS; i++)
        even[i] = 1;
    r->test[ESP_LOSSLESS_ratio] = esp_chi_square_fit(r->ratio, even, ESP_LOSSLESS_BINS);
    r->test[ESP_LOSSLESS_rank] = esp_chi_square_fit(s->rank, even, ESP_LOSSLESS_BINS);
    r->test[ESP_LOSSLESS_serial] =
        esp_chi_square_fit(s->serial, even, ESP_LOSSLESS_SIDE * ESP_LOSSLESS_SIDE);
    r->test[ESP_LOSSLESS_first] = test_first(s, trials);
    r->distance = esp_total_variation(r->ratio, even, ESP_LOSSLESS_BINS);
    /* McDiarmid 1989: one token changes the distance by at most 1/n. The limit is more likely
     * too large than too small, because chance makes the measured distance larger on average
     * than the true distance. */
    r->limit = r->distance + sqrt(log(1 / 0.01) / (2.0 * r->tokens));
}

int esp_lossless_measure(struct esp_session *session, const struct esp_lossless_plan *plan,
                         struct esp_lossless *result, char *err, size_t errlen)
{
    struct scorer s = {.session = session, .start = session->length};
    memset(result, 0, sizeof *result);
    if (errlen > 0)
        *err = '\0';
    if (session->length < 1 || plan->tokens >= session->context - session->length)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%d tokens after a text of %d tokens do not fit in a context of %d",
                        plan->tokens, session->length, session->context);
    int status = open_scorer(&s, plan->tokens, err, errlen), count = 0;
    for (int trial = 0; trial < plan->trials && status == ESP_OK; trial++) {
        count = continue_text(&s, plan->tokens, result, err, errlen);
        status = count < 0 ? count : score(&s, count, result);
        if (status == ESP_OK && plan->progress &&
            !plan->progress(plan->user, trial + 1, plan->trials))
            status = ESP_E_CANCELLED;
    }
    if (status == ESP_OK && session->set.sampling.temperature > 0)
        finish(&s, plan->trials, result);
    esp_session_rewind(session, s.start);
    close_scorer(&s);
    if (status < 0 && errlen > 0 && !*err)
        esp_fail(err, errlen, status, "the check stopped: %s", esp_status_message(status));
    return status;
}
