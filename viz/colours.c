/* colours.c - lists two sets of colours; see colours.h. */
#include "viz/colours.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/espalier_event.h"

static const struct esp_colours sets[] = {
    {
        .name = "light",
        .background = "#ffffff",
        .text = "#1d2733",
        .label = "#5b6676",
        .number = "#46505f",
        .edge = "#9aa4b2",
        .frame = "#8792a2",
        .accepted = "#1a7f3c",
        .rejected = "#a8432f",
        .cut = "#78818f",
        .bonus = "#7a4fa8",
        .stage = {"#b15c00", "#8792a2", "#2f6fb0", "#7a4fa8", "#1a7f3c", "#646d7b"},
        .course = "#2f6fb0",
        .plain = 0xffffff,
        .sure = 0x9fc8f0,
    },
    {
        .name = "dark",
        .background = "#10151d",
        .text = "#eef2f8",
        .label = "#9aa6b8",
        .number = "#c3cddb",
        .edge = "#5f6d84",
        .frame = "#6b7990",
        .accepted = "#7fd99a",
        .rejected = "#e9957f",
        .cut = "#8c98ab",
        .bonus = "#c9b0ea",
        .stage = {"#e8a35c", "#6b7990", "#6aa9e6", "#c9b0ea", "#7fd99a", "#8c98ab"},
        .course = "#6aa9e6",
        .plain = 0x161d27,
        .sure = 0x2f6398,
    },
};

const struct esp_colours *esp_colours_find(const char *name)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return NULL;
}

const char *esp_colours_verdict(const struct esp_colours *colours, int verdict)
{
    const char *const of[] = {[ESP_UNVISITED] = colours->frame,
                              [ESP_ACCEPTED] = colours->accepted,
                              [ESP_REJECTED] = colours->rejected,
                              [ESP_CUT] = colours->cut};
    return of[verdict & 3];
}

void esp_colours_shade(const struct esp_colours *colours, double confidence, char colour[8])
{
    double share = confidence > 0 ? confidence < 1 ? confidence : 1 : 0;
    unsigned mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        int from = colours->plain >> shift & 255, to = colours->sure >> shift & 255;
        mixed = mixed << 8 |
                (unsigned)(from + (int)(share * (to - from) + (to > from ? 0.5 : -0.5)));
    }
    snprintf(colour, 8, "#%06x", mixed & 0xffffff);
}
