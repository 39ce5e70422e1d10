/* palette.h - the colours of a picture of a tree, light and dark.
 *
 * Hues are those of the terminal's light and dark themes, so that a slide and a screen agree.
 * Nothing is told by colour alone: what was accepted also has a thick frame and a check mark,
 * what was cut is dashed, and so on.
 */
#ifndef ESP_PALETTE_H
#define ESP_PALETTE_H

struct esp_palette {
    const char *name;
    const char *background, *text, *label, *edge, *frame; /* #rrggbb */
    const char *accepted, *rejected, *cut, *bonus;
    int plain, sure; /* 0xRRGGBB: fill of a node with confidence 0 and 1 */
};

/* The palette of this name, or NULL. */
const struct esp_palette *esp_palette_find(const char *name);

/* Writes the fill of a node with this confidence; one that is not known counts as 0. */
void esp_palette_shade(const struct esp_palette *palette, double confidence, char colour[8]);

#endif
