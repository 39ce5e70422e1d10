/* specinfer.c - a static tree: every node at depth i gets expansion[i] children (SpecInfer,
 * Miao 2024).
 *
 * The children are the likeliest tokens, or independent samples. Equal samples share a node.
 * The node counts its `copies` and gets the children of all copies.
 */
#include "engine/drafters/drafter.h"

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

/* Reads the widths from a text such as "1.1.3". Returns the number of depths, or 0 if the text
 * has a different form. */
static int widths(const struct esp_params *values, int width[ESP_MAX_LEVELS])
{
    const char *text = values->text;
    for (int levels = 0;;) {
        char *end;
        long children = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
        if (children < 1 || children > ESP_MAX_TOP || levels == DEEPEST ||
            (*end && *end != '.'))
            return 0;
        width[levels++] = (int)children;
        if (!*end)
            return levels;
        text = end + 1;
    }
}

static int check(const struct esp_params *values, char *err, size_t errlen)
{
    int width[ESP_MAX_LEVELS];
    const int levels = widths(values, width);
    int64_t layer = 1, nodes = 0;
    if (levels == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "specinfer: expansion takes numbers from 1 to %d separated by dots, "
                        "such as 1.1.3.1, not '%s'",
                        ESP_MAX_TOP, values->text);
    for (int i = 0; i < levels && nodes <= ESP_MAX_NODES; i++)
        nodes += layer *= width[i];
    if (nodes > ESP_MAX_NODES)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "specinfer: expansion %s makes a tree of more than %d nodes; use smaller "
            "numbers or fewer of them",
            values->text, ESP_MAX_NODES);
    return ESP_OK;
}

const struct esp_drafter_ops esp_drafter_specinfer = {
    .name = "specinfer",
    .summary = "a static tree with a given number of children at each depth",
    .source = "Miao et al. 2024",
    .differs = "one draft model grows the tree. SpecInfer can also merge the trees of several "
               "draft models. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_IID,
    .params = params,
    .check = check,
    .widths = widths,
};
