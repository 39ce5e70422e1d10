/* theme.c - reads themes, and finds colours for terminals that have fewer; see theme.h. */
#include "theme.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "espalier.h"
#include "paths.h"

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

/* Reads the right side of a line; returns the word that is wrong, or NULL. */
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

static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    for (size_t end = strlen(text); end > 0 && strchr(" \t\r\n", text[end - 1]);)
        text[--end] = '\0';
    return text;
}

static int read_line(struct esp_theme *theme, char *line, const char *path, int number,
                     char *err, size_t errlen)
{
    char *key = trimmed(line), *value = strchr(key, '=');
    if (*key == '\0' || *key == '#')
        return 0;
    if (!value)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s, line %d: write 'style = colour', not '%.60s'", path, number, key);
    *value++ = '\0';
    key = trimmed(key);
    int style = esp_style_find(key);
    if (style < 0)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s, line %d: there is no style '%.40s'",
                        path, number, key);
    const char *wrong = read_appearance(trimmed(value), &theme->style[style]);
    if (wrong)
        return esp_fail(
            err, errlen, ESP_E_FORMAT,
            "%s, line %d: '%.40s' is no colour (#RRGGBB or a name like bright-red) and "
            "no attribute",
            path, number, wrong);
    return 0;
}

/* What a style leaves to the terminal it takes from `text`. */
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

static int read_file(struct esp_theme *theme, FILE *file, const char *path, char *err,
                     size_t errlen)
{
    enum { LONGEST = 512 };
    struct esp_theme read;
    char line[LONGEST];
    int status = 0;
    esp_theme_plain(&read);
    for (int number = 1; status == 0 && fgets(line, sizeof line, file); number++) {
        if (strlen(line) == LONGEST - 1)
            status = esp_fail(err, errlen, ESP_E_FORMAT, "%s, line %d: the line is too long",
                              path, number);
        else
            status = read_line(&read, line, path, number, err, errlen);
    }
    if (status == 0) {
        inherit(&read);
        *theme = read;
    }
    return status;
}

/* ------------------------------------------------------------------ finding */

/* Opens the user's theme of this name, else the program's. */
static FILE *open_by_name(const char *name, char *path, size_t size)
{
    char folder[512], file_name[64];
    FILE *file = NULL;
    snprintf(file_name, sizeof file_name, "%.50s.theme", name);
    if (esp_user_path(folder, sizeof folder, ESP_USER_CONFIG, "themes") == 0) {
        snprintf(path, size, "%s/%s", folder, file_name);
        file = fopen(path, "re");
    }
    if (!file && esp_find_data(path, size, "themes", file_name) == 0)
        file = fopen(path, "re");
    return file;
}

int esp_theme_load(struct esp_theme *theme, const char *name, char *err, size_t errlen)
{
    char path[640];
    snprintf(path, sizeof path, "%s", name);
    FILE *file = strchr(name, '/') ? fopen(path, "re") : open_by_name(name, path, sizeof path);
    if (!file)
        return esp_fail(err, errlen, ESP_E_FILE,
                        strchr(name, '/')
                            ? "the theme %.200s cannot be read"
                            : "there is no theme '%.60s'; espalier list themes shows "
                              "those there are",
                        name);
    int status = read_file(theme, file, path, err, errlen);
    fclose(file);
    if (status == 0 && !strchr(name, '/'))
        snprintf(theme->name, sizeof theme->name, "%.31s", name);
    else if (status == 0)
        snprintf(theme->name, sizeof theme->name, "%.31s", strrchr(name, '/') + 1);
    return status;
}

int esp_theme_list(int index, char *name, size_t size)
{
    return esp_list_data("themes", index, name, size);
}

/* ------------------------------------------------------------------ fewer colours */

static int distance(int32_t a, int32_t b)
{
    int red = ((a >> 16) & 255) - ((b >> 16) & 255),
        green = ((a >> 8) & 255) - ((b >> 8) & 255);
    int blue = (a & 255) - (b & 255);
    return 3 * red * red + 4 * green * green + 2 * blue * blue; /* the eye sees green best */
}

/* xterm's colours: 16 that the user may have changed, a cube of 6 x 6 x 6, 24 greys. */
static int32_t xterm_colour(int index)
{
    static const int32_t basic[16] = {
        0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
        0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};
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
    if (rgb >= ESP_COLOUR_NAMED)
        return colours >= 16 ? rgb - ESP_COLOUR_NAMED : (rgb - ESP_COLOUR_NAMED) % 8;
    if (colours >= 1 << 24)
        return rgb < 8 ? 16 : rgb; /* such terminals take 0..7 as the named ones */
    int first = colours >= 256 ? 16 : 0, count = colours >= 256 ? 256 : colours >= 16 ? 16 : 8;
    int best = first;
    for (int i = first; i < count; i++)
        if (distance(rgb, xterm_colour(i)) < distance(rgb, xterm_colour(best)))
            best = i;
    return best;
}
