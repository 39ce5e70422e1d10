/* theme.h - how each style looks. */
#ifndef ESP_THEME_H
#define ESP_THEME_H

#include <stdint.h>

#include "style.h"

struct esp_appearance {
    int32_t foreground, background; /* 0xRRGGBB, or -1: the terminal's own */
    int attributes;                 /* enum esp_attribute */
};

struct esp_theme {
    char name[32];
    struct esp_appearance style[ESP_STYLE_COUNT];
};

/* The terminal's own colours; styles differ by their attributes only. */
void esp_theme_plain(struct esp_theme *theme);

/* The colour of a terminal that has `colours` of them (8, 16, 256 or 2^24) that comes nearest to
 * 0xRRGGBB; -1 stays -1. */
int esp_colour_near(int32_t rgb, int colours);

#endif
