/* draft.c - the frontier helper: batched passes of the draft model over a growing tree.
 *
 * The draft cache holds the text up to and including the root, then one row per expanded node in the
 * order of the passes: node u is row q_row[u] - 1 behind the text. A node sees the text and its own ancestors; ancestors are always expanded in an
 * earlier pass, so a pass is one masked batch. The first pass of an iteration also catches up: tokens
 * that were committed without ever having been run through the draft model (bonus tokens, accepted
 * leaves) run in front of the root.
 */
#include "draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "error.h"

struct esp_draft_scratch {
    int words;                     /* per mask row */
    uint64_t *mask;                /* (capacity + 1, words) by order of expansion */
    uint64_t *batch_mask;          /* (capacity + 1, words) rows of one pass */
    int32_t *tokens, *positions;   /* (capacity + 1) */
    int32_t *rows;                 /* (capacity + 1) */
    int32_t *frontier, *next;      /* (capacity + 1) */
    struct esp_candidate *candidates; /* (capacity + 1) * ESP_MAX_TOP */
};

/* A child that a layer could add. */
struct esp_candidate {
    int32_t parent, token, at; /* at: place in drawing order */
    float q, cumulative_log_q;
    bool taken;
};

int esp_draft_open(struct esp_draft *d, struct esp_model_cache *cache, struct esp_rows *q,
                   struct esp_tree_builder *tree, char *err, size_t errlen)
{
    memset(d, 0, sizeof *d);
    size_t rows = (size_t)tree->capacity + 1;
    struct esp_draft_scratch *s = d->scratch = calloc(1, sizeof *s);
    d->cache = cache;
    d->q = q;
    d->tree = tree;
    d->capacity = (int)rows;
    d->q_row = calloc((size_t)tree->record, sizeof *d->q_row);
    d->top_token = calloc(rows * ESP_MAX_TOP, sizeof *d->top_token);
    d->top_q = calloc(rows * ESP_MAX_TOP, sizeof *d->top_q);
    if (s) {
        s->words = tree->mask_words;
        s->mask = calloc(rows * (size_t)s->words, sizeof *s->mask);
        s->batch_mask = calloc(rows * (size_t)s->words, sizeof *s->batch_mask);
        s->tokens = calloc(rows, sizeof *s->tokens);
        s->positions = calloc(rows, sizeof *s->positions);
        s->rows = calloc(rows, sizeof *s->rows);
        s->frontier = calloc(rows, sizeof *s->frontier);
        s->next = calloc(rows, sizeof *s->next);
        s->candidates = calloc(rows * ESP_MAX_TOP, sizeof *s->candidates);
    }
    if (!s || !d->q_row || !d->top_token || !d->top_q || !s->mask || !s->batch_mask ||
        !s->tokens || !s->positions || !s->rows || !s->frontier || !s->next || !s->candidates) {
        esp_draft_close(d);
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for drafting");
    }
    return ESP_OK;
}

void esp_draft_close(struct esp_draft *d)
{
    if (d->scratch) {
        free(d->scratch->mask);
        free(d->scratch->batch_mask);
        free(d->scratch->tokens);
        free(d->scratch->positions);
        free(d->scratch->rows);
        free(d->scratch->frontier);
        free(d->scratch->next);
        free(d->scratch->candidates);
    }
    free(d->scratch);
    free(d->q_row);
    free(d->top_token);
    free(d->top_q);
    memset(d, 0, sizeof *d);
}

void esp_draft_begin(struct esp_draft *d)
{
    d->expanded = 0;
    d->passes = 0;
    for (int i = 0; i < d->tree->record; i++)
        d->q_row[i] = -1;
}

/* The root: whatever of the text the draft model has not seen yet runs in front of it. */
static int run_root(struct esp_draft *d)
{
    if (d->expanded > 0)
        return ESP_E_ARGUMENT;
    if (d->cache->length >= d->text_length) /* an iteration that failed had run it already */
        d->cache->length = d->text_length - 1;
    d->q_row[0] = 0;
    d->expanded = 1;
    return esp_context_append(d->cache, d->text + d->cache->length,
                              d->text_length - d->cache->length, d->q);
}

static int run_nodes(struct esp_draft *d, const int32_t *nodes, int count)
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
            return ESP_E_ARGUMENT; /* a policy may not expand a node before its parent */
        if (above < 0)
            memset(mask, 0, bytes);
        else
            memcpy(mask, s->mask + (size_t)above * words, bytes);
        mask[row / 64] |= (uint64_t)1 << (row % 64);
        memcpy(s->batch_mask + (size_t)i * words, mask, bytes);
        s->tokens[i] = node->token;
        s->positions[i] = d->text_length - 1 + node->depth;
        d->q_row[nodes[i]] = row + 1;
        s->rows[i] = row + 1;
    }
    struct esp_batch batch = {
        .rows = count,
        .tokens = s->tokens,
        .positions = s->positions,
        .first = d->cache->length + d->expanded - 1,
        .prefix = d->cache->length,
        .mask = s->batch_mask,
        .mask_words = s->words,
        .logits = d->q,
        .logits_row = s->rows,
    };
    d->expanded += count;
    return d->cache->ops->forward(d->cache->cache, &batch);
}

