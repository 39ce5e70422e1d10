/* glyphs.c - lists the three glyph sets; see glyphs.h. */
#include "viz/glyphs.h"

#include <stddef.h>
#include <string.h>

#define BOX                                                                                    \
    {                                                                                          \
        " ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼",        \
    }

/* The ASCII glyphs that two of the sets share. */
#define ASCII                                                                                  \
    .eighths = {" ", " ", " ", " ", "=", "=", "=", "=", "="},                                  \
    .sparks = {"_", "_", ".", ".", "-", "-", "=", "="}, .shades = {"#", "=", "-"},             \
    .accepted = "*", .rejected = "x", .arrow = ">", .more = {"^", "v", "<", ">"},              \
    .ellipsis = "~", .running = "*", .cursor = "_"

const struct esp_glyphs esp_glyphs_full = {
    .name = "full",
    .lines = BOX,
    .dash = "┄",
    .eighths = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"},
    .sparks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
    .shades = {"█", "▒", "░"},
    .halves = {" ", "▀", "▄", "█"},
    .accepted = "✓",
    .rejected = "✗",
    .arrow = "→",
    .more = {"↑", "↓", "←", "→"},
    .ellipsis = "…",
    .dot = "·",
    .running = "●",
    .cursor = "▁",
};

const struct esp_glyphs esp_glyphs_plain = {
    .name = "plain",
    .lines = BOX,
    .dash = "·",
    .dot = "·",
    ASCII,
};

const struct esp_glyphs esp_glyphs_ascii = {
    .name = "ascii",
    .lines = {" ", "|", "|", "|", "-", "+", "+", "+", "-", "+", "+", "+", "-", "+", "+", "+"},
    .dash = ".",
    .dot = ".",
    ASCII,
};

const struct esp_glyphs *esp_glyphs_find(const char *name)
{
    static const struct esp_glyphs *const sets[] = {&esp_glyphs_full, &esp_glyphs_plain,
                                                    &esp_glyphs_ascii};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i]->name, name) == 0)
            return sets[i];
    return NULL;
}
