/* draft.c - batched passes of the draft model over a growing tree, and draws from their
 * results.
 *
 * The draft cache holds the text up to and including the root, then one row per expanded node
 * in the order of the passes: node u is row q_row[u] - 1 behind the text. A node sees the text
 * and its own ancestors. Ancestors are always expanded in an earlier pass, so a pass is one
 * masked batch. The first pass of an iteration also catches up: committed tokens that the draft
 * model has not computed (bonus tokens, accepted leaves) run before the root.
 *
 * Each expanded node has its own random numbers, one for each draw below it. So draws may be
 * made ahead or in one call with others without changing the text: a seed gives the same text
 * on every backend, as far as the probabilities are the same.
 *
 * A draft head (target_features.h) reads a hidden state with each token: the target's for
 * tokens of the text, its own at the parent for nodes. So its tree rows cannot be kept for
 * committed tokens: they are computed again from the target's states with the next root.
 *
 * Row q_row[u] of q is the distribution from which the children of u are drawn. It does not
 * change until the iteration ends, so a verifier finds exactly what was sampled from.
 */
#include "engine/drafters/draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/target_features.h"
#include "engine/kv_cache.h"
#include "engine/engine.h"
#include "kernels/status.h"

int esp_draft_open(struct esp_draft *d, struct esp_kv_cache *cache, struct esp_rows *q,
                   struct esp_tree_builder *tree, char *err, size_t errlen)
{
    memset(d, 0, sizeof *d);
    size_t rows = (size_t)tree->capacity + 1, record = (size_t)tree->record;
    struct esp_draft_scratch *s = d->scratch = calloc(1, sizeof *s);
    d->cache = cache;
    d->q = q;
    d->tree = tree;
    d->capacity = (int)rows;
    d->q_row = calloc(record, sizeof *d->q_row);
    d->top_token = calloc(rows * ESP_MAX_TOP, sizeof *d->top_token);
    d->top_q = calloc(rows * ESP_MAX_TOP, sizeof *d->top_q);
    d->candidates = calloc(rows * (ESP_MAX_TOP + 1), sizeof *d->candidates);
    if (s) {
        s->words = tree->mask_words;
        s->mask = calloc(rows * (size_t)s->words, sizeof *s->mask);
        s->batch_mask = calloc(rows * (size_t)s->words, sizeof *s->batch_mask);
        s->tokens = calloc(rows, sizeof *s->tokens);
        s->positions = calloc(rows, sizeof *s->positions);
        s->rows = calloc(rows, sizeof *s->rows);
        s->above = calloc(rows, sizeof *s->above);
        s->u = calloc(rows * ESP_MAX_DRAWS, sizeof *s->u);
        s->value = calloc(rows * ESP_MAX_DRAWS, sizeof *s->value);
        s->drawn = calloc(rows * ESP_MAX_DRAWS, sizeof *s->drawn);
        s->draws = calloc(rows, sizeof *s->draws);
        s->excluded = calloc(rows * ESP_EXCLUDED, sizeof *s->excluded);
        s->frontier = calloc(rows, sizeof *s->frontier);
        s->next = calloc(rows, sizeof *s->next);
        s->end = calloc(rows, sizeof *s->end);
        s->unsettled = calloc(rows, sizeof *s->unsettled);
        s->lacking = calloc(rows, sizeof *s->lacking);
        s->listed = calloc(record, sizeof *s->listed);
    }
    if (!s || !d->q_row || !d->top_token || !d->top_q || !d->candidates || !s->mask ||
        !s->batch_mask || !s->tokens || !s->positions || !s->rows || !s->above || !s->u ||
        !s->value || !s->excluded || !s->frontier || !s->next || !s->end || !s->unsettled ||
        !s->lacking || !s->listed || !s->drawn || !s->draws) {
        esp_draft_close(d);
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for drafting");
    }
    return ESP_OK;
}

