/* grow.c - grows a tree with a layer rule (esp_draft_grow) or a path rule (esp_draft_paths).
 *
 * Both rules take one draft pass per depth. Nodes that are left out are recorded with the
 * reason.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/drafters/draft.h"

static int by_drawing_order(const void *a, const void *b)
{
    return ((const struct esp_candidate *)a)->at - ((const struct esp_candidate *)b)->at;
}

/* Returns how many children the rule gives to node `u`, whose confidence is already known. */
static int breadth_of(const struct esp_draft *d, const struct esp_layer_rule *rule, int32_t u)
{
    if (u == 0 && rule->draft_root)
        return 1;
    return rule->breadth(rule->drafter, &d->tree->tree.nodes[u]);
}

/* Writes the children that the rule gives to the nodes of a layer to d->candidates. Sets *total
 * to the number of these children and returns the number of children that are not cut. */
static int list_candidates(struct esp_draft *d, const struct esp_layer_rule *rule,
                           const int32_t *layer, int count, int *total)
{
    struct esp_candidate *c = d->candidates;
    int kept = 0, n = 0;
    for (int i = 0; i < count; i++) {
        const bool guess = layer[i] == 0 && rule->draft_root;
        const int first = n;
        n = esp_draft_list(d, layer[i], i * rule->most, breadth_of(d, rule, layer[i]), n);
        for (int j = first; j < n; j++) {
            c[j].taken = guess || !rule->cut || !(c[j].cumulative_log_q < rule->log_least);
            kept += c[j].taken;
        }
    }
    *total = n;
    return kept;
}

/* Adds the layer's likeliest children to the tree, as many as fit, and records the other
 * children as cut. Writes the added nodes to `added`; returns their number. */
static int add_layer(struct esp_draft *d, const struct esp_layer_rule *rule, int room,
                     const int32_t *layer, int count, int32_t *added)
{
    struct esp_candidate *c = d->candidates;
    int total, kept = list_candidates(d, rule, layer, count, &total), n = 0;
    bool tight = kept > room;
    if (tight) {
        esp_candidates_sort(c, total);
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
            bool low = rule->cut && c[i].cumulative_log_q < rule->log_least;
            esp_tree_add_cut(d->tree, c[i].parent, c[i].token, c[i].q,
                             low ? ESP_REASON_THRESHOLD : ESP_REASON_BUDGET);
        }
    }
    return n;
}

/* Shortens a list to its `most` likeliest nodes, in their old order. Of equally likely nodes,
 * the earlier nodes are kept. Returns the new count. */
static int keep_likeliest(const struct esp_draft *d, int32_t *nodes, int count, int most)
{
    struct esp_candidate *c = d->candidates;
    for (int i = 0; i < count; i++)
        c[i] = (struct esp_candidate){
            .token = nodes[i],
            .at = i,
            .cumulative_log_q = d->tree->tree.nodes[nodes[i]].cumulative_log_q,
        };
    if (count <= most)
        return count;
    esp_candidates_sort(c, count);
    qsort(c, (size_t)most, sizeof *c, by_drawing_order);
    for (int i = 0; i < most; i++)
        nodes[i] = c[i].token;
    return most;
}

/* Draws the children of a layer, in rounds. Returns the number of nodes in `added`, or a
 * negative status; adds the number of draws to *used. The parents that get a child in a round
 * are chosen before the round is drawn. */
static int draw_layer(struct esp_draft *d, const struct esp_layer_rule *rule, int room,
                      const int32_t *layer, int count, int32_t *added, int *used)
{
    int32_t *parents = d->work->end;
    int n = 0;
    for (int round = 0; room > 0; round++) {
        int wanted = 0;
        for (int i = 0; i < count; i++) /* the breadth is known only after the first draw */
            if (round == 0 || round < breadth_of(d, rule, layer[i]))
                parents[wanted++] = layer[i];
        if (wanted == 0)
            break;
        wanted = keep_likeliest(d, parents, wanted, room);
        int status = esp_draft_draw(d, parents, wanted, ESP_DRAW_SWOR, added + n);
        if (status < 0)
            return status;
        room -= wanted;
        *used += wanted;
        for (int i = n, end = n + wanted; i < end; i++)
            if (added[i] >= 0)
                added[n++] = added[i];
    }
    return n;
}

static bool may_expand(struct esp_draft *d, const struct esp_layer_rule *rule, int32_t u)
{
    struct esp_node *node = &d->tree->tree.nodes[u];
    enum esp_reason reason = ESP_REASON_DEPTH;
    bool allowed = node->depth < d->max_depth;
    if (allowed && node->cumulative_log_q < rule->log_least) {
        reason = ESP_REASON_THRESHOLD;
        allowed = false;
    }
    allowed =
        allowed && ((u == 0 && rule->draft_root) || rule->expand(rule->drafter, node, &reason));
    if (!allowed)
        node->reason = (uint8_t)reason;
    return allowed;
}

