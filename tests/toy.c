/* toy.c - implements the test backend of toy.h with simple loops over doubles. */
#include "tests/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/batch.h"
#include "tests/check.h"

enum { MOST = 1024 /* a vocabulary has at most this many tokens */ };

struct toy_weights {
    struct esp_weights base;
    const struct toy *toy;
    bool draft;
};

struct toy_cache {
    struct esp_cache base;
    int rows;
    int32_t *tokens, *positions; /* (rows) -1: the row was never written */
    /* (rows) true if the row was written by a pass of the target's copy */
    bool *scratch;
    bool joined; /* this cache uses the arrays of another cache */
};

struct toy_rows {
    struct esp_rows base;
    double *value; /* (capacity, vocabulary) */
};

static double *row_of(struct esp_rows *rows, int which)
{
    return ((struct toy_rows *)rows)->value + (size_t)which * (size_t)rows->vocabulary;
}

double *toy_row(struct esp_rows *rows, int which)
{
    return row_of(rows, which);
}

/* ------------------------------------------------------------------ distributions */

static void random_logs(const struct toy *toy, int vocabulary, unsigned long long seed,
                        const int32_t *tokens, int count, double *log_p)
{
    unsigned long long state = seed * 0x2545F4914F6CDD1Dull + 1;
    for (int i = 0; i < count; i++)
        state = (state ^ (unsigned long long)(tokens[i] + 1)) * 0x9e3779b97f4a7c15ull + 1;
    for (int x = 0; x < vocabulary; x++)
        log_p[x] = toy->sharpness * log(check_uniform(&state) + 1e-3);
}

static void distribution(const struct toy *toy, int vocabulary, bool draft,
                         const int32_t *tokens, int count, double *p)
{
    double other[MOST], most = -INFINITY, sum = 0;
    random_logs(toy, vocabulary, toy->seed, tokens, count, p);
    if (draft) {
        random_logs(toy, vocabulary, toy->seed + 77, tokens, count, other);
        for (int x = 0; x < vocabulary; x++)
            p[x] = toy->closeness * p[x] + (1 - toy->closeness) * other[x];
        for (int x = 0; x < vocabulary && toy->dulled > 0; x++)
            p[x] /= toy->dulled;
    } else if (toy->chancy) {
        random_logs(toy, vocabulary, toy->seed + 555, tokens, count, other);
        /* adds Gumbel noise, which is computed from the values of `other` */
        for (int x = 0; x < vocabulary; x++)
            p[x] -= log(-log(fmax(exp(other[x] / toy->sharpness) - 1e-3, 1e-12)));
    }
    for (int x = 0; x < vocabulary; x++)
        most = fmax(most, p[x]);
    for (int x = 0; x < vocabulary; x++)
        sum += p[x] = exp(p[x] - most);
    for (int x = 0; x < vocabulary; x++)
        p[x] /= sum;
}

void toy_distribution(const struct toy *toy, bool draft, const int32_t *tokens, int count,
                      double *p)
{
    distribution(toy, toy->vocabulary, draft, tokens, count, p);
}

enum { LEAST = -1000000 /* the logit of a token that has probability 0 */ };

/* Computes the logits of a draft with another vocabulary. `tokens` are tokens of the draft's
 * vocabulary, which the draft has read. */
static void translated_logits(const struct toy *toy, const int32_t *tokens, int count,
                              double *logits)
{
    const struct esp_translation *t = &toy->engine.translation;
    double own[MOST];
    int rows = 0; /* number of logits that the draft computes in its own vocabulary */
    for (int i = 0; i < t->shared; i++)
        rows = t->output_row[i] >= rows ? t->output_row[i] + 1 : rows;
    distribution(toy, rows, true, tokens, count, own);
    for (int x = 0; x < toy->vocabulary; x++)
        logits[x] = LEAST;
    for (int i = 0; i < t->shared; i++)
        logits[t->output_token[i]] = log(own[t->output_row[i]]);
}

