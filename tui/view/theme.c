/* theme.c - reads themes. For terminals with few colours, finds the nearest colour that they
 * have; see theme.h. */
#include "tui/view/theme.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/status.h"
#include "tui/model/line_file.h"
#include "engine/support/suggestion.h"
#include "engine/support/paths.h"

void esp_theme_plain(struct esp_theme *theme)
{
    snprintf(theme->name, sizeof theme->name, "mono");
    for (int i = 0; i < ESP_STYLE_COUNT; i++)
        theme->style[i] = (struct esp_appearance){ESP_COLOUR_DEFAULT, ESP_COLOUR_DEFAULT,
                                                  esp_style_attributes(i)};
}

/* ------------------------------------------------------------------ reading */

static bool read_colour(const char *word, int32_t *colour)
{
    static const char *const names[] = {"black", "red",     "green", "yellow",
                                        "blue",  "magenta", "cyan",  "white"};
    int bright = strncmp(word, "bright-", 7) == 0 ? 8 : 0;
    if (strcmp(word, "default") == 0) {
        *colour = ESP_COLOUR_DEFAULT;
        return true;
    }
    if (word[0] == '#') {
        char *end;
        *colour = (int32_t)strtol(word + 1, &end, 16);
        return strlen(word) == 7 && *end == '\0' && strspn(word + 1, "+-") == 0;
    }
    for (int i = 0; i < 8; i++)
        if (strcmp(word + (bright ? 7 : 0), names[i]) == 0) {
            *colour = ESP_COLOUR_NAMED + bright + i;
            return true;
        }
    return false;
}

static int attribute(const char *word)
{
    static const struct {
        const char *name;
        int attribute;
    } names[] = {{"plain", 0},
                 {"bold", ESP_BOLD},
                 {"dim", ESP_DIM},
                 {"underline", ESP_UNDERLINE},
                 {"reverse", ESP_REVERSE},
                 {"italic", ESP_ITALIC}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, word) == 0)
            return names[i].attribute;
    return -1;
}

/* Reads the right side of a line. Returns the first invalid word, or NULL. */
static const char *read_appearance(char *words, struct esp_appearance *look)
{
    char *rest = NULL;
    bool behind = false, has_attributes = false;
    for (char *word = strtok_r(words, " \t", &rest); word;
         word = strtok_r(NULL, " \t", &rest)) {
        int named = attribute(word);
        if (strcmp(word, "on") == 0) {
            behind = true;
        } else if (named >= 0) {
            look->attributes = has_attributes ? look->attributes | named : named;
            has_attributes = true;
        } else if (!read_colour(word, behind ? &look->background : &look->foreground)) {
            return word;
        }
    }
    return NULL;
}

static int read_line(void *user, struct esp_file_line *line)
{
    struct esp_theme *theme = user;
    if (!strchr(line->text, '='))
        return esp_wrong_line(line, "write 'style = colour', not '%.60s'", line->text);
    const char *name = esp_take_part(&line->text, "=");
    const int style = esp_style_find(name);
    if (style < 0)
        return esp_wrong_line(line, "there is no style '%.40s'", name);
    const char *wrong = read_appearance(line->text, &theme->style[style]);
    return wrong ? esp_wrong_line(line,
                                  "'%.40s' is neither a colour (#RRGGBB or a name like "
                                  "bright-red) nor an attribute",
                                  wrong)
                 : 0;
}

/* Gives the colour of the style `text` to each style that has no colour. */
static void inherit(struct esp_theme *theme)
{
    const struct esp_appearance *text = &theme->style[ESP_STYLE_TEXT];
    for (int i = 0; i < ESP_STYLE_COUNT; i++) {
        struct esp_appearance *look = &theme->style[i];
        if (look->foreground == ESP_COLOUR_DEFAULT)
            look->foreground = text->foreground;
        if (look->background == ESP_COLOUR_DEFAULT)
            look->background = text->background;
    }
}

/* ------------------------------------------------------------------ finding */

/* Finds the path of the user's theme with this name. If there is none, finds the theme that
 * comes with the program. */
static int find_by_name(const char *name, char *path, size_t size)
{
    char folder[512], file_name[64];
    snprintf(file_name, sizeof file_name, "%.50s.theme", name);
    if (esp_user_path(folder, sizeof folder, ESP_USER_CONFIG, "themes") == 0) {
        snprintf(path, size, "%s/%s", folder, file_name);
        if (access(path, F_OK) == 0)
            return 0;
    }
    return esp_find_data(path, size, "themes", file_name);
}

static int refuse_name(const char *name, char *err, size_t errlen)
{
    struct esp_suggestion guess;
    char theme[64], meant[96];
    esp_suggestion_begin(&guess, name, strlen(name));
    for (int i = 0; esp_theme_list(i, theme, sizeof theme) == 0; i++)
        esp_suggestion_try(&guess, theme);
    return esp_fail(err, errlen, ESP_E_FILE,
                    "there is no theme '%.60s'%s; espalier list themes lists them", name,
                    esp_suggestion_text(&guess, meant));
}

