/* theme.h - a theme describes how each style looks. It is read from themes/NAME.theme.
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
 * A colour is #RRGGBB or the name of one of the terminal's 16 colours. If a colour is missing,
 * the terminal's default is used. If a line has no attributes, the style has its default
 * attributes (style.h). A style that the theme does not list looks like `text`.
 */
#ifndef ESP_THEME_H
#define ESP_THEME_H

#include <stddef.h>
#include <stdint.h>

#include "viz/style.h"

enum {
    ESP_COLOUR_DEFAULT = -1,
    ESP_COLOUR_NAMED = 0x1000000, /* this + 0 to 15: a named colour; below this: 0xRRGGBB */
};

struct esp_appearance {
    int32_t foreground, background;
    int attributes; /* enum esp_attribute */
};

struct esp_theme {
    char name[32];
    struct esp_appearance style[ESP_STYLE_COUNT];
};

/* Makes a theme that uses only the terminal's default colours. In this theme, styles differ
 * only by their attributes. */
void esp_theme_plain(struct esp_theme *theme);

/* Reads a theme. A name with a '/' is a path. Any other name is looked up as
 * $XDG_CONFIG_HOME/espalier/themes/NAME.theme, and then among the themes that come with the
 * program. Returns 0, or ESP_E_FILE or ESP_E_FORMAT with a message that names the file and the
 * line. After an error the theme is unchanged. */
int esp_theme_load(struct esp_theme *theme, const char *name, char *err, size_t errlen);

/* Writes the name of theme `index` in the list of all themes, including the user's themes.
 * Returns 0, or ESP_E_FILE past the end. */
int esp_theme_list(int index, char *name, size_t size);

/* Returns the number of the nearest colour on a terminal with `colours` colours (8, 16, 256 or
 * 2^24). Returns -1 for the colour -1, and if `colours` is below 8. */
int esp_colour_near(int32_t colour, int colours);
/* Returns how a style looks on a terminal with `colours` colours. The colours in the result are
 * numbers. Three rules make sure that the style is readable:
 *
 * - On the terminal's own background, a grey becomes the default colour, never black or white.
 * - A style that loses a colour also gets its default attributes (style.h). Then it still
 *   differs from other styles.
 * - If the foreground would equal the background, the foreground of `text` is used. */
struct esp_appearance esp_appearance_near(const struct esp_theme *theme, int style,
                                          int colours);

#endif
