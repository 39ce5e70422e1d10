/* actions.c - converts actions of the selector to numbers, trees and names; see actions.h. */
#include "engine/selector/actions.h"

#include <stdio.h>

enum { LENGTHS = ESP_ACTION_LENGTH + 1 };

struct esp_action esp_action_at(int index)
{
    return (struct esp_action){index / (LENGTHS * LENGTHS) + 1, index / LENGTHS % LENGTHS,
                               index % LENGTHS};
}

int esp_action_index(struct esp_action a)
{
    return ((a.paths - 1) * LENGTHS + a.stem) * LENGTHS + a.branch;
}

int esp_action_same(struct esp_action a)
{
    const int length = a.stem + a.branch;
    if (a.paths > 1 && a.branch > 0)
        return esp_action_index(a);
    const int stem = length < ESP_ACTION_LENGTH ? length : ESP_ACTION_LENGTH;
    return esp_action_index((struct esp_action){1, stem, length - stem});
}

bool esp_action_canonical(int index)
{
    return esp_action_same(esp_action_at(index)) == index;
}

int esp_action_rows(struct esp_action a)
{
    return 1 + a.stem + a.paths * a.branch;
}

int esp_action_depth(struct esp_action a)
{
    return a.stem + a.branch;
}

void esp_action_print(struct esp_action a, char *text, size_t size)
{
    if (esp_action_depth(a) == 0)
        snprintf(text, size, "no draft");
    else if (a.paths == 1 || a.branch == 0)
        snprintf(text, size, "chain of %d", esp_action_depth(a));
    else
        snprintf(text, size, "K %d, L1 %d, L2 %d", a.paths, a.stem, a.branch);
}
