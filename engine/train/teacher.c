/* teacher.c - runs a target over texts and trees; see teacher.h.
 *
 * The trees of a few roots grow in the same batches; these trees are called a grove. The target
 * runs over the text up to the grove's last root, and then the trees grow. A node attends to
 * itself, to its ancestors, and to the text that ends with its tree's root. Then the target
 * continues with the text. The rows of the text replace the rows of the trees in the KV cache.
 * Therefore the cache never has to be shortened, which would need a copy of the states of
 * recurrent layers.
 */
#include "engine/train/teacher.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/block.h"
#include "kernels/dtype.h"
#include "kernels/kernels.h"
#include "kernels/status.h"

enum { MOST_ROWS = 256, MOST_NODES = 256 };

struct esp_teacher {
    const struct esp_model *target;
    struct esp_teacher_shape shape;
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits, *states; /* (MOST_ROWS, vocabulary), (MOST_ROWS, hidden) */
    int mask_words;
    void *memory;      /* one allocation that contains the arrays below */
    uint64_t *mask;    /* (MOST_ROWS, mask_words) */
    float *row;        /* (hidden) */
    int32_t *ids;      /* (MOST_ROWS, k) */
    float *values;     /* (MOST_ROWS, k) */
    int32_t *root_ids; /* (roots, k) the likeliest tokens after each root */
    float *root_values;
    int32_t tokens[MOST_ROWS], positions[MOST_ROWS], wanted[MOST_ROWS];
};

uint16_t esp_half(float value)
{
    const float most = 65504.0f;
    return esp_float_to_half(value > most ? most : value < -most ? -most : value);
}

/* ------------------------------------------------------------------ samples */

size_t esp_training_sample_bytes(const struct esp_teacher_shape *s)
{
    const size_t nodes = (size_t)esp_teacher_roots(s) * (size_t)esp_teacher_nodes(s);
    const size_t length = (size_t)s->length, hidden = (size_t)s->hidden;
    return (length + 2 * nodes) * sizeof(int32_t) +
           (length + nodes) * hidden * sizeof(uint16_t);
}

int esp_training_sample_open(struct esp_training_sample *l, const struct esp_teacher_shape *s)
{
    *l = (struct esp_training_sample){.roots = esp_teacher_roots(s),
                                      .nodes = esp_teacher_nodes(s),
                                      .bytes = esp_training_sample_bytes(s)};
    const size_t nodes = (size_t)l->roots * (size_t)l->nodes;
    if (!(l->memory = calloc(l->bytes, 1)))
        return ESP_E_MEMORY;
    l->token = l->memory;
    l->node_token = l->token + s->length;
    l->node_parent = l->node_token + nodes;
    l->feature = (uint16_t *)(l->node_parent + nodes);
    l->node_feature = l->feature + (size_t)s->length * (size_t)s->hidden;
    return ESP_OK;
}

void esp_training_sample_close(struct esp_training_sample *l)
{
    free(l->memory);
    *l = (struct esp_training_sample){0};
}

/* ------------------------------------------------------------------ the teacher */

static int make_room(struct esp_teacher *t, char *err, size_t errlen)
{
    const struct esp_backend_ops *ops = t->backend->ops;
    const struct esp_model_desc *desc = &t->target->desc;
    const size_t k = (size_t)(t->shape.k > 0 ? t->shape.k : 1);
    const size_t roots = (size_t)esp_teacher_roots(&t->shape);
    int status = ops->cache_open(&t->cache, t->weights, t->shape.length + MOST_NODES, MOST_ROWS,
                                 err, errlen);
    if (status == ESP_OK)
        status =
            ops->rows_open(&t->logits, t->backend, MOST_ROWS, desc->vocabulary, err, errlen);
    if (status == ESP_OK)
        status = ops->rows_open(&t->states, t->backend, MOST_ROWS, desc->hidden, err, errlen);
    if (status < 0)
        return status;
    t->mask_words = (t->shape.length + MOST_NODES + 63) / 64;
    t->memory = esp_block_take(
        ESP_ARRAY(t->mask, t->mask_words * MOST_ROWS), ESP_ARRAY(t->row, desc->hidden),
        ESP_ARRAY(t->ids, MOST_ROWS * k), ESP_ARRAY(t->values, MOST_ROWS * k),
        ESP_ARRAY(t->root_ids, roots * k), ESP_ARRAY(t->root_values, roots * k), NULL);
    if (t->memory)
        return ESP_OK;
    return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the target's trees");
}

int esp_teacher_open(struct esp_teacher **teacher, const struct esp_model *target,
                     const struct esp_teacher_shape *shape, int threads, char *err,
                     size_t errlen)
{
    struct esp_teacher *t = calloc(1, sizeof *t);
    *teacher = NULL;
    if (!t)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the target");
    t->target = target;
    t->shape = *shape;
    int status = esp_backend_cpu.open(&t->backend, threads, err, errlen);
    if (status == ESP_OK)
        status = t->backend->ops->weights_open(&t->weights, t->backend, &target->desc, NULL,
                                               NULL, err, errlen);
    if (status == ESP_OK)
        status = make_room(t, err, errlen);
    if (status < 0)
        esp_teacher_close(t);
    else
        *teacher = t;
    return status;
}

