/* learning_batch.c - rows for one step, made of lessons; see learning_batch.h. */
#include "engine/train/learning_batch.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/status.h"

static int nodes_of(const struct esp_batch_shape *s)
{
    return s->paths == ESP_PATHS_TREE   ? esp_lesson_nodes(&s->lesson)
           : s->paths == ESP_PATHS_TEXT ? s->depth - 1
                                        : 0;
}

static int roots_of(const struct esp_batch_shape *s)
{
    return s->paths == ESP_PATHS_NONE ? 0 : (s->lesson.length + s->every - 1) / s->every;
}

int esp_learning_batch_open(struct esp_learning_batch *b, const struct esp_batch_shape *s,
                            char *err, size_t errlen)
{
    *b = (struct esp_learning_batch){.shape = *s};
    const int nodes = nodes_of(s) * roots_of(s);
    const size_t hidden = (size_t)s->lesson.hidden;
    b->room = s->texts * (s->lesson.length + nodes);
    b->rows.extras = s->depth > 1 ? s->depth - 1 : 1;
    const size_t room = (size_t)b->room;
    struct {
        void **where;
        size_t count, size;
    } wanted[] = {
        {(void **)&b->rows.token, room, 4},
        {(void **)&b->rows.position, room, 4},
        {(void **)&b->rows.parent, room, 4},
        {(void **)&b->rows.first, room, 4},
        {(void **)&b->rows.seen, room, 4},
        {(void **)&b->rows.extra, room, 4 * (size_t)b->rows.extras},
        {(void **)&b->depth, room, 4},
        {(void **)&b->weight, room, 4},
        {(void **)&b->feature, s->head ? (size_t)(s->texts * s->lesson.length) : 0, 4 * hidden},
        {(void **)&b->target_feature, room, 4 * hidden},
        {(void **)&b->last, (size_t)(s->texts * nodes), 4},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!(*wanted[i].where = esp_cpu_alloc(wanted[i].count, wanted[i].size))) {
            esp_learning_batch_close(b);
            return esp_fail(err, errlen, ESP_E_MEMORY,
                            "not enough memory for %d texts of %d tokens at a time; give a "
                            "smaller --batch",
                            s->texts, s->lesson.length);
        }
    return ESP_OK;
}

void esp_learning_batch_close(struct esp_learning_batch *b)
{
    void *all[] = {b->rows.token, b->rows.position,  b->rows.parent, b->rows.first,
                   b->rows.seen,  b->rows.extra,     b->depth,       b->weight,
                   b->feature,    b->target_feature, b->last};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        esp_cpu_free(all[i]);
    *b = (struct esp_learning_batch){0};
}

/* ------------------------------------------------------------------ rows */

static void read_feature(float *to, const uint16_t *from, int hidden)
{
    for (int i = 0; i < hidden; i++)
        to[i] = esp_from_half(from[i]);
}

/* A row below row `parent`, or one of the text if that is -1. */
static int add_row(struct esp_learning_batch *b, int32_t token, int first, int seen, int parent,
                   const uint16_t *target)
{
    struct esp_training_rows *r = &b->rows;
    const int row = r->count++, hidden = b->shape.lesson.hidden, extras = r->extras;
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

/* Token number s of a text has row first + s, or first + s - 1 in a head's batch. */
static void add_text(struct esp_learning_batch *b, const struct esp_training_sample *l)
{
    const int hidden = b->shape.lesson.hidden, head = b->shape.head, first = b->rows.count;
    for (int s = head; s < b->shape.lesson.length; s++) {
        int row = add_row(b, l->token[s], first, s + 1 - head, -1,
                          l->feature + (size_t)s * (size_t)hidden);
        if (head)
            read_feature(b->feature + (size_t)row * (size_t)hidden,
                         l->feature + (size_t)(s - 1) * (size_t)hidden, hidden);
    }
}

/* The row of root number `root`; -1 if the head has none. */
static int root_row(const struct esp_learning_batch *b, int first, int root)
{
    const int s = root * b->shape.every - b->shape.head;
    return s < 0 ? -1 : first + s;
}

/* The rows of one depth (1..) of a text whose row 0 is `first`; `last` (roots, nodes). */
static void add_depth(struct esp_learning_batch *b, const struct esp_training_sample *l,
                      int first, int depth, int32_t *last)
{
    const struct esp_batch_shape *s = &b->shape;
    const size_t hidden = (size_t)s->lesson.hidden;
    const int nodes = nodes_of(s), wide = s->paths == ESP_PATHS_TREE ? s->lesson.k : 1;
    for (int root = 0; root < roots_of(s); root++) {
        const int top = root_row(b, first, root), at = root * s->every + depth;
        if (top < 0 || (s->paths == ESP_PATHS_TEXT && at >= s->lesson.length))
            continue;
        for (int i = (depth - 1) * wide; i < depth * wide; i++) {
            const size_t node = (size_t)root * (size_t)nodes + (size_t)i;
            const int seen = b->rows.seen[top];
            if (s->paths == ESP_PATHS_TEXT)
                last[node] =
                    add_row(b, l->token[at], first, seen, depth > 1 ? last[node - 1] : top,
                            l->feature + (size_t)at * hidden);
            else
                last[node] =
                    add_row(b, l->node_token[node], first, seen,
                            depth > 1 ? last[root * nodes + l->node_parent[node]] : top,
                            l->node_feature + node * hidden);
        }
    }
}

/* The rows of the text together have the same weight as all rows at one depth of the paths: the
 * sum over a tree of algorithm 1, as a mean over roots. */
static void set_weights(struct esp_learning_batch *b, int texts)
{
    const struct esp_batch_shape *s = &b->shape;
    const int length = s->lesson.length - s->head;
    int roots = 0;
    for (int i = 0; i < b->rows.count; i++)
        roots += b->depth[i] == 1;
    roots /= s->paths == ESP_PATHS_TREE ? s->lesson.k : 1;
    for (int i = 0; i < b->rows.count; i++)
        b->weight[i] = 1.0f / (float)(b->depth[i] == 0 ? texts * length : roots);
}

void esp_learning_batch_fill(struct esp_learning_batch *b,
                             const struct esp_training_sample *lessons, int count,
                             struct esp_rng *rng)
{
    const struct esp_batch_shape *s = &b->shape;
    struct esp_training_rows *r = &b->rows;
    const int depths = s->paths == ESP_PATHS_NONE ? 1 : s->depth;
    const int nodes = nodes_of(s) * roots_of(s), length = s->lesson.length - s->head;
    r->count = r->passes = 0;
    r->feature = s->head ? b->feature : NULL;
    for (int depth = 0; s->head && depth < depths; depth++) {
        for (int i = 0; i < count; i++)
            if (depth == 0)
                add_text(b, &lessons[i]);
            else
                add_depth(b, &lessons[i], i * length, depth, b->last + i * nodes);
        r->pass_end[r->passes++] = r->count;
    }
    for (int i = 0; !s->head && i < count; i++) {
        const int first = r->count;
        add_text(b, &lessons[i]);
        for (int depth = 1; depth < depths; depth++)
            add_depth(b, &lessons[i], first, depth, b->last + i * nodes);
        r->passes = 1;
        r->pass_end[0] = r->count;
    }
    set_weights(b, count);
    const size_t noisy = s->head && rng && s->noise > 0.0
                             ? (size_t)r->pass_end[0] * (size_t)s->lesson.hidden
                             : 0;
    for (size_t i = 0; i < noisy; i++)
        b->feature[i] += (float)(s->noise * (esp_rng_uniform(rng) - 0.5));
}