int esp_draft_expand(struct esp_draft *d, const int32_t *nodes, int count, int k)
{
    if (!d->cache || count < 1 || k < 1 || k > ESP_MAX_TOP || (nodes[0] == 0 && count > 1))
        return ESP_E_ARGUMENT;
    int32_t *rows = d->scratch->rows;
    int status = nodes[0] == 0 ? run_root(d) : run_nodes(d, nodes, count);
    if (nodes[0] == 0)
        rows[0] = 0;
    if (status == ESP_OK)
        status = d->cache->ops->softmax(d->q, rows, count, &d->sampling);
    if (status == ESP_OK)
        status = d->cache->ops->top_k(d->q, rows, count, k, d->top_token, d->top_q);
    if (status < 0)
        return status;
    for (int i = 0; i < count; i++)
        d->tree->tree.nodes[nodes[i]].confidence = d->top_q[(size_t)i * (size_t)k];
    d->passes++;
    return ESP_OK;
}

/* ------------------------------------------------------------------ layer-by-layer growth */

static int by_falling_q(const void *a, const void *b)
{
    const struct esp_candidate *x = a, *y = b;
    if (x->cumulative_log_q != y->cumulative_log_q)
        return x->cumulative_log_q < y->cumulative_log_q ? 1 : -1;
    return x->at - y->at;
}

static int by_drawing_order(const void *a, const void *b)
{
    return ((const struct esp_candidate *)a)->at - ((const struct esp_candidate *)b)->at;
}

/* Lists the children that the rule gives to the nodes of a layer; returns how many are not cut. */
static int list_candidates(struct esp_draft *d, const struct esp_layer_rule *rule,
                           const int32_t *layer, int count, int *total)
{
    int kept = 0, n = 0;
    for (int i = 0; i < count; i++) {
        const struct esp_node *node = &d->tree->tree.nodes[layer[i]];
        bool guess = layer[i] == 0 && rule->draft_root;
        int breadth = guess ? 1 : rule->breadth(rule->policy, node);
        for (int j = 0; j < breadth; j++) {
            size_t at = (size_t)i * (size_t)rule->most + (size_t)j;
            struct esp_candidate *c = &d->scratch->candidates[n];
            if (!(d->top_q[at] > 0))
                break; /* fewer tokens than asked for have any probability */
            *c = (struct esp_candidate){
                .parent = layer[i],
                .token = d->top_token[at],
                .at = n,
                .q = d->top_q[at],
                .cumulative_log_q = node->cumulative_log_q + logf(d->top_q[at]),
            };
            c->taken = guess || !(c->cumulative_log_q < rule->log_cut);
            kept += c->taken;
            n++;
        }
    }
    *total = n;
    return kept;
}

/* Adds the layer's children to the tree: those that fit, likeliest first; the others are recorded as
 * cut. Returns the number added; they are the last nodes not cut. */
static int add_layer(struct esp_draft *d, const struct esp_layer_rule *rule, int room,
                     const int32_t *layer, int count, int32_t *added)
{
    struct esp_candidate *c = d->scratch->candidates;
    int total, kept = list_candidates(d, rule, layer, count, &total), n = 0;
    bool tight = kept > room;
    if (tight) {
        qsort(c, (size_t)total, sizeof *c, by_falling_q);
        for (int i = 0; i < total; i++)
            if (c[i].taken && room-- <= 0)
                c[i].taken = false;
        qsort(c, (size_t)total, sizeof *c, by_drawing_order);
    }
    for (int i = 0; i < total; i++) {
        if (c[i].taken) {
            int node = esp_tree_add(d->tree, c[i].parent, c[i].token, c[i].q);
            if (node >= 0)
                added[n++] = node;
        } else {
            bool low = c[i].cumulative_log_q < rule->log_cut;
            esp_tree_add_cut(d->tree, c[i].parent, c[i].token, c[i].q,
                             low ? ESP_REASON_THRESHOLD : ESP_REASON_BUDGET);
        }
    }
    return n;
}

static bool may_expand(struct esp_draft *d, const struct esp_layer_rule *rule, int32_t u)
{
    struct esp_node *node = &d->tree->tree.nodes[u];
    enum esp_reason reason = ESP_REASON_DEPTH;
    bool allowed = node->depth < d->max_depth;
    if (allowed && node->cumulative_log_q < rule->log_cut) {
        reason = ESP_REASON_THRESHOLD;
        allowed = false;
    }
    allowed = allowed && ((u == 0 && rule->draft_root) ||
                          rule->expand(rule->policy, node, &reason));
    if (!allowed)
        node->reason = (uint8_t)reason;
    return allowed;
}

int esp_draft_grow(struct esp_draft *d, const struct esp_layer_rule *rule)
{
    int32_t *layer = d->scratch->frontier;
    int count = 1, used = 0;
    int budget = rule->budget < d->tree->capacity ? rule->budget : d->tree->capacity;
    layer[0] = 0;
    while (count > 0 && used < budget) {
        int wanted = 0;
        for (int i = 0; i < count; i++)
            if (may_expand(d, rule, layer[i]))
                layer[wanted++] = layer[i];
        if (wanted == 0)
            break;
        int status = esp_draft_expand(d, layer, wanted, rule->most);
        if (status < 0)
            return status;
        count = add_layer(d, rule, budget - used, layer, wanted, d->scratch->next);
        memcpy(layer, d->scratch->next, (size_t)count * sizeof *layer);
        used += count;
        if (d->layer)
            d->layer(d->user);
    }
    for (int i = 0; used >= budget && i < count; i++)
        d->tree->tree.nodes[layer[i]].reason = ESP_REASON_BUDGET;
    return ESP_OK;
}

/* ------------------------------------------------------------------ between iterations */

int esp_draft_commit(struct esp_draft *d, const int32_t *path, int count, bool rebuild)
{
    int32_t *rows = d->scratch->rows;
    int n = 0;
    if (!d->cache || rebuild)
        return ESP_OK;
    while (n < count && d->q_row[path[n]] > 0) {
        rows[n] = d->q_row[path[n]] - 1;
        n++;
    }
    return esp_context_keep(d->cache, rows, n);
}
