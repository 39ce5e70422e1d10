/* theme.h - themes: the appearance of each style, read from themes/NAME.theme.
 *
 * A theme is a text file with one style per line:
 *
 *     # comment
 *     accepted = bold #6fdc8c
 *     selection = black on bright-yellow
 *     text =
 *
 * The right side gives, in any order:
 *
 * - attributes: bold, dim, underline, reverse, italic, or plain for none;
 * - the foreground colour;
 * - the background colour, after `on`.
 *
 * A colour is #RRGGBB or the name of one of the terminal's 16 colours. A missing colour is the
 * terminal's default. Without attributes, a style keeps its default ones (style.h). A style
 * that the theme does not list looks like `text`.
 */
#ifndef ESP_THEME_H
#define ESP_THEME_H

#include <stddef.h>
#include <stdint.h>

#include "viz/style.h"

enum {
    ESP_COLOUR_DEFAULT = -1,
    ESP_COLOUR_NAMED = 0x1000000, /* plus 0 to 15: a named colour; smaller values: 0xRRGGBB */
};

struct esp_appearance {
    int32_t foreground, background;
    int attributes; /* enum esp_attribute */
};

struct esp_theme {
    char name[32];
    struct esp_appearance style[ESP_STYLE_COUNT];
};

/* Makes the theme that uses only the terminal's default colours: styles differ by their
 * attributes. */
void esp_theme_plain(struct esp_theme *theme);

/* Reads a theme. A name with a '/' is a path. Other names are looked up in
 * $XDG_CONFIG_HOME/espalier/themes/NAME.theme, then in the program's themes. Returns 0, or
 * ESP_E_FILE or ESP_E_FORMAT with a message that names the file and the line; then the theme
 * is unchanged. */
int esp_theme_load(struct esp_theme *theme, const char *name, char *err, size_t errlen);

/* Writes the name of theme `index` among the program's and the user's. Returns 0, or
 * ESP_E_FILE past the end. */
int esp_theme_list(int index, char *name, size_t size);

/* The number of the nearest colour on a terminal with `colours` colours (8, 16, 256 or 2^24).
 * -1 stays -1; with fewer than 8 colours, every colour becomes -1. */
int esp_colour_near(int32_t colour, int colours);
/* The appearance of a style on a terminal with `colours` colours, given by colour numbers.
 * Three rules keep it readable:
 *
 * - On the terminal's own background, a grey becomes the default colour, never black or
 *   white.
 * - A style that loses a colour also gets its default attributes (style.h), so that it still
 *   differs from others.
 * - A foreground that would equal its background becomes the foreground of `text`. */
struct esp_appearance esp_appearance_near(const struct esp_theme *theme, int style,
                                          int colours);

#endif
