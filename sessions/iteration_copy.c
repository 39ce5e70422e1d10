/* iteration_copy.c - makes deep copies of iterations; see iteration_copy.h. */
#include "sessions/iteration_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/grow.h"

/* The array `ids` is allocated even if it is empty, so the pointer is never NULL. */
int esp_iteration_reserve(struct esp_iteration_copy *copy, int nodes, int ids)
{
    int status = esp_reserve(&copy->nodes, nodes, &copy->node_capacity, sizeof *copy->nodes);
    return status < 0 ? status
                      : esp_reserve(&copy->ids, ids + 1, &copy->id_capacity, sizeof *copy->ids);
}

int esp_iteration_reserve_scores(struct esp_iteration_copy *copy, int count)
{
    return esp_reserve(&copy->scores, count, &copy->score_capacity, sizeof *copy->scores);
}

/* Copies `count` ids to `to` and returns the address after them. */
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
    int status = esp_iteration_reserve(copy, tree->count, verified + path + committed);
    if (status == ESP_OK && from->scores)
        status = esp_iteration_reserve_scores(copy, committed);
    if (status < 0)
        return status;
    copy->it = *from;
    if (from->scores && committed > 0)
        memcpy(copy->scores, from->scores, (size_t)committed * sizeof *copy->scores);
    copy->it.scores = from->scores && committed > 0 ? copy->scores : NULL;
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
    free(copy->scores);
    *copy = (struct esp_iteration_copy){.node_capacity = 0};
}