void esp_draft_close(struct esp_draft *d)
{
    struct esp_draft_scratch *s = d->scratch;
    if (s) {
        free(s->mask);
        free(s->batch_mask);
        free(s->tokens);
        free(s->positions);
        free(s->rows);
        free(s->above);
        free(s->u);
        free(s->value);
        free(s->excluded);
        free(s->frontier);
        free(s->next);
        free(s->end);
        free(s->unsettled);
        free(s->lacking);
        free(s->drawn);
        free(s->draws);
        free(s->listed);
    }
    free(s);
    free(d->q_row);
    free(d->top_token);
    free(d->top_q);
    free(d->candidates);
    memset(d, 0, sizeof *d);
}

void esp_draft_begin(struct esp_draft *d)
{
    d->expanded = 0;
    d->passes = d->rows = 0;
    d->watched = 0;
    d->model_seconds = 0;
    d->scratch->unsettled_count = 0;
    for (int i = 0; i < d->tree->record; i++)
        d->q_row[i] = -1;
}

/* Resets the draws below the node with this row of q; it keeps its random numbers. */
static void begin_draws(struct esp_draft *d, int row)
{
    struct esp_node_draws *draws = &d->scratch->draws[row];
    draws->next = draws->count = 0;
    draws->rng = esp_rng_split(d->rng);
}

/* Ends the timing of a pass, and may begin the next. */
static void lap(struct esp_draft *d)
{
    double now = esp_clock() - d->watched;
    if (d->passes > 0 && d->passes <= ESP_TIMED_PASSES)
        d->pass_seconds[d->passes - 1] = now - d->pass_began;
    d->pass_began = now;
}

void esp_draft_end(struct esp_draft *d)
{
    lap(d);
}

static void begin_pass(struct esp_draft *d, int rows)
{
    lap(d);
    d->rows += rows;
    if (d->passes < ESP_TIMED_PASSES)
        d->pass_rows[d->passes] = rows;
}

/* Rows of the text in the draft's cache after it has caught up. */
static int text_rows(const struct esp_draft *d)
{
    return d->features ? d->text_length - 1 : d->text_length;
}

int esp_draft_behind(const struct esp_draft *d)
{
    int behind = d->cache ? text_rows(d) - d->cache->length : 0;
    return behind > 1 ? behind : 1;
}

static int run_root_of_head(struct esp_draft *d, const struct esp_step *step)
{
    struct esp_kv_cache *c = d->cache;
    const int rows = text_rows(d) - c->length;
    const struct esp_states states = {.count = 1,
                                      .state = {d->features->fed_back},
                                      .to = d->states,
                                      .row = esp_kv_cache_last(c, rows)};
    struct esp_batch batch = {.rows = rows,
                              .logits = d->q,
                              .logits_row = states.row,
                              .step = step,
                              .states = &states,
                              .input = d->features->states.to,
                              .input_row =
                                  esp_features_find(d->features, c->length, text_rows(d))};
    if (!batch.input_row)
        return ESP_E_ARGUMENT;
    return esp_kv_cache_run(c, d->text + c->length + 1, &batch);
}

/* The root's pass, with all tokens before it that the draft model has not computed yet. */
static int run_root(struct esp_draft *d, const struct esp_step *step)
{
    if (d->expanded > 0)
        return ESP_E_ARGUMENT;
    /* A failed iteration may have computed it already. */
    esp_kv_cache_cut(d->cache, text_rows(d) - 1);
    d->q_row[0] = 0;
    begin_draws(d, 0);
    d->expanded = 1;
    if (d->features)
        return run_root_of_head(d, step);
    return esp_kv_cache_append(d->cache, d->text + d->cache->length,
                               d->text_length - d->cache->length, d->q, step);
}