void esp_teacher_close(struct esp_teacher *t)
{
    if (!t)
        return;
    const struct esp_backend_ops *ops = t->backend ? t->backend->ops : NULL;
    if (t->logits)
        ops->rows_close(t->logits);
    if (t->states)
        ops->rows_close(t->states);
    if (t->cache)
        ops->cache_close(t->cache);
    if (t->weights)
        ops->weights_close(t->weights);
    if (t->backend)
        ops->close(t->backend);
    free(t->memory);
    free(t);
}

/* ------------------------------------------------------------------ passes */

/* Runs the batch in t->tokens and t->positions, and stores the feature of row i at feature[i].
 * t->wanted[i] is the row of t->ids and t->values that receives the likeliest tokens after row
 * i and their probabilities. It is -1 if they are not needed. `wanted` counts the other rows.
 */
static int run(struct esp_teacher *t, struct esp_batch *b, int wanted, uint16_t *const *feature)
{
    const struct esp_backend_ops *ops = t->backend->ops;
    const struct esp_states states = {
        .count = 1, .state = {ESP_STATE_NORMED}, .to = t->states, .row = NULL};
    const struct esp_step step = {.sampling = {.temperature = 1.0, .top_p = 1.0},
                                  .k = t->shape.k,
                                  .ids = t->ids,
                                  .values = t->values,
                                  .when = ESP_NOW};
    b->tokens = t->tokens;
    b->positions = t->positions;
    b->states = &states;
    if (wanted > 0) {
        b->logits = t->logits;
        b->logits_row = t->wanted;
        b->step = &step;
    }
    int status = ops->forward(t->cache, b);
    for (int i = 0; i < b->rows && status >= 0; i++) {
        status = ops->read_row(t->states, i, t->row);
        for (int j = 0; j < t->shape.hidden && status >= 0; j++) {
            if (!isfinite(t->row[j]))
                status = ESP_E_NUMERIC;
            feature[i][j] = esp_half(t->row[j]);
        }
    }
    return status < 0 ? status : ESP_OK;
}

/* Runs the target over tokens from..end-1 of the text. After each root, also computes the
 * likeliest next tokens. */
static int run_text(struct esp_teacher *t, struct esp_training_sample *l, int from, int end)
{
    const int every = t->shape.every, k = t->shape.k;
    uint16_t *feature[MOST_ROWS];
    int status = ESP_OK, root = every > 0 ? (from + every - 1) / every : 0;
    for (int first = from; first < end && status == ESP_OK; first += MOST_ROWS) {
        struct esp_batch b = {.first = first, .prefix = first};
        int wanted = 0;
        b.rows = end - first < MOST_ROWS ? end - first : MOST_ROWS;
        for (int i = 0; i < b.rows; i++) {
            const bool is_root = every > 0 && (first + i) % every == 0;
            t->tokens[i] = l->token[first + i];
            t->positions[i] = first + i;
            t->wanted[i] = is_root ? wanted++ : -1;
            feature[i] = l->feature + (size_t)(first + i) * (size_t)t->shape.hidden;
        }
        status = run(t, &b, wanted, feature);
        memcpy(t->root_ids + root * k, t->ids, (size_t)(wanted * k) * sizeof *t->ids);
        memcpy(t->root_values + root * k, t->values, (size_t)(wanted * k) * sizeof *t->values);
        root += wanted;
    }
    return status;
}

/* ------------------------------------------------------------------ trees */

/* Describes trees that grow together. The arrays (count, k) contain the nodes of one depth. */
struct grove {
    int first, count; /* index of the first root; number of roots */
    int prefix, text; /* number of tokens up to the first root, and up to the last root */
    float chance[MOST_ROWS]; /* path probabilities of the nodes at the last depth */
    /* For the nodes of the next depth: their tokens, parents and path probabilities. */
    int32_t next[MOST_ROWS];
    int32_t parent[MOST_ROWS];
    float next_chance[MOST_ROWS];
};

static void see(uint64_t *mask, int bit)
{
    mask[bit / 64] |= (uint64_t)1 << bit % 64;
}

/* Sets the mask of node `node` of tree `tree`: the node attends to the text up to its root, to
 * its ancestors and to itself. Bit 0 is the row after the first root of the grove. */
