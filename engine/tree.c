/* tree.c - grows, cuts and flattens draft trees; see tree.h. */
#include "engine/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

/* A drafter tries more nodes than are verified, and the tree also stores the cut nodes. A
 * recording may have at most 4096 nodes per tree. */
enum { RECORD_PER_NODE = 3, RECORD_MINIMUM = 1024, RECORD_MAXIMUM = 4096 };

int esp_tree_open(struct esp_tree_builder *b, int capacity, char *err, size_t errlen)
{
    memset(b, 0, sizeof *b);
    if (capacity < 1 || capacity > ESP_MAX_NODES)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "a tree has 1 to %d nodes, not %d",
                        ESP_MAX_NODES, capacity);
    size_t record = (size_t)capacity * RECORD_PER_NODE + RECORD_MINIMUM;
    size_t rows = (size_t)capacity + 1;
    if (record > RECORD_MAXIMUM)
        record = RECORD_MAXIMUM;
    b->capacity = capacity;
    b->record = (int)record;
    b->draw_capacity = b->record + capacity; /* each node once, and up to `capacity`
                                                repetitions */
    b->mask_words = (int)((rows + 63) / 64);
    struct esp_arrays *a = &b->arrays;
    b->tree.nodes = esp_arrays_add(a, record, sizeof *b->tree.nodes);
    b->tree.order = esp_arrays_add(a, rows, sizeof *b->tree.order);
    b->first_child = esp_arrays_add(a, record, sizeof *b->first_child);
    b->last_child = esp_arrays_add(a, record, sizeof *b->last_child);
    b->next_sibling = esp_arrays_add(a, record, sizeof *b->next_sibling);
    b->first_draw = esp_arrays_add(a, record, sizeof *b->first_draw);
    b->last_draw = esp_arrays_add(a, record, sizeof *b->last_draw);
    b->next_draw = esp_arrays_add(a, (size_t)b->draw_capacity, sizeof *b->next_draw);
    b->draw_node = esp_arrays_add(a, (size_t)b->draw_capacity, sizeof *b->draw_node);
    b->row = esp_arrays_add(a, record, sizeof *b->row);
    b->size = esp_arrays_add(a, record, sizeof *b->size);
    b->stack = esp_arrays_add(a, record, sizeof *b->stack);
    b->mask = esp_arrays_add(a, rows * (size_t)b->mask_words, sizeof *b->mask);
    if (a->failed) {
        esp_tree_close(b);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a tree of %d nodes",
                        capacity);
    }
    esp_tree_reset(b, 0);
    return ESP_OK;
}

void esp_tree_close(struct esp_tree_builder *b)
{
    esp_arrays_free(&b->arrays);
    memset(b, 0, sizeof *b);
}

static void note_draw(struct esp_tree_builder *b, int parent, int node)
{
    int draw = b->draws++;
    b->draw_node[draw] = node;
    b->next_draw[draw] = -1;
    if (b->last_draw[parent] < 0)
        b->first_draw[parent] = draw;
    else
        b->next_draw[b->last_draw[parent]] = draw;
    b->last_draw[parent] = draw;
}

static int append(struct esp_tree_builder *b, int parent, int32_t token, double q)
{
    int index = b->tree.count++;
    struct esp_node *node = &b->tree.nodes[index];
    *node = (struct esp_node){
        .token = token,
        .parent = parent,
        .copies = 1,
        .q = (float)q,
        .confidence = NAN,
        .value = NAN,
        .p = NAN,
        .u = NAN,
        .acceptance = NAN,
        .branching = NAN,
        .acceptance_rate = NAN,
        .ceiling = NAN,
    };
    b->first_child[index] = b->last_child[index] = b->next_sibling[index] = -1;
    b->first_draw[index] = b->last_draw[index] = -1;
    b->row[index] = -1;
    if (parent < 0)
        return index;
    const struct esp_node *above = &b->tree.nodes[parent];
    int last = b->last_child[parent];
    node->depth = above->depth + 1;
    node->cumulative_log_q = above->cumulative_log_q + (float)log(q);
    node->rank = last < 0 ? 0 : b->tree.nodes[last].rank + 1;
    if (last < 0)
        b->first_child[parent] = index;
    else
        b->next_sibling[last] = index;
    b->last_child[parent] = index;
    note_draw(b, parent, index);
    return index;
}

void esp_tree_reset(struct esp_tree_builder *b, int32_t token)
{
    b->tree.count = 0;
    b->tree.verified = 0;
    b->room = b->capacity;
    b->mask_blocks = 0;
    b->draws = 0;
    append(b, -1, token, 1.0);
}

int esp_tree_add(struct esp_tree_builder *b, int parent, int32_t token, double q)
{
    if (b->room == 0 || b->tree.count == b->record)
        return -1;
    b->room--;
    return append(b, parent, token, q);
}

int esp_tree_draw(struct esp_tree_builder *b, int parent, int32_t token, double q)
{
    int node = esp_tree_find(b, parent, token);
    if (node < 0)
        return esp_tree_add(b, parent, token, q);
    int repetitions = b->draws - (b->tree.count - 1);
    if (repetitions == b->capacity)
        return -1;
    b->tree.nodes[node].copies++;
    note_draw(b, parent, node);
    return node;
}