int esp_draft_grow(struct esp_draft *d, const struct esp_layer_rule *rule)
{
    int32_t *layer = d->work->frontier;
    const bool sampled = d->draws == ESP_DRAW_SWOR;
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
        int32_t *added = d->work->next;
        int status = esp_draft_expand(d, layer, wanted, sampled ? 0 : rule->most);
        if (status < 0)
            return status;
        count = sampled ? draw_layer(d, rule, budget - used, layer, wanted, added, &used)
                        : add_layer(d, rule, budget - used, layer, wanted, added);
        if (count < 0)
            return count;
        memcpy(layer, added, (size_t)count * sizeof *layer);
        used += sampled ? 0 : count;
        esp_draft_layer_done(d);
    }
    for (int i = 0; used >= budget && i < count; i++)
        d->tree->tree.nodes[layer[i]].reason = ESP_REASON_BUDGET;
    return ESP_OK;
}

/* ------------------------------------------------------------------ independent paths */

/* Lists the parents of the next draws. These are the last nodes of the paths that continue,
 * each node `width` times, until the tree is full. In the last node of every other path, stores
 * why the path ends. */
static int plan_draws(struct esp_draft *d, const struct esp_path_rule *rule, const int32_t *end,
                      int paths, int level, int room, int32_t *parents)
{
    int width = level < rule->levels ? rule->width[level] : 0, n = 0;
    for (int i = 0; i < paths; i++) {
        struct esp_node *node = &d->tree->tree.nodes[end[i]];
        if (end[i] > 0 && node->q < rule->least_q)
            node->reason = ESP_REASON_CONFIDENCE;
        else if (width == 0 || node->depth >= d->max_depth)
            node->reason = ESP_REASON_DEPTH;
        else if (n == room)
            node->reason = ESP_REASON_BUDGET;
        else
            for (int j = 0; j < width && n < room; j++)
                parents[n++] = end[i];
    }
    return n;
}

/* Lists each parent once, in the given order. Returns the number of listed parents. */
static int list_once(struct esp_draft *d, const int32_t *parents, int count, int32_t *nodes)
{
    bool *listed = d->work->listed;
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!listed[parents[i]])
            nodes[n++] = parents[i];
        listed[parents[i]] = true;
    }
    for (int i = 0; i < n; i++) {
        listed[nodes[i]] = false;
        d->tree->tree.nodes[nodes[i]].reason = ESP_REASON_NONE;
    }
    return n;
}

static int draw_paths(struct esp_draft *d, const struct esp_path_rule *rule)
{
    int32_t *end = d->work->end, *parents = d->work->next;
    int paths = 1, room = d->tree->room;
    end[0] = 0;
    for (int level = 0;; level++) {
        int draws = plan_draws(d, rule, end, paths, level, room, parents);
        if (draws == 0)
            return ESP_OK;
        int nodes = list_once(d, parents, draws, d->work->frontier);
        /* esp_draft_expand_root() may have expanded the root already. */
        const bool expanded = level == 0 && d->expanded > 0;
        int status = expanded ? (int)ESP_OK : esp_draft_expand(d, d->work->frontier, nodes, 0);
        if (status == ESP_OK)
            status = esp_draft_draw(d, parents, draws, ESP_DRAW_IID, end);
        if (status < 0)
            return status;
        room -= draws;
        paths = 0;
        for (int i = 0; i < draws; i++)
            if (end[i] >= 0)
                end[paths++] = end[i];
        esp_draft_layer_done(d);
    }
}

/* ------------------------------------------------------------------ likeliest tokens */

static bool path_goes_on(const void *drafter, const struct esp_node *node,
                         enum esp_reason *reason)
{
    const struct esp_path_rule *rule = drafter;
    bool unsure = node->parent >= 0 && node->q < rule->least_q;
    *reason = unsure ? ESP_REASON_CONFIDENCE : ESP_REASON_DEPTH;
    return !unsure && node->depth < rule->levels;
}

static int path_width(const void *drafter, const struct esp_node *node)
{
    return ((const struct esp_path_rule *)drafter)->width[node->depth];
}

int esp_draft_paths(struct esp_draft *d, const struct esp_path_rule *rule)
{
    struct esp_layer_rule likeliest = {
        .drafter = rule,
        .expand = path_goes_on,
        .breadth = path_width,
        .most = 1,
        .budget = ESP_MAX_NODES,
        .log_least = -INFINITY,
    };
    for (int i = 0; i < rule->levels; i++)
        likeliest.most = rule->width[i] > likeliest.most ? rule->width[i] : likeliest.most;
    return d->draws == ESP_DRAW_IID ? draw_paths(d, rule) : esp_draft_grow(d, &likeliest);
}