static void set_mask(struct esp_teacher *t, const struct esp_training_sample *l,
                     const struct grove *g, int tree, int node, uint64_t *mask)
{
    const int k = t->shape.k, root = g->first + tree;
    memset(mask, 0, (size_t)t->mask_words * sizeof *mask);
    for (int i = g->prefix; i <= root * t->shape.every; i++)
        see(mask, i - g->prefix);
    for (int at = node; at >= 0; at = l->node_parent[root * l->nodes + at]) {
        const int row = at / k * g->count * k + tree * k + at % k;
        see(mask, g->text + row - g->prefix);
    }
}

/* Runs the target over the nodes at one depth (from 1) of all trees of a grove. */
static int run_depth(struct esp_teacher *t, struct esp_training_sample *l, struct grove *g,
                     int depth)
{
    const int k = t->shape.k, rows = g->count * k, before = (depth - 1) * rows;
    const bool last = depth == t->shape.depth - 1;
    uint16_t *feature[MOST_ROWS];
    struct esp_batch b = {.rows = rows,
                          .first = g->text + before,
                          .prefix = g->prefix,
                          .mask = t->mask,
                          .mask_words = t->mask_words};
    for (int i = 0; i < rows; i++) {
        const int tree = i / k, node = (depth - 1) * k + i % k, root = g->first + tree;
        const size_t at = (size_t)root * (size_t)l->nodes + (size_t)node;
        l->node_token[at] = g->next[i];
        l->node_parent[at] = g->parent[i];
        g->chance[i] = g->next_chance[i];
        t->tokens[i] = g->next[i];
        t->positions[i] = root * t->shape.every + depth;
        t->wanted[i] = last ? -1 : i;
        feature[i] = l->node_feature + at * (size_t)t->shape.hidden;
        set_mask(t, l, g, tree, node, t->mask + (size_t)i * (size_t)t->mask_words);
    }
    return run(t, &b, last ? 0 : rows, feature);
}

/* Chooses the nodes of the next depth. These are the k children with the highest path
 * probability among all children of the k nodes at this depth. */
static void choose_next(const struct esp_teacher *t, struct grove *g, int depth)
{
    const int k = t->shape.k;
    int used[MOST_ROWS] = {0}; /* number of children that were taken from each node, the
                                  likeliest children first */
    for (int i = 0; i < g->count * k; i++) {
        const int tree = i / k;
        int best = -1;
        float chance = -1.0f;
        for (int row = tree * k; row < (tree + 1) * k; row++) {
            const float c =
                used[row] < k ? g->chance[row] * t->values[row * k + used[row]] : -1.0f;
            if (c > chance) {
                chance = c;
                best = row;
            }
        }
        g->next[i] = t->ids[best * k + used[best]++];
        g->parent[i] = (depth - 1) * k + best % k;
        g->next_chance[i] = chance;
    }
}

static int grow(struct esp_teacher *t, struct esp_training_sample *l, struct grove *g)
{
    const int k = t->shape.k;
    int status = ESP_OK;
    for (int i = 0; i < g->count * k; i++) {
        g->next[i] = t->root_ids[g->first * k + i];
        g->next_chance[i] = t->root_values[g->first * k + i];
        g->parent[i] = -1;
    }
    for (int depth = 1; depth < t->shape.depth && status == ESP_OK; depth++) {
        status = run_depth(t, l, g, depth);
        if (status == ESP_OK && depth < t->shape.depth - 1)
            choose_next(t, g, depth);
    }
    return status;
}

/* Returns the number of trees that grow together (a grove). The rows of these trees must fit in
 * one batch. The text between two groves must fit, too, because recurrent layers need the text
 * before a grove's first root: in their states, or in the inputs that they store. */
static int grove_size(const struct esp_teacher *t, const struct esp_training_sample *l)
{
    const int nodes = MOST_NODES / l->nodes, texts = MOST_ROWS / t->shape.every;
    return nodes < texts ? nodes : texts > 0 ? texts : 1;
}

/* Runs the target from token `from` to the last root of the grove, and then grows the trees. */
static int teach_grove(struct esp_teacher *t, struct esp_training_sample *l, struct grove *g,
                       int from)
{
    const int every = t->shape.every;
    g->prefix = g->first * every + 1;
    g->text = (g->first + g->count - 1) * every + 1;
    int status = run_text(t, l, from, g->text);
    return status < 0 ? status : grow(t, l, g);
}

int esp_teacher_teach(struct esp_teacher *t, struct esp_training_sample *l, char *err,
                      size_t errlen)
{
    int status = ESP_OK, done = 0;
    for (int root = 0; root < l->roots && l->nodes > 0 && status == ESP_OK;) {
        struct grove g = {.first = root, .count = grove_size(t, l)};
        g.count = l->roots - root < g.count ? l->roots - root : g.count;
        status = teach_grove(t, l, &g, done);
        done = g.text;
        root += g.count;
    }
    if (status == ESP_OK)
        status = run_text(t, l, done, t->shape.length);
    if (status < 0)
        return esp_fail(err, errlen, status, "%s failed on the text: %s", t->target->path,
                        esp_status_message(status));
    return ESP_OK;
}