int esp_draft_expand_root(struct esp_draft *d, bool before)
{
    struct esp_draft_scratch *s = d->scratch;
    const int count = before ? 2 : 1, first = d->text_length - count;
    const struct esp_step step = {d->sampling, 1, d->top_token, d->top_q, ESP_NOW};
    const int32_t both[2] = {d->capacity, 0}, *rows = before ? both : both + 1;
    if (!d->cache || first < 0 || d->expanded > 0)
        return ESP_E_ARGUMENT;
    const double start = esp_clock();
    begin_pass(d, count);
    esp_kv_cache_cut(d->cache, first);
    int status = esp_kv_cache_append(d->cache, d->text + d->cache->length,
                                     first - d->cache->length, NULL, NULL);
    if (status < 0)
        return status;
    for (int i = 0; i < count; i++)
        s->positions[i] = first + i;
    status = esp_kv_cache_make_room(d->cache, count + d->capacity);
    if (status < 0)
        return status;
    const struct esp_states states = {1, {ESP_STATE_NORMED}, d->own_states, rows};
    struct esp_batch batch = {
        .rows = count,
        .tokens = esp_kv_cache_known(d->cache, d->text + first, count),
        .positions = s->positions,
        .logits = d->q,
        .logits_row = rows,
        .step = &step,
        .states = &states,
    };
    esp_kv_cache_place(d->cache, 0, &batch);
    status = d->cache->ops->forward(d->cache->cache, &batch);
    d->model_seconds += esp_clock() - start;
    if (status < 0)
        return status;
    d->cache->length = d->text_length;
    d->passes++;
    d->q_row[0] = 0;
    begin_draws(d, 0);
    d->expanded = 1;
    d->tree->tree.nodes[0].confidence = d->top_q[count - 1];
    return ESP_OK;
}

static int run_nodes(struct esp_draft *d, const int32_t *nodes, int count,
                     const struct esp_step *step)
{
    struct esp_draft_scratch *s = d->scratch;
    const size_t words = (size_t)s->words, bytes = words * sizeof *s->mask;
    if (d->expanded < 1 || count > d->capacity - d->expanded)
        return ESP_E_ARGUMENT;
    for (int i = 0; i < count; i++) {
        const struct esp_node *node = &d->tree->tree.nodes[nodes[i]];
        int row = d->expanded - 1 + i, above = d->q_row[node->parent] - 1;
        uint64_t *mask = s->mask + (size_t)row * words;
        if (above >= d->expanded - 1 || above < -1)
            return ESP_E_ARGUMENT; /* a drafter must expand a node after its parent */
        if (above < 0)
            memset(mask, 0, bytes);
        else
            memcpy(mask, s->mask + (size_t)above * words, bytes);
        mask[row / 64] |= (uint64_t)1 << (row % 64);
        memcpy(s->batch_mask + (size_t)i * words, mask, bytes);
        s->tokens[i] = node->token;
        s->positions[i] = text_rows(d) - 1 + node->depth;
        s->above[i] = above + 1;
        d->q_row[nodes[i]] = row + 1;
        begin_draws(d, row + 1);
        s->rows[i] = row + 1;
    }
    const struct esp_states fed_back = {1,
                                        {d->features ? d->features->fed_back : 0},
                                        d->states,
                                        s->rows},
                            own = {1, {ESP_STATE_NORMED}, d->own_states, s->rows};
    struct esp_batch batch = {
        .rows = count,
        .tokens = s->tokens,
        .positions = s->positions,
        .mask = s->batch_mask,
        .mask_words = s->words,
        .logits = d->q,
        .logits_row = s->rows,
        .step = step,
        .states = d->features     ? &fed_back
                  : d->own_states ? &own
                                  : NULL,
        .input = d->states,
        .input_row = s->above,
    };
    esp_kv_cache_place(d->cache, d->expanded - 1, &batch);
    d->expanded += count;
    return d->cache->ops->forward(d->cache->cache, &batch);
}

/* If the vocabulary has fewer than k tokens, the other results get probability 0. */
static void spread(struct esp_draft *d, int count, int have, int k)
{
    for (int i = count - 1; i >= 0 && have < k; i--)
        for (int j = k - 1; j >= 0; j--) {
            int from = i * have + j, to = i * k + j;
            d->top_token[to] = j < have ? d->top_token[from] : 0;
            d->top_q[to] = j < have ? d->top_q[from] : 0;
        }
}

static void set_confidence(struct esp_draft *d, const int32_t *nodes, int count, int k)
{
    for (int i = 0; i < count; i++)
        d->tree->tree.nodes[nodes[i]].confidence = d->top_q[(size_t)i * (size_t)k];
}