int esp_theme_load(struct esp_theme *theme, const char *name, char *err, size_t errlen)
{
    char path[640];
    struct esp_theme read;
    const char *slash = strrchr(name, '/');
    snprintf(path, sizeof path, "%s", name);
    if (!slash && find_by_name(name, path, sizeof path) < 0)
        return refuse_name(name, err, errlen);
    esp_theme_plain(&read);
    int status = esp_line_file_read(path, read_line, &read, err, errlen);
    if (status < 0)
        return status;
    inherit(&read);
    *theme = read;
    snprintf(theme->name, sizeof theme->name, "%.31s", slash ? slash + 1 : name);
    return 0;
}

/* Lists the themes that come with the program first. Themes of the user with other names
 * follow. */
int esp_theme_list(int index, char *name, size_t size)
{
    char folder[512], file_name[300], path[640];
    int count = 0;
    while (esp_list_data("themes", count, name, size) == 0)
        if (count++ == index)
            return 0;
    if (esp_user_path(folder, sizeof folder, ESP_USER_CONFIG, "themes") < 0)
        return ESP_E_FILE;
    for (int i = 0; esp_list_folder(folder, ".theme", i, name, size) == 0; i++) {
        snprintf(file_name, sizeof file_name, "%s.theme", name);
        if (esp_find_data(path, sizeof path, "themes", file_name) < 0 && count++ == index)
            return 0;
    }
    return ESP_E_FILE;
}

/* ------------------------------------------------------------------ fewer colours */

static int distance(int32_t a, int32_t b)
{
    int red = ((a >> 16) & 255) - ((b >> 16) & 255),
        green = ((a >> 8) & 255) - ((b >> 8) & 255);
    int blue = (a & 255) - (b & 255);
    return 3 * red * red + 4 * green * green + 2 * blue * blue; /* the eye sees green best */
}

/* Returns the RGB value of one of xterm's colours 16 to 255. They are a cube of 6 x 6 x 6
 * colours, followed by 24 greys. */
static int32_t xterm_colour(int index)
{
    static const int level[6] = {0, 95, 135, 175, 215, 255};
    if (index < 232) {
        index -= 16;
        return level[index / 36] << 16 | level[index / 6 % 6] << 8 | level[index % 6];
    }
    int grey = 8 + 10 * (index - 232);
    return grey << 16 | grey << 8 | grey;
}

static int nearest_of_256(int32_t rgb)
{
    int best = 16;
    for (int i = 16; i < 256; i++)
        if (distance(rgb, xterm_colour(i)) < distance(rgb, xterm_colour(best)))
            best = i;
    return best;
}

/* Returns the terminal's colour that has the same hue. Ignores shades, because the user can
 * change the shades of the 8 or 16 colours. In the number of a colour, red is 1, green is 2 and
 * blue is 4; bright adds 8. */
static int nearest_of_16(int32_t rgb, int colours)
{
    enum { GREY = 40 /* in a grey, red, green and blue differ by less than this */ };
    const int part[3] = {rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255};
    int least = 255, most = 0, hue = 0;
    for (int i = 0; i < 3; i++) {
        least = part[i] < least ? part[i] : least;
        most = part[i] > most ? part[i] : most;
    }
    if (most - least < GREY && colours < 16)
        return most + least < 256 ? 0 : 7;
    if (most - least < GREY)
        return most < 64 ? 0 : most < 176 ? 8 : most < 240 ? 7 : 15;
    for (int i = 0; i < 3; i++)
        if (2 * (part[i] - least) >= most - least)
            hue |= 1 << i;
    return hue + (colours >= 16 && most >= 208 ? 8 : 0);
}

int esp_colour_near(int32_t rgb, int colours)
{
    if (rgb < 0 || colours < 8)
        return -1;
    if (rgb >= ESP_COLOUR_NAMED)
        return colours >= 16 ? rgb - ESP_COLOUR_NAMED : (rgb - ESP_COLOUR_NAMED) % 8;
    if (colours >= 1 << 24)
        return rgb < 8 ? 16 : rgb; /* with 2^24 colours, 0 to 7 are named colours */
    return colours >= 256 ? nearest_of_256(rgb) : nearest_of_16(rgb, colours);
}

struct esp_appearance esp_appearance_near(const struct esp_theme *theme, int style, int colours)
{
    const struct esp_appearance *look = &theme->style[style],
                                *text = &theme->style[ESP_STYLE_TEXT];
    struct esp_appearance shown = {esp_colour_near(look->foreground, colours),
                                   esp_colour_near(look->background, colours),
                                   look->attributes};
    if (colours < 256 && shown.background < 0 && look->foreground < ESP_COLOUR_NAMED &&
        (shown.foreground == 0 || shown.foreground % 8 == 7))
        shown.foreground = -1;
    const int plain = esp_colour_near(text->foreground, colours);
    if (shown.foreground >= 0 && shown.foreground == shown.background)
        shown.foreground = plain;
    const bool lost = (look->foreground >= 0 && shown.foreground < 0) ||
                      (look->background >= 0 && shown.background < 0) ||
                      (look->foreground != text->foreground && shown.foreground == plain);
    if (lost && colours < 256)
        shown.attributes |= esp_style_attributes(style);
    return shown;
}
