/* learning_batch.c - makes the rows of one step from samples; see learning_batch.h. */
#include "engine/train/learning_batch.h"

#include <stdlib.h>
#include <string.h>

#include "engine/train/block.h"
#include "kernels/status.h"

static int nodes_of(const struct esp_batch_shape *s)
{
    return s->paths == ESP_PATHS_TREE   ? esp_teacher_nodes(&s->sample)
           : s->paths == ESP_PATHS_TEXT ? s->depth - 1
                                        : 0;
}

static int roots_of(const struct esp_batch_shape *s)
{
    return s->paths == ESP_PATHS_NONE ? 0 : (s->sample.length + s->every - 1) / s->every;
}

int esp_learning_batch_open(struct esp_learning_batch *b, const struct esp_batch_shape *s,
                            char *err, size_t errlen)
{
    *b = (struct esp_learning_batch){.shape = *s};
    const int nodes = nodes_of(s) * roots_of(s);
    const size_t hidden = (size_t)s->sample.hidden;
    b->room = s->texts * (s->sample.length + nodes);
    b->rows.extras = s->depth > 1 ? s->depth - 1 : 1;
    const size_t room = (size_t)b->room;
    b->memory = esp_block_take(
        ESP_ARRAY(b->rows.token, room), ESP_ARRAY(b->rows.position, room),
        ESP_ARRAY(b->rows.parent, room), ESP_ARRAY(b->rows.first, room),
        ESP_ARRAY(b->rows.seen, room), ESP_ARRAY(b->rows.extra, room * (size_t)b->rows.extras),
        ESP_ARRAY(b->depth, room), ESP_ARRAY(b->weight, room),
        ESP_ARRAY(b->feature, s->head ? (size_t)(s->texts * s->sample.length) * hidden : 0),
        ESP_ARRAY(b->target_feature, room * hidden), ESP_ARRAY(b->last, s->texts * nodes),
        NULL);
    if (b->memory)
        return ESP_OK;
    return esp_fail(err, errlen, ESP_E_MEMORY,
                    "not enough memory for %d texts of %d tokens at a time; give a smaller "
                    "--batch",
                    s->texts, s->sample.length);
}

void esp_learning_batch_close(struct esp_learning_batch *b)
{
    free(b->memory);
    *b = (struct esp_learning_batch){0};
}

/* ------------------------------------------------------------------ rows */

static void read_feature(float *to, const uint16_t *from, int hidden)
{
    for (int i = 0; i < hidden; i++)
        to[i] = esp_half_to_float(from[i]);
}

/* Adds a row whose parent is row `parent`; -1 means a row of the text. Returns the index of the
 * new row. */
static int add_row(struct esp_learning_batch *b, int32_t token, int first, int seen, int parent,
                   const uint16_t *target)
{
    struct esp_training_rows *r = &b->rows;
    const int row = r->count++, hidden = b->shape.sample.hidden, extras = r->extras;
    const int depth = parent < 0 ? 0 : b->depth[parent] + 1;
    int32_t *extra = r->extra + (size_t)row * (size_t)extras;
    r->token[row] = token;
    r->first[row] = first;
    r->seen[row] = seen;
    r->parent[row] = parent;
    r->position[row] = parent < 0 ? seen - 1 : r->position[parent] + 1;
    b->depth[row] = depth;
    for (int i = 0; i < extras; i++)
        extra[i] = depth > 0 && i < depth - 1    ? extra[i - extras * (row - parent)]
                   : depth > 0 && i == depth - 1 ? row - first
                                                 : -1;
    read_feature(b->target_feature + (size_t)row * (size_t)hidden, target, hidden);
    return row;
}

/* Adds the rows of a text. Token s has row first + s; in a head's batch, row first + s - 1. */
static void add_text(struct esp_learning_batch *b, const struct esp_training_sample *l)
{
    const int hidden = b->shape.sample.hidden, head = b->shape.head, first = b->rows.count;
    for (int s = head; s < b->shape.sample.length; s++) {
        int row = add_row(b, l->token[s], first, s + 1 - head, -1,
                          l->feature + (size_t)s * (size_t)hidden);
        if (head)
            read_feature(b->feature + (size_t)row * (size_t)hidden,
                         l->feature + (size_t)(s - 1) * (size_t)hidden, hidden);
    }
}

