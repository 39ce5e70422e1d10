/* specinfer.c - a static tree: every node at depth i gets expansion[i] children (SpecInfer,
 * Miao 2024).
 *
 * The children are the likeliest tokens, or independent samples. Equal samples share a node
 * with as many copies, and that node gets the children of all of them.
 */
#include "engine/drafters/drafter.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/status.h"

enum { EXPANSION, DRAWS };

enum { DEEPEST = ESP_PARAM_TEXT / 2 };

static const struct esp_param params[] = {
    [EXPANSION] = {"expansion", ESP_TEXT, .text = "1.1.3.1.1.1.1.1",
                   .help = "children of a node at depth 0, 1, 2, ..."},
    [DRAWS] = ESP_PARAM_DRAWS("iid"),
    {0},
};

struct expansion {
    int width[DEEPEST];
    int levels;
};

/* Reads "1.1.3". Returns the number of depths, or 0 if the text has another form. */
static int read_expansion(const char *text, struct expansion *e)
{
    e->levels = 0;
    for (;;) {
        char *end;
        long width = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
        if (width < 1 || width > ESP_MAX_TOP || e->levels == DEEPEST || (*end && *end != '.'))
            return e->levels = 0;
        e->width[e->levels++] = (int)width;
        if (!*end)
            return e->levels;
        text = end + 1;
    }
}

static int check(const struct esp_params *values, char *err, size_t errlen)
{
    struct expansion e;
    int64_t layer = 1, nodes = 0;
    if (read_expansion(values->text, &e) == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "specinfer: expansion takes numbers from 1 to %d separated by dots, "
                        "such as 1.1.3.1, not '%s'",
                        ESP_MAX_TOP, values->text);
    for (int i = 0; i < e.levels && nodes <= ESP_MAX_NODES; i++)
        nodes += layer *= e.width[i];
    if (nodes > ESP_MAX_NODES)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "specinfer: expansion %s makes a tree of more than %d nodes; use smaller "
            "numbers or fewer of them",
            values->text, ESP_MAX_NODES);
    return ESP_OK;
}

static bool sampled(const struct esp_params *values, bool greedy)
{
    return esp_draws_sampled(esp_param(values, DRAWS), greedy);
}

static unsigned draws_with(const struct esp_params *values, bool greedy)
{
    return sampled(values, greedy) ? ESP_DRAW_IID : ESP_DRAW_TOPK;
}

static int widest(const struct expansion *e)
{
    int most = 1;
    for (int i = 0; i < e->levels; i++)
        most = e->width[i] > most ? e->width[i] : most;
    return most;
}

static bool single_path(const struct esp_params *values)
{
    struct expansion e;
    return read_expansion(values->text, &e) > 0 && widest(&e) == 1;
}

static bool expand(const void *drafter, const struct esp_node *node, enum esp_reason *reason)
{
    *reason = ESP_REASON_DEPTH;
    return node->depth < ((const struct expansion *)drafter)->levels;
}

static int breadth(const void *drafter, const struct esp_node *node)
{
    return ((const struct expansion *)drafter)->width[node->depth];
}

static int draft(struct esp_draft *d)
{
    struct expansion e;
    read_expansion(d->params->text, &e);
    struct esp_path_rule paths = {.width = e.width, .levels = e.levels};
    struct esp_layer_rule likeliest = {
        .drafter = &e,
        .expand = expand,
        .breadth = breadth,
        .most = widest(&e),
        .budget = ESP_MAX_NODES,
        .log_least = -INFINITY,
    };
    return sampled(d->params, d->greedy) ? esp_draft_paths(d, &paths)
                                         : esp_draft_grow(d, &likeliest);
}

const struct esp_drafter_ops esp_drafter_specinfer = {
    .name = "specinfer",
    .summary = "a static tree with a given number of children at each depth",
    .source = "Miao et al. 2024",
    .differs = "one draft model grows the tree; SpecInfer can also merge trees of several"
               "; " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_IID,
    .needs_model = true,
    .params = params,
    .check = check,
    .draws_with = draws_with,
    .single_path = single_path,
    .draft = draft,
};