static void write_logits(const struct toy *toy, bool draft, const int32_t *tokens, int count,
                         double *logits)
{
    const int known = draft ? toy->draft.desc.vocabulary : toy->vocabulary;
    if (draft && toy->engine.translation.tokens > 0) {
        translated_logits(toy, tokens, count, logits);
        return;
    }
    toy_distribution(toy, draft, tokens, count, logits);
    for (int x = 0; x < toy->vocabulary; x++)
        logits[x] = x < known ? log(logits[x]) : LEAST;
}

/* ------------------------------------------------------------------ the passes */

static int forward(struct esp_cache *base, const struct esp_batch *b)
{
    struct toy_cache *cache = (struct toy_cache *)base;
    const struct toy_weights *weights = (const struct toy_weights *)base->weights;
    int32_t seen[4096], wanted[4096], wanted_at[4096];
    const struct toy *toy = weights->toy;
    const int known = weights->draft ? toy->draft.desc.vocabulary : toy->vocabulary;
    if (b->rows > 4096)
        return ESP_E_ARGUMENT;
    for (int i = 0; i < b->rows; i++) {
        int n = 0, own = b->first + i;
        if (own >= cache->rows || b->tokens[i] < 0 || b->tokens[i] >= known)
            return ESP_E_ARGUMENT;
        const int sinks = b->window ? b->window->sinks : 0;
        const int first = b->window ? b->positions[i] - b->window->recent + 1 : 0;
        int next = 0; /* the position that the next visible row must have */
        cache->tokens[own] = b->tokens[i];
        cache->positions[own] = b->positions[i];
        cache->scratch[own] = cache->joined;
        for (int r = 0; r <= own; r++) {
            int bit = r - b->prefix;
            bool visible = r < b->prefix || !b->mask ||
                           (b->mask[i * b->mask_words + bit / 64] >> (bit % 64) & 1);
            if (!visible || (cache->positions[r] >= sinks && cache->positions[r] < first))
                continue;
            if (next == sinks && first > sinks)
                next = first;
            if (cache->tokens[r] < 0 || cache->positions[r] != next++ || n == 4096 ||
                (cache->scratch[r] && !cache->joined))
                return ESP_E_ARGUMENT; /* an unwritten row, a gap between positions, or a
                                          row of another model */
            seen[n++] = cache->tokens[r];
        }
        int to = b->logits_row ? b->logits_row[i] : i;
        if (!b->logits || to < 0)
            continue;
        write_logits(toy, weights->draft, seen, n, row_of(b->logits, to));
    }
    return b->step ? esp_batch_step(b, wanted_at, esp_batch_wanted(b, wanted, wanted_at))
                   : ESP_OK;
}