/* Returns the row of root number `root`; -1 if the root has no row, because it is the first
 * token and the draft is a head. */
static int root_row(const struct esp_learning_batch *b, int first, int root)
{
    const int s = root * b->shape.every - b->shape.head;
    return s < 0 ? -1 : first + s;
}

/* Adds the rows at one depth (from 1) of all paths of a text. The text's first row is `first`.
 * Writes the indices of the new rows to last (roots, nodes). */
static void add_depth(struct esp_learning_batch *b, const struct esp_training_sample *l,
                      int first, int depth, int32_t *last)
{
    const struct esp_batch_shape *s = &b->shape;
    const size_t hidden = (size_t)s->sample.hidden;
    const bool text = s->paths == ESP_PATHS_TEXT;
    const int nodes = nodes_of(s), wide = text ? 1 : s->sample.k;
    for (int root = 0; root < roots_of(s); root++) {
        const int top = root_row(b, first, root), at = root * s->every + depth;
        const int before = root * nodes;
        if (top < 0 || (text && at >= s->sample.length))
            continue;
        for (int node = before + (depth - 1) * wide; node < before + depth * wide; node++) {
            const int above = text ? node - 1 : before + l->node_parent[node];
            last[node] = add_row(b, text ? l->token[at] : l->node_token[node], first,
                                 b->rows.seen[top], depth > 1 ? last[above] : top,
                                 text ? l->feature + (size_t)at * hidden
                                      : l->node_feature + (size_t)node * hidden);
        }
    }
}

/* Sets the weights of the rows. The loss of the text becomes a mean over its tokens. The loss
 * at a depth becomes a mean over roots; the losses of a tree's nodes at this depth are added
 * (algorithm 1). */
static void set_weights(struct esp_learning_batch *b, int texts)
{
    const struct esp_batch_shape *s = &b->shape;
    const int length = s->sample.length - s->head;
    int roots = 0;
    for (int i = 0; i < b->rows.count; i++)
        roots += b->depth[i] == 1;
    roots /= s->paths == ESP_PATHS_TREE ? s->sample.k : 1;
    for (int i = 0; i < b->rows.count; i++)
        b->weight[i] = 1.0f / (float)(b->depth[i] == 0 ? texts * length : roots);
}

void esp_learning_batch_fill(struct esp_learning_batch *b,
                             const struct esp_training_sample *samples, int count,
                             struct esp_rng *rng)
{
    const struct esp_batch_shape *s = &b->shape;
    struct esp_training_rows *r = &b->rows;
    const int depths = s->paths == ESP_PATHS_NONE ? 1 : s->depth;
    const int nodes = nodes_of(s) * roots_of(s), length = s->sample.length - s->head;
    r->count = r->passes = 0;
    r->feature = s->head ? b->feature : NULL;
    for (int depth = 0; s->head && depth < depths; depth++) {
        for (int i = 0; i < count; i++)
            if (depth == 0)
                add_text(b, &samples[i]);
            else
                add_depth(b, &samples[i], i * length, depth, b->last + i * nodes);
        r->pass_end[r->passes++] = r->count;
    }
    for (int i = 0; !s->head && i < count; i++) {
        const int first = r->count;
        add_text(b, &samples[i]);
        for (int depth = 1; depth < depths; depth++)
            add_depth(b, &samples[i], first, depth, b->last + i * nodes);
        r->passes = 1;
        r->pass_end[0] = r->count;
    }
    set_weights(b, count);
    const size_t noisy = s->head && rng && s->noise > 0.0
                             ? (size_t)r->pass_end[0] * (size_t)s->sample.hidden
                             : 0;
    for (size_t i = 0; i < noisy; i++)
        b->feature[i] += (float)(s->noise * (esp_rng_uniform(rng) - 0.5));
}
