/* iteration_copy.c - deep copies of iterations; see iteration_copy.h. */
#include "sessions/iteration_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one id more than needed, so that the array exists even if it is empty. */
static int reserve(struct esp_iteration_copy *copy, int nodes, int ids)
{
    ids++;
    if (nodes > copy->node_capacity) {
        struct esp_node *grown = realloc(copy->nodes, (size_t)nodes * sizeof *grown);
        if (!grown)
            return ESP_E_MEMORY;
        copy->nodes = grown;
        copy->node_capacity = nodes;
    }
    if (ids > copy->id_capacity) {
        int32_t *grown = realloc(copy->ids, (size_t)ids * sizeof *grown);
        if (!grown)
            return ESP_E_MEMORY;
        copy->ids = grown;
        copy->id_capacity = ids;
    }
    return 0;
}

int esp_iteration_reserve(struct esp_iteration_copy *copy, int nodes)
{
    return reserve(copy, nodes, 3 * nodes);
}

/* Copies `count` ids to `to` and returns the place after them. */
static int32_t *put(int32_t *to, const int32_t *from, int count)
{
    if (count > 0)
        memcpy(to, from, (size_t)count * sizeof *to);
    return to + count;
}

void esp_iteration_moved(struct esp_iteration_copy *copy)
{
    copy->it.drafter = copy->drafter;
    copy->it.verifier = copy->verifier;
}

int esp_iteration_copy(struct esp_iteration_copy *copy, const struct esp_iteration *from)
{
    const struct esp_tree *tree = &from->tree;
    int verified = tree->order ? tree->verified : 0;
    int path = from->path ? from->path_length : 0;
    int committed = from->committed ? from->committed_count : 0;
    int status = reserve(copy, tree->count, verified + path + committed);
    if (status < 0)
        return status;
    copy->it = *from;
    if (tree->count > 0)
        memcpy(copy->nodes, tree->nodes, (size_t)tree->count * sizeof *copy->nodes);
    copy->it.tree.nodes = copy->nodes;
    copy->it.tree.order = copy->ids;
    copy->it.tree.verified = verified;
    copy->it.path = put(copy->ids, tree->order, verified);
    copy->it.path_length = path;
    copy->it.committed = put(copy->ids + verified, from->path, path);
    copy->it.committed_count = committed;
    put(copy->ids + verified + path, from->committed, committed);
    snprintf(copy->drafter, sizeof copy->drafter, "%s", from->drafter ? from->drafter : "");
    snprintf(copy->verifier, sizeof copy->verifier, "%s", from->verifier ? from->verifier : "");
    esp_iteration_moved(copy);
    return 0;
}

void esp_iteration_free(struct esp_iteration_copy *copy)
{
    free(copy->nodes);
    free(copy->ids);
    *copy = (struct esp_iteration_copy){.node_capacity = 0};
}
