/* draft.c - runs batched passes of the draft model over a growing tree, and draws children from
 * the results.
 *
 * In the files of this folder, "the text" means the committed tokens: the prompt and the output
 * so far. The last token of the text is the root.
 *
 * The draft model's KV cache has one row for each token of the text, then one row for each
 * expanded node in the order of the passes: node u is in row q_row[u] - 1 after the text. A
 * node attends to the text and its own ancestors. Ancestors are always expanded in an earlier
 * pass, so a pass is one masked batch. The first pass of an iteration also catches up: before
 * the root, it computes the committed tokens that the draft model has not computed yet (bonus
 * tokens, accepted leaves).
 *
 * Each expanded node has its own random numbers, one for each draw below it. Therefore
 * children can be drawn before they are needed, or several in one call, without changing the
 * output. A seed gives the same text on every backend, provided that the probabilities are the
 * same.
 *
 * A draft head (target_features.h) reads a hidden state with each token. For a token of the
 * text, this is the target's state. For a node of the tree, it is the head's own state at the
 * parent. Therefore the cache row of an accepted node cannot be kept. The row is computed again
 * from the target's state, together with the next root.
 *
 * If the draft model is a quantised copy of the target, it does not compute the text. Its cache
 * is a view of the target's cache, which has the rows of the text already. The rows that the
 * copy adds are dropped after every iteration.
 *
 * The children of u are drawn from the distribution in row q_row[u] of q. This row does not
 * change until the iteration ends, so a verifier gets exactly the distribution from which the
 * children were drawn.
 */
#include "engine/drafters/draft.h"

#include <stdlib.h>
#include <string.h>

#include "engine/drafters/respell.h"
#include "engine/target_features.h"
#include "engine/kv_cache.h"
#include "engine/engine.h"
#include "kernels/status.h"

int esp_draft_open(struct esp_draft *d, struct esp_tree_builder *tree, char *err, size_t errlen)
{
    const size_t rows = (size_t)tree->capacity + 1, record = (size_t)tree->record;
    struct esp_draft_work *w = calloc(1, sizeof *w);
    *d = (struct esp_draft){.tree = tree, .capacity = (int)rows, .work = w};
    if (!w)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for drafting");
    struct esp_arrays *a = &w->arrays;
    d->q_row = esp_arrays_add(a, record, sizeof *d->q_row);
    d->top_token = esp_arrays_add(a, rows * ESP_MAX_TOP, sizeof *d->top_token);
    d->top_q = esp_arrays_add(a, rows * ESP_MAX_TOP, sizeof *d->top_q);
    d->candidates = esp_arrays_add(a, rows * (ESP_MAX_TOP + 1), sizeof *d->candidates);
    w->words = tree->mask_words;
    w->mask = esp_arrays_add(a, rows * (size_t)w->words, sizeof *w->mask);
    w->batch_mask = esp_arrays_add(a, rows * (size_t)w->words, sizeof *w->batch_mask);
    w->tokens = esp_arrays_add(a, rows, sizeof *w->tokens);
    w->positions = esp_arrays_add(a, rows, sizeof *w->positions);
    w->rows = esp_arrays_add(a, rows, sizeof *w->rows);
    w->above = esp_arrays_add(a, rows, sizeof *w->above);
    w->u = esp_arrays_add(a, rows * ESP_MAX_DRAWS, sizeof *w->u);
    w->value = esp_arrays_add(a, rows * ESP_MAX_DRAWS, sizeof *w->value);
    w->drawn = esp_arrays_add(a, rows * ESP_MAX_DRAWS, sizeof *w->drawn);
    w->draws = esp_arrays_add(a, rows, sizeof *w->draws);
    w->excluded = esp_arrays_add(a, rows * ESP_EXCLUDED, sizeof *w->excluded);
    w->frontier = esp_arrays_add(a, rows, sizeof *w->frontier);
    w->next = esp_arrays_add(a, rows, sizeof *w->next);
    w->end = esp_arrays_add(a, rows, sizeof *w->end);
    w->unsettled = esp_arrays_add(a, rows, sizeof *w->unsettled);
    w->lacking = esp_arrays_add(a, rows, sizeof *w->lacking);
    w->listed = esp_arrays_add(a, record, sizeof *w->listed);
    if (!a->failed)
        return ESP_OK;
    esp_draft_close(d);
    return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for drafting");
}

void esp_draft_close(struct esp_draft *d)
{
    if (d->work)
        esp_arrays_free(&d->work->arrays);
    free(d->work);
    memset(d, 0, sizeof *d);
}