int esp_draft_expand(struct esp_draft *d, const int32_t *nodes, int count, int k)
{
    if (!d->cache || count < 1 || k < 0 || k > ESP_MAX_TOP || (nodes[0] == 0 && count > 1))
        return ESP_E_ARGUMENT;
    struct esp_draft_scratch *s = d->scratch;
    const bool settle = k > 0;
    int most = d->q->vocabulary, have = !settle ? 1 : k < most ? k : most;
    const struct esp_step step = {d->sampling, have, d->top_token, d->top_q,
                                  settle ? ESP_NOW : ESP_LATER};
    begin_pass(d, nodes[0] == 0 ? esp_draft_behind(d) : count);
    const double start = esp_clock();
    int status = nodes[0] == 0 ? run_root(d, &step) : run_nodes(d, nodes, count, &step);
    d->model_seconds += esp_clock() - start;
    if (status == ESP_OK && nodes[0] == 0)
        status = esp_kv_cache_make_room(d->cache, d->capacity - 1); /* rows stay in place from
                                                                       now on */
    if (status < 0)
        return status;
    d->passes++;
    if (settle) {
        spread(d, count, have, k);
        set_confidence(d, nodes, count, k);
    } else {
        memcpy(s->unsettled, nodes, (size_t)count * sizeof *nodes);
        s->unsettled_count = count;
    }
    return ESP_OK;
}

void esp_draft_layer_done(struct esp_draft *d)
{
    if (d->layer)
        d->layer(d->user);
}

/* ------------------------------------------------------------------ draws */

static int list_children(const struct esp_tree_builder *b, int32_t node, int32_t *tokens,
                         int most)
{
    int count = 0;
    for (int c = b->first_child[node]; c >= 0; c = b->next_sibling[c], count++)
        if (count < most)
            tokens[count] = b->tree.nodes[c].token;
    return count;
}

/* Writes the tokens that must not be drawn again: `per` for each parent, padded with -1.
 * Returns the number of parents that fit (at least one). */
static int exclude(struct esp_draft *d, const int32_t *parents, int count, int *per)
{
    struct esp_draft_scratch *s = d->scratch;
    *per = 0;
    for (int i = 0; i < count; i++) {
        int children = list_children(d->tree, parents[i], NULL, 0);
        *per = children > *per ? children : *per;
    }
    if (*per > 0 && count > ESP_EXCLUDED * d->capacity / *per)
        count = ESP_EXCLUDED * d->capacity / *per;
    for (int i = 0; i < count; i++) {
        int32_t *own = s->excluded + (size_t)i * (size_t)*per;
        int children = list_children(d->tree, parents[i], own, *per);
        for (int j = children; j < *per; j++)
            own[j] = -1;
    }
    return count;
}

/* Makes `each` draws below each parent, without excluded tokens. Results: s->drawn and s->value
 * (count, each). */
static int sample(struct esp_draft *d, const int32_t *parents, int count, int each, int per)
{
    struct esp_draft_scratch *s = d->scratch;
    for (int i = 0; i < count; i++) {
        s->rows[i] = d->q_row[parents[i]];
        if (s->rows[i] < 0)
            return ESP_E_ARGUMENT; /* a node must be expanded before it gets children */
        for (int j = 0; j < each; j++)
            s->u[i * each + j] = esp_rng_uniform(&s->draws[s->rows[i]].rng);
    }
    int status = d->cache->ops->sample(d->q, s->rows, s->u, count, each, s->excluded, per,
                                       s->drawn, s->value, ESP_NOW);
    if (status == ESP_OK)
        set_confidence(d, s->unsettled, s->unsettled_count, 1);
    return status;
}

/* Draws the next children of nodes without any left: one each if a call costs nothing; if it
 * waits for the device, AHEAD or as many as there are already. */