static int keep(struct esp_cache *base, int first, const int32_t *which, int count)
{
    struct toy_cache *cache = (struct toy_cache *)base;
    for (int i = 0; i < count; i++) {
        if (which[i] < first + i || (i > 0 && which[i] <= which[i - 1]) ||
            which[i] >= cache->rows)
            return ESP_E_ARGUMENT;
        cache->tokens[first + i] = cache->tokens[which[i]];
        cache->positions[first + i] = cache->positions[which[i]];
        cache->scratch[first + i] = cache->scratch[which[i]];
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ rows */

static int argmax(struct esp_rows *rows, const int32_t *which, int count, int32_t *ids,
                  enum esp_delivery when)
{
    (void)when;
    for (int i = 0; i < count; i++) {
        const double *v = row_of(rows, which[i]);
        ids[i] = 0;
        for (int x = 0; x < rows->vocabulary; x++) {
            if (!isfinite(v[x]))
                return ESP_E_NUMERIC;
            if (v[x] > v[ids[i]])
                ids[i] = x;
        }
    }
    return ESP_OK;
}

static int top_k(struct esp_rows *rows, const int32_t *which, int count, int k, int32_t *ids,
                 float *values, enum esp_delivery when)
{
    (void)when;
    for (int i = 0; i < count; i++) {
        const double *v = row_of(rows, which[i]);
        bool taken[MOST] = {false};
        for (int j = 0; j < k; j++) {
            int best = -1;
            for (int x = 0; x < rows->vocabulary; x++)
                if (!taken[x] && (best < 0 || v[x] > v[best]))
                    best = x;
            ids[i * k + j] = best < 0 ? 0 : best;
            values[i * k + j] = best < 0 ? 0 : (float)v[best];
            if (best >= 0)
                taken[best] = true;
        }
    }
    return ESP_OK;
}

/* Returns the rank of token x: how many tokens come before it if tokens are sorted by
 * descending value, and tokens with equal values by index. */
static int rank_of(const double *v, int n, int x)
{
    int rank = 0;
    for (int y = 0; y < n; y++)
        rank += v[y] > v[x] || (v[y] == v[x] && y < x);
    return rank;
}

static int softmax(struct esp_rows *rows, const int32_t *which, int count,
                   const struct esp_sampling *sampling)
{
    int n = rows->vocabulary;
    /* tokens need to be sorted only if top-k or top-p is used */
    const bool cut = sampling->top_k > 0 || sampling->top_p < 1;
    for (int i = 0; i < count; i++) {
        double *v = row_of(rows, which[i]), out[MOST], most = -INFINITY, sum = 0, ahead = 0;
        int order[MOST];
        for (int x = 0; x < n; x++) {
            if (isnan(v[x]) || v[x] == INFINITY)
                return ESP_E_NUMERIC;
            order[cut ? rank_of(v, n, x) : x] = x;
            most = fmax(most, v[x]);
        }
        for (int r = 0; r < n; r++) {
            bool in = sampling->top_k <= 0 || r < sampling->top_k;
            out[order[r]] = in ? exp((v[order[r]] - most) / sampling->temperature) : 0;
            sum += out[order[r]];
        }
        for (int r = 0; r < n && sampling->top_p < 1; r++) {
            double own = out[order[r]];
            if (r > 0 && ahead >= sampling->top_p * sum)
                out[order[r]] = 0;
            ahead += own;
        }
        sum = 0;
        for (int x = 0; x < n; x++)
            sum += out[x];
        for (int x = 0; x < n; x++)
            v[x] = out[x] / sum;
    }
    return ESP_OK;
}

static int gather(struct esp_rows *rows, const int32_t *which, const int32_t *tokens, int count,
                  double *values, enum esp_delivery when)
{
    (void)when;
    for (int i = 0; i < count; i++)
        values[i] = row_of(rows, which[i])[tokens[i]];
    return ESP_OK;
}

static void draw(double *weight, int n, double u, int32_t *token)
{
    double total = 0, sum = 0;
    for (int x = 0; x < n; x++)
        total += weight[x];
    *token = -1;
    for (int x = 0; x < n; x++) {
        if (!(weight[x] > 0))
            continue;
        *token = x;
        if ((sum += weight[x]) > u * total)
            break;
    }
}

static int sample(struct esp_rows *rows, const int32_t *which, const double *u, int count,
                  int draws, const int32_t *excluded, int per, int32_t *tokens, double *values,
                  enum esp_delivery when)
{
    (void)when;
    for (int i = 0; i < count; i++) {
        double weight[MOST];
        memcpy(weight, row_of(rows, which[i]), (size_t)rows->vocabulary * sizeof *weight);
        for (int j = 0; j < per; j++)
            if (excluded[i * per + j] >= 0)
                weight[excluded[i * per + j]] = 0;
        for (int j = i * draws; j < (i + 1) * draws; j++) {
            draw(weight, rows->vocabulary, u[j], &tokens[j]);
            values[j] = tokens[j] < 0 ? 0 : weight[tokens[j]];
            if (tokens[j] >= 0)
                weight[tokens[j]] = 0;
        }
    }
    return ESP_OK;
}

static int combine(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                   const struct esp_combination *f, struct esp_rows *to, int to_row,
                   double *sum)
{
    const double *pv = row_of(p, p_row), *qv = row_of(q, q_row);
    double value[MOST], total;
    sum = sum ? sum : &total;
    *sum = 0;
    for (int x = 0; x < p->vocabulary; x++) {
        value[x] = fmax(0, f->a * pv[x] + f->b * qv[x] + f->c * fmin(f->d * pv[x], qv[x]));
        *sum += value[x];
    }
    for (int x = 0; to && *sum > 0 && x < p->vocabulary; x++)
        row_of(to, to_row)[x] = value[x] / *sum;
    return ESP_OK;
}

static int remove_token(struct esp_rows *rows, int row, int32_t token, double *left)
{
    double *v = row_of(rows, row), total;
    left = left ? left : &total;
    v[token] = *left = 0;
    for (int x = 0; x < rows->vocabulary; x++)
        *left += v[x];
    for (int x = 0; x < rows->vocabulary; x++)
        v[x] = *left > 0 ? v[x] / *left : 0;
    return ESP_OK;
}

static int temper(struct esp_rows *rows, const int32_t *which, int count, double power,
                  double *mean_log, double *power_sum, enum esp_delivery when)
{
    (void)when;
    for (int i = 0; i < count; i++) {
        mean_log[i] = power_sum[i] = 0;
        for (int x = 0; x < rows->vocabulary; x++) {
            double value = row_of(rows, which[i])[x];
            mean_log[i] += value > 0 ? value * log(value) : 0;
            power_sum[i] += value > 0 ? pow(value, power) : 0;
        }
    }
    return ESP_OK;
}

static int ratio_masses(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                        double *p_mass, double *q_mass)
{
    const double *pv = row_of(p, p_row), *qv = row_of(q, q_row);
    memset(p_mass, 0, ESP_RATIO_CLASSES * sizeof *p_mass);
    memset(q_mass, 0, ESP_RATIO_CLASSES * sizeof *q_mass);
    for (int x = 0; x < p->vocabulary; x++) {
        p_mass[esp_ratio_class(pv[x], qv[x])] += pv[x];
        q_mass[esp_ratio_class(pv[x], qv[x])] += qv[x];
    }
    return ESP_OK;
}

static int ratio_residual(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                          const double *factor, struct esp_rows *to, int to_row, double *sum)
{
    const double *pv = row_of(p, p_row), *qv = row_of(q, q_row);
    double value[MOST], total;
    sum = sum ? sum : &total;
    *sum = 0;
    for (int x = 0; x < p->vocabulary; x++) {
        value[x] = fmax(0, pv[x] - factor[esp_ratio_class(pv[x], qv[x])] * qv[x]);
        *sum += value[x];
    }
    for (int x = 0; to && *sum > 0 && x < p->vocabulary; x++)
        row_of(to, to_row)[x] = value[x] / *sum;
    return ESP_OK;
}

static int read_row(struct esp_rows *rows, int which, float *values)
{
    for (int x = 0; x < rows->vocabulary; x++)
        values[x] = (float)row_of(rows, which)[x];
    return ESP_OK;
}

static int write_row(struct esp_rows *rows, int which, const float *values)
{
    for (int x = 0; x < rows->vocabulary; x++)
        row_of(rows, which)[x] = values[x];
    return ESP_OK;
}

/* ------------------------------------------------------------------ memory */

static int cache_open(struct esp_cache **out, struct esp_weights *weights, int rows,
                      int max_batch, char *err, size_t errlen)
{
    (void)max_batch, (void)err, (void)errlen;
    struct toy_cache *cache = calloc(1, sizeof *cache);
    cache->base.weights = weights;
    cache->rows = rows;
    cache->tokens = malloc((size_t)rows * sizeof(int32_t));
    cache->positions = calloc((size_t)rows, sizeof(int32_t));
    cache->scratch = calloc((size_t)rows, sizeof(bool));
    memset(cache->tokens, 0xff, (size_t)rows * sizeof(int32_t));
    *out = &cache->base;
    return ESP_OK;
}

static int cache_join(struct esp_cache **out, struct esp_weights *weights,
                      struct esp_cache *owner, int max_batch, char *err, size_t errlen)
{
    (void)max_batch, (void)err, (void)errlen;
    struct toy_cache *cache = malloc(sizeof *cache);
    *cache = *(struct toy_cache *)owner;
    cache->base.weights = weights;
    cache->joined = true;
    *out = &cache->base;
    return ESP_OK;
}

static void cache_close(struct esp_cache *base)
{
    struct toy_cache *cache = (struct toy_cache *)base;
    if (!cache->joined) {
        free(cache->tokens);
        free(cache->positions);
        free(cache->scratch);
    }
    free(cache);
}

static int rows_open(struct esp_rows **out, struct esp_backend *backend, int capacity,
                     int vocabulary, char *err, size_t errlen)
{
    (void)err, (void)errlen;
    struct toy_rows *rows = calloc(1, sizeof *rows);
    rows->base = (struct esp_rows){backend, capacity, vocabulary};
    rows->value = calloc((size_t)capacity * (size_t)vocabulary, sizeof *rows->value);
    *out = &rows->base;
    return ESP_OK;
}

static void rows_close(struct esp_rows *rows)
{
    free(((struct toy_rows *)rows)->value);
    free(rows);
}

const struct esp_backend_ops toy_backend = {
    .name = "toy",
    .summary = "random distributions for tests",
    .cache_open = cache_open,
    .cache_join = cache_join,
    .cache_close = cache_close,
    .rows_open = rows_open,
    .rows_close = rows_close,
    .windows = true,
    .forward = forward,
    .keep = keep,
    .argmax = argmax,
    .top_k = top_k,
    .softmax = softmax,
    .gather = gather,
    .sample = sample,
    .combine = combine,
    .remove = remove_token,
    .temper = temper,
    .ratio_masses = ratio_masses,
    .ratio_residual = ratio_residual,
    .read_row = read_row,
    .write_row = write_row,
};

struct esp_backend_ops toy_backend_that_waits(void)
{
    struct esp_backend_ops ops = toy_backend;
    ops.asynchronous = true; /* calls of this backend still return values immediately */
    return ops;
}

void toy_open(struct toy *toy, int vocabulary, int context, int max_nodes,
              unsigned long long seed)
{
    struct esp_backend *backend = calloc(1, sizeof *backend);
    struct toy_weights *target = calloc(1, sizeof *target), *draft = calloc(1, sizeof *draft);
    backend->ops = &toy_backend;
    *target = (struct toy_weights){
        .base.backend = backend, .base.desc = &toy->target.desc, .toy = toy};
    *draft = (struct toy_weights){
        .base.backend = backend, .base.desc = &toy->draft.desc, .toy = toy, .draft = true};
    *toy = (struct toy){
        .seed = seed,
        .closeness = 0.7,
        .sharpness = 2,
        .vocabulary = vocabulary,
    };
    toy->target.desc.vocabulary = toy->draft.desc.vocabulary = vocabulary;
    toy->target.desc.context = toy->draft.desc.context = context;
    toy->engine = (struct esp_engine){
        .backend = backend,
        .target = &toy->target,
        .draft = &toy->draft,
        .target_weights = &target->base,
        .draft_weights = &draft->base,
        .max_nodes = max_nodes,
        .context = context,
    };
}

void toy_join(struct toy *toy)
{
    toy->draft.original = &toy->target;
}

void toy_translate(struct toy *toy, const struct esp_translation *translation, int vocabulary)
{
    toy->engine.translation = *translation;
    toy->draft.desc.vocabulary = vocabulary;
}

void toy_close(struct toy *toy)
{
    free(toy->engine.target_weights);
    free(toy->engine.draft_weights);
    free(toy->engine.backend);
}