void esp_draft_begin(struct esp_draft *d)
{
    struct esp_draft_work *w = d->work;
    d->expanded = d->passes = 0;
    w->rows_computed = w->unsettled_count = 0;
    w->watched = w->model_seconds = 0;
    for (int i = 0; i < d->tree->record; i++)
        d->q_row[i] = -1;
}

/* Records that the pass that expands `node` writes row `row` of q. Starts a separate sequence
 * of random numbers for the draws below the node. */
static void give_row(struct esp_draft *d, int node, int row)
{
    struct esp_node_draws *draws = &d->work->draws[row];
    d->q_row[node] = row;
    d->expanded++;
    draws->next = draws->count = 0;
    draws->rng = esp_rng_split(d->work->rng);
}

/* Ends the timing of a pass and starts the timing of the next pass. */
static void lap(struct esp_draft *d)
{
    struct esp_draft_work *w = d->work;
    double now = esp_clock() - w->watched;
    if (d->passes > 0 && d->passes <= ESP_TIMED_PASSES)
        w->pass_seconds[d->passes - 1] = now - w->pass_began;
    w->pass_began = now;
}

void esp_draft_end(struct esp_draft *d)
{
    lap(d);
}

static void begin_pass(struct esp_draft *d, int rows)
{
    lap(d);
    d->work->rows_computed += rows;
    if (d->passes < ESP_TIMED_PASSES)
        d->work->pass_rows[d->passes] = rows;
}

/* Returns the number of text tokens that have rows in the draft model's cache once the draft
 * model has caught up. */
static int text_rows(const struct esp_draft *d)
{
    return d->work->features ? d->text_length - 1 : d->text_length;
}

int esp_draft_behind(const struct esp_draft *d)
{
    const struct esp_kv_cache *c = d->work->cache;
    const int tokens = c ? text_rows(d) - c->length : 0;
    const int behind =
        tokens > 0 ? esp_kv_cache_count(c, d->text + c->length, c->length, tokens) : 0;
    return behind > 1 ? behind : 1;
}

static int run_root_of_head(struct esp_draft *d, const struct esp_step *step)
{
    const struct esp_draft_work *w = d->work;
    const struct esp_features *f = w->features;
    const int at = w->cache->length, rows = text_rows(d) - at;
    const int32_t *last = esp_kv_cache_last(w->cache, rows);
    const struct esp_states states = {1, {f->fed_back}, w->states, last};
    struct esp_batch batch = {.rows = rows,
                              .logits = w->q,
                              .logits_row = last,
                              .step = step,
                              .states = &states,
                              .input = f->states.to,
                              .input_row = esp_features_find(f, at, text_rows(d))};
    if (!batch.input_row)
        return ESP_E_ARGUMENT;
    return esp_kv_cache_run(w->cache, d->text + at + 1, &batch);
}

/* Runs the pass over the root. The pass also computes all tokens before the root that the draft
 * model has not computed yet. */
static int run_root(struct esp_draft *d, const struct esp_step *step)
{
    struct esp_kv_cache *c = d->work->cache;
    if (d->expanded > 0)
        return ESP_E_ARGUMENT;
    /* A failed iteration may have computed the root already. */
    esp_kv_cache_cut(c, text_rows(d) - 1);
    give_row(d, 0, 0);
    if (d->work->features)
        return run_root_of_head(d, step);
    return esp_kv_cache_append(c, d->text + c->length, d->text_length - c->length, d->work->q,
                               step);
}

/* Runs the quantised copy of the target over the root and the token before it. The cache row of
 * that token belongs to the target and must not change. The copy therefore computes the token
 * in the row after the root. Nodes later overwrite this row. */
static int run_before_root(struct esp_draft *d, struct esp_batch *batch)
{
    struct esp_kv_cache *c = d->work->cache;
    const int32_t last = d->text_length - 1, positions[2] = {last, last - 1};
    const int32_t tokens[2] = {d->text[last], d->text[last - 1]};
    const uint64_t mask[2] = {3, 4}; /* bit 0: the token before the root; bit 1: the root;
                                        bit 2: the row after the root */
    batch->tokens = esp_kv_cache_known(c, tokens, 2);
    batch->positions = positions;
    esp_kv_cache_place(c, 0, batch);
    batch->prefix--;
    batch->mask = mask;
    batch->mask_words = 1;
    const int status = esp_kv_cache_forward(c, batch);
    if (status == ESP_OK)
        c->length++;
    return status;
}

