/* theme.c - how each style looks; see theme.h. */
#include "theme.h"

#include <stdio.h>

void esp_theme_plain(struct esp_theme *theme)
{
    snprintf(theme->name, sizeof theme->name, "mono");
    for (int i = 0; i < ESP_STYLE_COUNT; i++)
        theme->style[i] = (struct esp_appearance){-1, -1, esp_style_attributes(i)};
}

/* ------------------------------------------------------------------ fewer colours */

static int distance(int32_t a, int32_t b)
{
    int red = ((a >> 16) & 255) - ((b >> 16) & 255), green = ((a >> 8) & 255) - ((b >> 8) & 255);
    int blue = (a & 255) - (b & 255);
    return 3 * red * red + 4 * green * green + 2 * blue * blue; /* the eye sees green best */
}

/* xterm's colours: 16 that the user may have changed, a cube of 6 x 6 x 6, 24 greys. */
static int32_t xterm_colour(int index)
{
    static const int32_t basic[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                      0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                      0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};
    static const int level[6] = {0, 95, 135, 175, 215, 255};
    if (index < 16)
        return basic[index];
    if (index < 232) {
        index -= 16;
        return level[index / 36] << 16 | level[index / 6 % 6] << 8 | level[index % 6];
    }
    int grey = 8 + 10 * (index - 232);
    return grey << 16 | grey << 8 | grey;
}

int esp_colour_near(int32_t rgb, int colours)
{
    if (rgb < 0 || colours < 8)
        return -1;
    if (colours >= 1 << 24)
        return rgb;
    int first = colours >= 256 ? 16 : 0, count = colours >= 256 ? 256 : colours >= 16 ? 16 : 8;
    int best = first;
    for (int i = first; i < count; i++)
        if (distance(rgb, xterm_colour(i)) < distance(rgb, xterm_colour(best)))
            best = i;
    return best;
}
