/* layers.c - stores differences between draft passes and applies them backwards; see layers.h.
 */
#include "sessions/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/grow.h"

int esp_layers_add(struct esp_layers *l, struct esp_tree_layer layer)
{
    if (esp_grow(&l->layers, l->count, &l->capacity, sizeof *l->layers) < 0)
        return ESP_E_MEMORY;
    l->layers[l->count++] = layer;
    return ESP_OK;
}

int esp_layers_change(struct esp_layers *l, struct esp_change change)
{
    if (esp_grow(&l->changes, l->change_count, &l->change_capacity, sizeof *l->changes) < 0)
        return ESP_E_MEMORY;
    l->changes[l->change_count++] = change;
    return ESP_OK;
}

static struct esp_growth growing(const struct esp_node *node)
{
    return (struct esp_growth){node->copies, node->confidence, node->verdict == ESP_CUT,
                               node->reason};
}

static bool same(struct esp_growth a, struct esp_growth b)
{
    return a.copies == b.copies && a.cut == b.cut && a.reason == b.reason &&
           memcmp(&a.confidence, &b.confidence, sizeof a.confidence) == 0;
}

void esp_layers_begin(struct esp_layers *l)
{
    l->count = l->change_count = l->last_count = 0;
}

/* Finds the nodes that have changed since the draft pass of the last layer. Stores the earlier
 * state of these nodes with that layer. Then copies the state of all nodes for the next
 * comparison. */
static int compare(struct esp_layers *l, const struct esp_tree *tree)
{
    const int before = l->change_count;
    int status = esp_grow(&l->last, tree->count, &l->last_capacity, sizeof *l->last);
    for (int i = 0; i < tree->count && status == ESP_OK; i++) {
        const struct esp_growth now = growing(&tree->nodes[i]);
        if (i < l->last_count && !same(l->last[i], now))
            status = esp_layers_change(l, (struct esp_change){i, l->last[i]});
        l->last[i] = now;
    }
    l->last_count = status == ESP_OK ? tree->count : 0;
    if (l->count > 0)
        l->layers[l->count - 1].changes = l->change_count - before;
    return status;
}

int esp_layers_note(struct esp_layers *l, const struct esp_event *event)
{
    const struct esp_iteration *it = event->iteration;
    if (l->count > 0 && it->draft_passes <= l->layers[l->count - 1].passes)
        esp_layers_begin(l); /* removes layers of the previous iteration, which has failed */
    int status = compare(l, &it->tree);
    if (status < 0)
        return status;
    return esp_layers_add(l, (struct esp_tree_layer){.time = event->time,
                                                     .nodes = it->tree.count,
                                                     .passes = it->draft_passes});
}

int esp_layers_finish(struct esp_layers *l, const struct esp_iteration *it)
{
    return compare(l, &it->tree);
}

void esp_layers_free(struct esp_layers *l)
{
    free(l->layers);
    free(l->changes);
    free(l->last);
    *l = (struct esp_layers){.count = 0};
}

/* ------------------------------------------------------------------ back in time */

static void undo_select(struct esp_tree *tree)
{
    for (int i = 0; i < tree->count; i++) {
        struct esp_node *node = &tree->nodes[i];
        node->p = node->u = node->acceptance = NAN;
        node->branching = node->acceptance_rate = node->ceiling = NAN;
        node->drawn = false;
        if (node->verdict != ESP_CUT)
            node->verdict = ESP_UNVISITED;
    }
}

/* Undoes the stages after `stage`, the last stage first. loop.c shows which fields each stage
 * sets. */
void esp_iteration_at_stage(struct esp_iteration *it, enum esp_stage stage)
{
    for (int undone = ESP_STAGES - 1; undone > (int)stage; undone--)
        it->seconds[undone] = 0;
    if (stage < ESP_STAGE_ADAPT)
        for (int i = 0; i < it->gauge_count; i++)
            it->gauges[i].after = it->gauges[i].before;
    if (stage < ESP_STAGE_COMMIT) {
        it->committed = NULL;
        it->committed_count = it->target_passes = 0;
    }
    if (stage < ESP_STAGE_SELECT) {
        undo_select(&it->tree);
        it->path = NULL;
        it->path_length = it->bonus = 0;
        it->bonus_u = 0;
    }
    if (stage < ESP_STAGE_VERIFY)
        it->state_read = it->state_written = 0;
    if (stage < ESP_STAGE_FLATTEN)
        it->tree.verified = it->mask_blocks = 0;
}

void esp_iteration_at_layer(struct esp_iteration *it, const struct esp_layers *l, int layer)
{
    int end = l->change_count;
    esp_iteration_at_stage(it, ESP_STAGE_DRAFT);
    for (int i = l->count - 1; i >= layer; i--) {
        for (int j = 0; j < l->layers[i].changes; j++) {
            const struct esp_change *change = &l->changes[end - 1 - j];
            struct esp_node *node = &it->tree.nodes[change->node];
            node->copies = change->was.copies;
            node->confidence = change->was.confidence;
            node->verdict = change->was.cut ? ESP_CUT : ESP_UNVISITED;
            node->reason = change->was.reason;
        }
        end -= l->layers[i].changes;
    }
    it->tree.count = l->layers[layer].nodes;
    it->draft_passes = l->layers[layer].passes;
    it->deepest = 0;
    it->seconds[ESP_STAGE_DRAFT] = 0;
}