int esp_draft_expand_root(struct esp_draft *d, bool before)
{
    struct esp_draft_work *w = d->work;
    struct esp_kv_cache *c = w->cache;
    const int count = before ? 2 : 1, first = d->text_length - count;
    const struct esp_step step = {d->sampling, 1, d->top_token, d->top_q, ESP_NOW};
    const bool behind = before && w->scratch; /* the root comes first in the batch, and then
                                                 the token before the root */
    const int32_t all[3] = {d->capacity, 0, d->capacity}, *rows = all + (!before || behind);
    if (!c || !d->context || first < 0 || d->expanded > 0)
        return ESP_E_ARGUMENT;
    const double start = esp_clock();
    begin_pass(d, count);
    int status = ESP_OK;
    if (!w->scratch) {
        esp_kv_cache_cut(c, first);
        status = esp_kv_cache_append(c, d->text + c->length, first - c->length, NULL, NULL);
    }
    if (status == ESP_OK && !w->scratch)
        status = esp_kv_cache_make_room(c, count + d->capacity);
    if (status < 0)
        return status;
    const struct esp_states states = {
        1, {ESP_STATE_NORMED}, d->context->back.draft_states, rows};
    struct esp_batch batch = {
        .rows = count, .logits = w->q, .logits_row = rows, .step = &step, .states = &states};
    status = behind ? run_before_root(d, &batch) : esp_kv_cache_run(c, d->text + first, &batch);
    w->model_seconds += esp_clock() - start;
    if (status < 0)
        return status;
    d->passes++;
    give_row(d, 0, 0);
    d->tree->tree.nodes[0].confidence = d->top_q[behind ? 0 : count - 1];
    return ESP_OK;
}

/* Writes the inputs of a pass over these nodes to scratch memory: masks, tokens, positions and
 * rows. */
static int place_nodes(struct esp_draft *d, const int32_t *nodes, int count)
{
    struct esp_draft_work *w = d->work;
    const size_t words = (size_t)w->words, bytes = words * sizeof *w->mask;
    const int first = d->expanded;
    for (int i = 0; i < count; i++) {
        const struct esp_node *node = &d->tree->tree.nodes[nodes[i]];
        const int row = first - 1 + i, above = d->q_row[node->parent] - 1;
        uint64_t *mask = w->mask + (size_t)row * words;
        if (above >= first - 1 || above < -1)
            return ESP_E_ARGUMENT; /* the parent of a node must be expanded before the node */
        if (above < 0)
            memset(mask, 0, bytes);
        else
            memcpy(mask, w->mask + (size_t)above * words, bytes);
        mask[row / 64] |= (uint64_t)1 << (row % 64);
        memcpy(w->batch_mask + (size_t)i * words, mask, bytes);
        w->tokens[i] = *esp_kv_cache_known(w->cache, &node->token, 1);
        w->positions[i] = esp_kv_cache_text_rows(w->cache) - 1 + node->depth;
        w->above[i] = above + 1;
        w->rows[i] = row + 1;
        give_row(d, nodes[i], row + 1);
    }
    return ESP_OK;
}

static int run_nodes(struct esp_draft *d, const int32_t *nodes, int count,
                     const struct esp_step *step)
{
    struct esp_draft_work *w = d->work;
    const int ahead = d->expanded - 1;
    if (ahead < 0 || count > d->capacity - d->expanded)
        return ESP_E_ARGUMENT;
    int status = place_nodes(d, nodes, count);
    if (status < 0)
        return status;
    const struct esp_states states = {1,
                                      {w->features ? w->features->fed_back : ESP_STATE_NORMED},
                                      w->features  ? w->states
                                      : d->context ? d->context->back.draft_states
                                                   : NULL,
                                      w->rows};
    struct esp_batch batch = {
        .rows = count,
        .tokens = w->tokens,
        .positions = w->positions,
        .mask = w->batch_mask,
        .mask_words = w->words,
        .logits = w->q,
        .logits_row = w->rows,
        .step = step,
        .states = states.to ? &states : NULL,
        .input = w->states,
        .input_row = w->above,
    };
    esp_kv_cache_place(w->cache, ahead, &batch);
    return esp_kv_cache_forward(w->cache, &batch);
}

