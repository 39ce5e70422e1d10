/* theme.h - how each style looks: read from themes/NAME.theme.
 *
 * A theme is a text file with one style per line:
 *
 *     # comment
 *     accepted = bold #6fdc8c
 *     selection = black on bright-yellow
 *     text =
 *
 * On the right stand, in any order, attributes (bold dim underline reverse italic, or plain for
 * none), a colour, and after `on` the colour behind. A colour is #RRGGBB or one of the
 * terminal's own sixteen by name; what is not named is the terminal's default. Naming
 * attributes replaces those that the style has by itself (style.h); naming none keeps them. A
 * style that a theme leaves out looks like `text`.
 */
#ifndef ESP_THEME_H
#define ESP_THEME_H

#include <stddef.h>
#include <stdint.h>

#include "viz/style.h"

enum {
    ESP_COLOUR_DEFAULT = -1,
    ESP_COLOUR_NAMED = 0x1000000, /* plus 0..15: one of the terminal's own; below: 0xRRGGBB */
};

struct esp_appearance {
    int32_t foreground, background;
    int attributes; /* enum esp_attribute */
};

struct esp_theme {
    char name[32];
    struct esp_appearance style[ESP_STYLE_COUNT];
};

/* The terminal's own colours: styles differ by their attributes only. */
void esp_theme_plain(struct esp_theme *theme);

/* Reads a theme: a file of the user's ($XDG_CONFIG_HOME/espalier/themes/NAME.theme) or of the
 * program's, or, if the name holds a '/', that file. Returns 0; ESP_E_FILE or ESP_E_FORMAT with
 * a sentence that names file, line and what is wrong, and then the theme is as before. */
int esp_theme_load(struct esp_theme *theme, const char *name, char *err, size_t errlen);

/* The name of theme `index` of all that can be loaded by name; ESP_E_FILE past the end. */
int esp_theme_list(int index, char *name, size_t size);

/* The colour number of a terminal that has `colours` of them (8, 16, 256 or 2^24) that comes
 * nearest; -1 stays -1, and so does everything where there are fewer than 8. */
int esp_colour_near(int32_t colour, int colours);
/* How a style looks on such a terminal: numbers of colours, and attributes. On the terminal's
 * own background, a grey that would become black or white becomes the terminal's default
 * instead, as either of the two might be unreadable there. A style that loses a colour gets its
 * default attributes (style.h) in addition, so that it still differs from others. A colour that
 * would become that of its background becomes that of `text`. */
struct esp_appearance esp_appearance_near(const struct esp_theme *theme, int style,
                                          int colours);

#endif
