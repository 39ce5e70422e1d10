/* glyphs.h - the characters of drawings, in three sets.
 *
 * full: box drawing, block eighths and check marks, for terminals with a modern font.
 * plain: only box drawing, for fonts without the other characters (the Linux console).
 * ascii: only bytes up to 127.
 * Every glyph is one cell wide.
 */
#ifndef ESP_GLYPHS_H
#define ESP_GLYPHS_H

/* Directions in which a cell of a frame is joined to its neighbours. */
enum { ESP_LINE_UP = 1, ESP_LINE_DOWN = 2, ESP_LINE_LEFT = 4, ESP_LINE_RIGHT = 8 };

struct esp_glyphs {
    const char *name;
    const char *lines[16];  /* indexed by a sum of ESP_LINE_*; [0] is blank */
    const char *dash;       /* horizontal line to a node that was cut */
    const char *eighths[9]; /* a cell filled from the left by 0/8..8/8 */
    const char *sparks[8];  /* a cell filled from below by 1/8..8/8 */
    const char *shades[3];  /* a full cell in the first, second, third part of a stacked bar */
    /* A cell in which no half, the upper half, the lower half or both halves are filled. If [1]
     * is NULL, the set has neither half blocks nor braille. */
    const char *halves[4];
    const char *accepted, *rejected;
    const char *arrow, *ellipsis, *dot, *running, *cursor;
    const char *more[4]; /* signs that more follows above, below, to the left, to the right */
};

extern const struct esp_glyphs esp_glyphs_full, esp_glyphs_plain, esp_glyphs_ascii;

/* Returns the glyph set with this name, or NULL. */
const struct esp_glyphs *esp_glyphs_find(const char *name);

#endif