/* If the vocabulary has fewer than k tokens, extends each node's list of likeliest tokens from
 * `have` to k entries. The additional entries get probability 0. */
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
    struct esp_draft_work *w = d->work;
    if (!w->cache || count < 1 || k < 0 || k > ESP_MAX_TOP || (nodes[0] == 0 && count > 1))
        return ESP_E_ARGUMENT;
    const bool settle = k > 0;
    int most = w->q->vocabulary, have = !settle ? 1 : k < most ? k : most;
    const struct esp_step step = {d->sampling, have, d->top_token, d->top_q,
                                  settle ? ESP_NOW : ESP_LATER};
    begin_pass(d, nodes[0] == 0 ? esp_draft_behind(d) : count);
    const double start = esp_clock();
    int status = nodes[0] == 0 ? run_root(d, &step) : run_nodes(d, nodes, count, &step);
    w->model_seconds += esp_clock() - start;
    if (status == ESP_OK && nodes[0] == 0)
        /* Nodes refer to rows of the cache, so these rows must not move from now on. */
        status = esp_kv_cache_make_room(w->cache, d->capacity - 1);
    if (status < 0)
        return status;
    d->passes++;
    if (settle) {
        spread(d, count, have, k);
        set_confidence(d, nodes, count, k);
    } else {
        memcpy(w->unsettled, nodes, (size_t)count * sizeof *nodes);
        w->unsettled_count = count;
    }
    return ESP_OK;
}

/* Runs the draft model over `token`, a token of its own vocabulary. In the cache, the token
 * follows the text and `ahead` other tokens. */
static int run_own(struct esp_draft *d, int32_t token, int ahead, struct esp_rows *logits,
                   const struct esp_step *step)
{
    struct esp_kv_cache *c = d->work->cache;
    const int32_t position = esp_kv_cache_text_rows(c) + ahead;
    struct esp_batch batch = {
        .rows = 1, .tokens = &token, .positions = &position, .logits = logits, .step = step};
    esp_kv_cache_place(c, ahead, &batch);
    return esp_kv_cache_forward(c, &batch);
}

/* Runs a pass over the text's last tokens, then a pass over each token that the draft model
 * predicted, except the last. Returns the number of predicted tokens, or a negative status. */
static int run_all_own(struct esp_draft *d, const struct esp_respelling *r, int most,
                       int32_t *tokens, float *q)
{
    struct esp_kv_cache *c = d->work->cache;
    int count = 0, status = ESP_OK;
    esp_kv_cache_cut(c, d->text_length - 1); /* a failed iteration may have computed the root */
    for (bool ended = false; count < most && !ended; count++) {
        const struct esp_step step = {d->sampling, 1, tokens + count, q + count, ESP_NOW};
        begin_pass(d, count == 0 ? esp_draft_behind(d) : 1);
        if (count == 0)
            status = esp_kv_cache_append(c, d->text + c->length, d->text_length - c->length,
                                         r->logits, &step);
        else
            status = run_own(d, tokens[count - 1], count - 1, r->logits, &step);
        if (status == ESP_OK && count == 0)
            status = esp_kv_cache_make_room(c, most);
        if (status < 0)
            return status;
        d->passes++;
        for (int i = 0; i < r->draft.end_count; i++)
            ended |= r->draft.end[i] == tokens[count];
    }
    return count;
}

int esp_draft_own(struct esp_draft *d, const struct esp_respelling *r, int most,
                  int32_t *tokens, float *q)
{
    const double start = esp_clock();
    most = most < d->max_depth ? most : d->max_depth;
    most = most < d->capacity ? most : d->capacity;
    const int count = run_all_own(d, r, most, tokens, q);
    d->work->model_seconds += esp_clock() - start;
    return count;
}