int esp_tree_draws(const struct esp_tree_builder *b, int parent, int32_t *nodes, int most)
{
    int count = 0;
    for (int draw = b->first_draw[parent]; draw >= 0; draw = b->next_draw[draw]) {
        if (b->tree.nodes[b->draw_node[draw]].verdict == ESP_CUT)
            continue;
        if (count < most)
            nodes[count] = b->draw_node[draw];
        count++;
    }
    return count;
}

int esp_tree_add_cut(struct esp_tree_builder *b, int parent, int32_t token, double q,
                     enum esp_reason reason)
{
    /* Cut nodes must leave enough entries for all nodes that may still be verified. */
    if (b->tree.count + b->room >= b->record)
        return -1;
    int node = append(b, parent, token, q);
    b->tree.nodes[node].verdict = ESP_CUT;
    b->tree.nodes[node].reason = (uint8_t)reason;
    return node;
}

void esp_tree_cut(struct esp_tree_builder *b, int node, enum esp_reason reason)
{
    int top = 0;
    b->stack[top++] = node;
    while (top > 0) {
        int u = b->stack[--top];
        struct esp_node *cut = &b->tree.nodes[u];
        if (cut->verdict != ESP_CUT) {
            cut->verdict = ESP_CUT;
            cut->reason = (uint8_t)reason;
            b->room++;
        }
        for (int c = b->first_child[u]; c >= 0; c = b->next_sibling[c])
            b->stack[top++] = c;
    }
}

static bool is_cut(const struct esp_tree_builder *b, int node)
{
    return b->tree.nodes[node].verdict == ESP_CUT;
}

static void place(struct esp_tree_builder *b, int node)
{
    b->row[node] = b->tree.verified;
    b->tree.order[b->tree.verified++] = node;
}

/* tree.order is used as a queue: each node that was added to it is visited later, to add its
 * children. */
static void order_bfs(struct esp_tree_builder *b)
{
    place(b, 0);
    for (int i = 0; i < b->tree.verified; i++)
        for (int c = b->first_child[b->tree.order[i]]; c >= 0; c = b->next_sibling[c])
            if (!is_cut(b, c))
                place(b, c);
}

/* Places nodes depth first. Children are pushed onto the stack in reverse order. With `heavy`
 * they are sorted by subtree size (ties in drawing order), so that the largest is visited
 * first. */
static void order_dfs(struct esp_tree_builder *b, bool heavy)
{
    int top = 0;
    b->stack[top++] = 0;
    while (top > 0) {
        int node = b->stack[--top];
        int base = top;
        place(b, node);
        for (int c = b->first_child[node]; c >= 0; c = b->next_sibling[c]) {
            if (is_cut(b, c))
                continue;
            int at = top++;
            while (at > base && (!heavy || b->size[b->stack[at - 1]] >= b->size[c])) {
                b->stack[at] = b->stack[at - 1];
                at--;
            }
            b->stack[at] = c;
        }
    }
}

static void count_subtrees(struct esp_tree_builder *b)
{
    for (int i = 0; i < b->tree.count; i++)
        b->size[i] = !is_cut(b, i);
    for (int i = b->tree.count - 1; i > 0; i--)
        b->size[b->tree.nodes[i].parent] += b->size[i];
}

static void fill_masks(struct esp_tree_builder *b)
{
    const int words = b->mask_words;
    for (int i = 0; i < b->tree.verified; i++) {
        uint64_t *mask = b->mask + (size_t)i * (size_t)words;
        int parent = b->tree.nodes[b->tree.order[i]].parent;
        if (parent < 0)
            memset(mask, 0, (size_t)words * sizeof *mask);
        else
            memcpy(mask, b->mask + (size_t)b->row[parent] * (size_t)words,
                   (size_t)words * sizeof *mask);
        mask[i / 64] |= (uint64_t)1 << (i % 64);
    }
    b->mask_blocks = 0;
    for (int top = 0; top < b->tree.verified; top += 32) {
        int bottom = top + 32 < b->tree.verified ? top + 32 : b->tree.verified;
        for (int w = 0; w < words; w++) {
            uint64_t seen = 0;
            for (int i = top; i < bottom; i++)
                seen |= b->mask[(size_t)i * (size_t)words + (size_t)w];
            b->mask_blocks += ((uint32_t)seen != 0) + (seen >> 32 != 0);
        }
    }
}

void esp_tree_flatten(struct esp_tree_builder *b, enum esp_order order)
{
    b->tree.verified = 0;
    for (int i = 0; i < b->tree.count; i++)
        b->row[i] = -1;
    switch (order) {
    case ESP_ORDER_bfs:
        order_bfs(b);
        break;
    case ESP_ORDER_dfs:
        order_dfs(b, false);
        break;
    case ESP_ORDER_hpd:
        count_subtrees(b);
        order_dfs(b, true);
        break;
    }
    fill_masks(b);
}

int esp_tree_deepest(const struct esp_tree *tree)
{
    int deepest = 0;
    for (int i = 1; i < tree->count; i++)
        if (tree->nodes[i].verdict != ESP_CUT && tree->nodes[i].depth > deepest)
            deepest = tree->nodes[i].depth;
    return deepest;
}

int esp_tree_find(const struct esp_tree_builder *b, int node, int32_t token)
{
    for (int c = b->first_child[node]; c >= 0; c = b->next_sibling[c])
        if (!is_cut(b, c) && b->tree.nodes[c].token == token)
            return c;
    return -1;
}