static int draw_ahead(struct esp_draft *d, const int32_t *nodes, int count)
{
    enum { AHEAD = 4 };
    struct esp_draft_scratch *s = d->scratch;
    for (int done = 0, n, per; done < count; done += n) {
        n = exclude(d, nodes + done, count - done, &per);
        int each = d->cache->ops->asynchronous ? AHEAD : 1;
        while (each > 1 && each < per && each < ESP_MAX_DRAWS)
            each *= 2;
        int status = sample(d, nodes + done, n, each, per);
        if (status < 0)
            return status;
        for (int i = 0; i < n; i++) {
            struct esp_node_draws *draws = &s->draws[d->q_row[nodes[done + i]]];
            memcpy(draws->token, s->drawn + i * each, (size_t)each * sizeof *s->drawn);
            memcpy(draws->value, s->value + i * each, (size_t)each * sizeof *s->value);
            draws->next = 0;
            draws->count = each;
        }
    }
    return ESP_OK;
}

/* Lists the nodes that need draws now; if a call waits for the device, also the others of the
 * last pass. */
static int list_lacking(struct esp_draft *d, const int32_t *parents, int count)
{
    struct esp_draft_scratch *s = d->scratch;
    int n = 0;
    for (int i = 0; i < count; i++) {
        const int row = d->q_row[parents[i]];
        if (row < 0 || s->draws[row].next == s->draws[row].count)
            s->lacking[n++] = parents[i];
    }
    const int needed = n;
    for (int i = 0; needed > 0 && d->cache->ops->asynchronous && i < s->unsettled_count; i++) {
        bool listed = false;
        for (int j = 0; j < needed; j++)
            listed |= s->lacking[j] == s->unsettled[i];
        if (!listed)
            s->lacking[n++] = s->unsettled[i];
    }
    return n;
}

/* One token below each parent, without replacement. */
static int draw_swor(struct esp_draft *d, const int32_t *parents, int count, int32_t *children)
{
    struct esp_draft_scratch *s = d->scratch;
    int status = draw_ahead(d, s->lacking, list_lacking(d, parents, count));
    for (int i = 0; i < count && status == ESP_OK; i++) {
        struct esp_node_draws *draws = &s->draws[d->q_row[parents[i]]];
        const int at = draws->next++;
        children[i] = draws->token[at] < 0 ? -1
                                           : esp_tree_draw(d->tree, parents[i],
                                                           draws->token[at], draws->value[at]);
    }
    return status;
}

static int draw_iid(struct esp_draft *d, const int32_t *parents, int count, int32_t *children)
{
    struct esp_draft_scratch *s = d->scratch;
    int status = sample(d, parents, count, 1, 0);
    for (int i = 0; i < count && status == ESP_OK; i++)
        children[i] =
            s->drawn[i] < 0 ? -1 : esp_tree_draw(d->tree, parents[i], s->drawn[i], s->value[i]);
    return status;
}

int esp_draft_draw(struct esp_draft *d, const int32_t *parents, int count, enum esp_draws how,
                   int32_t *children)
{
    if (count > d->capacity)
        return ESP_E_ARGUMENT;
    int status = how == ESP_DRAW_SWOR ? draw_swor(d, parents, count, children)
                                      : draw_iid(d, parents, count, children);
    d->scratch->unsettled_count = 0;
    return status;
}

double esp_draft_share(const struct esp_draft *d, int32_t child)
{
    const struct esp_node *nodes = d->tree->tree.nodes;
    double left = 1;
    for (int c = d->tree->first_child[nodes[child].parent]; c != child;
         c = d->tree->next_sibling[c])
        left -= nodes[c].q;
    return nodes[child].q < left ? nodes[child].q / left : 1;
}

/* ------------------------------------------------------------------ between iterations */

int esp_draft_commit(struct esp_draft *d, const int32_t *path, int count, bool rebuild)
{
    int32_t *rows = d->scratch->rows;
    int n = 0;
    if (!d->cache || d->features || rebuild)
        return ESP_OK;
    while (n < count && d->q_row[path[n]] > 0) {
        rows[n] = d->q_row[path[n]] - 1;
        n++;
    }
    return esp_kv_cache_keep(d->cache, rows, n);
}