void esp_draft_layer_done(struct esp_draft *d)
{
    d->work->layer(d->work->user);
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

/* Writes the tokens that must not be drawn again to w->excluded, with *per entries for each
 * parent. Unused entries are -1. Returns the number of parents that fit (at least one). */
static int exclude(struct esp_draft *d, const int32_t *parents, int count, int *per)
{
    struct esp_draft_work *w = d->work;
    *per = 0;
    for (int i = 0; i < count; i++) {
        int children = list_children(d->tree, parents[i], NULL, 0);
        *per = children > *per ? children : *per;
    }
    if (*per > 0 && count > ESP_EXCLUDED * d->capacity / *per)
        count = ESP_EXCLUDED * d->capacity / *per;
    for (int i = 0; i < count; i++) {
        int32_t *own = w->excluded + (size_t)i * (size_t)*per;
        int children = list_children(d->tree, parents[i], own, *per);
        for (int j = children; j < *per; j++)
            own[j] = -1;
    }
    return count;
}

/* Makes `each` draws below each parent, without the excluded tokens. Writes the results to
 * w->drawn and w->value (count, each). */
static int sample(struct esp_draft *d, const int32_t *parents, int count, int each, int per)
{
    struct esp_draft_work *w = d->work;
    for (int i = 0; i < count; i++) {
        w->rows[i] = d->q_row[parents[i]];
        if (w->rows[i] < 0)
            return ESP_E_ARGUMENT; /* a node must be expanded before it gets children */
        for (int j = 0; j < each; j++)
            w->u[i * each + j] = esp_rng_uniform(&w->draws[w->rows[i]].rng);
    }
    int status = w->cache->ops->sample(w->q, w->rows, w->u, count, each, w->excluded, per,
                                       w->drawn, w->value, ESP_NOW);
    if (status == ESP_OK)
        set_confidence(d, w->unsettled, w->unsettled_count, 1);
    return status;
}

/* Draws the next children of nodes that have no unused draws. On an asynchronous backend, each
 * call waits for the device. A call therefore draws at least AHEAD children for each node, and
 * more if nodes have many children already. On other backends, a call draws one child for each
 * node. */
static int draw_ahead(struct esp_draft *d, const int32_t *nodes, int count)
{
    enum { AHEAD = 4 };
    struct esp_draft_work *w = d->work;
    for (int done = 0, n, per; done < count; done += n) {
        n = exclude(d, nodes + done, count - done, &per);
        int each = w->cache->ops->asynchronous ? AHEAD : 1;
        while (each > 1 && each < per && each < ESP_MAX_DRAWS)
            each *= 2;
        int status = sample(d, nodes + done, n, each, per);
        if (status < 0)
            return status;
        for (int i = 0; i < n; i++) {
            struct esp_node_draws *draws = &w->draws[d->q_row[nodes[done + i]]];
            memcpy(draws->token, w->drawn + i * each, (size_t)each * sizeof *w->drawn);
            memcpy(draws->value, w->value + i * each, (size_t)each * sizeof *w->value);
            draws->next = 0;
            draws->count = each;
        }
    }
    return ESP_OK;
}

/* Lists the nodes that need draws now. On an asynchronous backend, each draw waits for the
 * device. On such a backend, the function therefore also lists the other nodes of the last
 * pass. */
static int list_lacking(struct esp_draft *d, const int32_t *parents, int count)
{
    struct esp_draft_work *w = d->work;
    int n = 0;
    for (int i = 0; i < count; i++) {
        const int row = d->q_row[parents[i]];
        if (row < 0 || w->draws[row].next == w->draws[row].count)
            w->lacking[n++] = parents[i];
    }
    const int needed = n;
    for (int i = 0; needed > 0 && w->cache->ops->asynchronous && i < w->unsettled_count; i++) {
        bool listed = false;
        for (int j = 0; j < needed; j++)
            listed |= w->lacking[j] == w->unsettled[i];
        if (!listed)
            w->lacking[n++] = w->unsettled[i];
    }
    return n;
}

/* Draws one token below each parent, without replacement. */
static int draw_swor(struct esp_draft *d, const int32_t *parents, int count, int32_t *children)
{
    struct esp_draft_work *w = d->work;
    int status = draw_ahead(d, w->lacking, list_lacking(d, parents, count));
    for (int i = 0; i < count && status == ESP_OK; i++) {
        struct esp_node_draws *draws = &w->draws[d->q_row[parents[i]]];
        const int at = draws->next++;
        children[i] = draws->token[at] < 0 ? -1
                                           : esp_tree_draw(d->tree, parents[i],
                                                           draws->token[at], draws->value[at]);
    }
    return status;
}

static int draw_iid(struct esp_draft *d, const int32_t *parents, int count, int32_t *children)
{
    struct esp_draft_work *w = d->work;
    int status = sample(d, parents, count, 1, 0);
    for (int i = 0; i < count && status == ESP_OK; i++)
        children[i] =
            w->drawn[i] < 0 ? -1 : esp_tree_draw(d->tree, parents[i], w->drawn[i], w->value[i]);
    return status;
}

int esp_draft_draw(struct esp_draft *d, const int32_t *parents, int count, enum esp_draws how,
                   int32_t *children)
{
    if (count > d->capacity)
        return ESP_E_ARGUMENT;
    int status = how == ESP_DRAW_SWOR ? draw_swor(d, parents, count, children)
                                      : draw_iid(d, parents, count, children);
    d->work->unsettled_count = 0;
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
    const struct esp_draft_work *w = d->work;
    int n = 0;
    if (!w->cache || w->features || w->scratch || rebuild)
        return ESP_OK;
    for (; n < count && d->q_row[path[n]] > 0 &&
           esp_kv_cache_keeps(w->cache, d->tree->tree.nodes[path[n]].token);
         n++)
        w->rows[n] = d->q_row[path[n]] - 1;
    return esp_kv_cache_keep(w->cache, w->rows, n);
}
