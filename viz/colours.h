/* colours.h - the colours of pictures and charts, light and dark.
 *
 * The colours have the hues of the terminal's light and dark themes, so slides look like
 * screens. No meaning depends on colour alone: accepted nodes also have a thick frame and a
 * check mark, cut nodes are dashed, and so on.
 */
#ifndef ESP_COLOURS_H
#define ESP_COLOURS_H

struct esp_colours {
    const char *name;
    const char *background, *text, *label, *edge, *frame; /* #rrggbb */
    const char *number;                                   /* colour of text on a shaded node */
    const char *accepted, *rejected, *cut, *bonus;
    const char *stage[6]; /* bars of stages: draft, flatten, verify, select, commit, adapt */
    const char *course;   /* a line in a chart */
    int plain, sure;      /* 0xRRGGBB: fill of a node with confidence 0, and with 1 */
};

/* Returns the set of colours with this name, or NULL. */
const struct esp_colours *esp_colours_find(const char *name);

/* Returns the colour of a node's frame for this verdict (enum esp_verdict). */
const char *esp_colours_verdict(const struct esp_colours *colours, int verdict);

/* Writes the fill colour of a node with this confidence; NaN is treated as 0. */
void esp_colours_shade(const struct esp_colours *colours, double confidence, char colour[8]);

#endif
