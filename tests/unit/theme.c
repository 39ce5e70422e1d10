/* Tests themes: their syntax, errors that name the line, and colours for simple terminals. */
#include "tui/view/theme.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "engine/espalier.h"
#include "engine/support/paths.h"

/* Loads a theme from bytes. `err` receives the message. */
static int load_bytes(struct esp_theme *theme, const char *bytes, size_t length, char err[256])
{
    char path[] = P_tmpdir "/espalier-theme-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, bytes, length) == (ssize_t)length);
    close(file);
    int status = esp_theme_load(theme, path, err, 256);
    unlink(path);
    return status;
}

static int load(struct esp_theme *theme, const char *text, char err[256])
{
    return load_bytes(theme, text, strlen(text), err);
}

TEST(a_theme_names_colours_and_attributes)
{
    struct esp_theme theme;
    char err[256];
    CHECK(load(&theme,
               "# calm\n\ntext = #102030 on white\naccepted = bold italic #6fdc8c\n"
               "selection=reverse\n drafted = plain bright-cyan\ncut = on black\n"
               "error =\n",
               err) == 0,
          "%s", err);
    CHECK(theme.style[ESP_STYLE_TEXT].foreground == 0x102030);
    CHECK(theme.style[ESP_STYLE_TEXT].background == ESP_COLOUR_NAMED + 7);
    CHECK(theme.style[ESP_STYLE_ACCEPTED].foreground == 0x6fdc8c);
    CHECK(theme.style[ESP_STYLE_ACCEPTED].background == ESP_COLOUR_NAMED + 7, "not inherited");
    CHECK(theme.style[ESP_STYLE_ACCEPTED].attributes == (ESP_BOLD | ESP_ITALIC));
    CHECK(theme.style[ESP_STYLE_DRAFTED].foreground == ESP_COLOUR_NAMED + 14);
    CHECK(theme.style[ESP_STYLE_DRAFTED].attributes == 0);
    CHECK(theme.style[ESP_STYLE_CUT].background == ESP_COLOUR_NAMED);
    CHECK(theme.style[ESP_STYLE_CUT].attributes == ESP_DIM,
          "the style's own attributes are lost");
    CHECK(theme.style[ESP_STYLE_ERROR].foreground == 0x102030);
}

static void wrong(const char *text, const char *says)
{
    struct esp_theme theme;
    char err[256] = "";
    esp_theme_plain(&theme);
    CHECK(load(&theme, text, err) < 0, "'%s' was not refused", text);
    CHECK(strstr(err, says), "'%s' does not say '%s'", err, says);
    CHECK(strcmp(theme.name, "mono") == 0, "a failed load changed the theme");
}

TEST(errors_name_the_line)
{
    wrong("text =\nking = red\n", "line 2: there is no style 'king'");
    wrong("text red\n", "line 1: write 'style = colour'");
    wrong("\n\ntext = #12345\n", "line 3: '#12345' is neither a colour");
    wrong("text = #1234567\n", "'#1234567' is neither a colour");
    wrong("text = #12345g\n", "'#12345g' is neither a colour");
    wrong("text = pink\n", "'pink' is neither a colour");
    wrong("text = bright-\n", "'bright-' is neither a colour");
    char text[5000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    wrong(text, "too long");
    struct esp_theme theme;
    char err[256];
    CHECK(esp_theme_load(&theme, "no-such-theme", err, sizeof err) == ESP_E_FILE);
    CHECK(strstr(err, "there is no theme 'no-such-theme'"));
    CHECK(esp_theme_load(&theme, "/no/such/file", err, sizeof err) == ESP_E_FILE);
}

TEST(files_that_are_not_text_are_refused)
{
    static const char hidden[] = "text =\naccepted = red\0on blue\n";
    struct esp_theme theme;
    char err[256], folder[] = P_tmpdir "/espalier-theme-XXXXXX", pipe[64];
    CHECK(load_bytes(&theme, hidden, sizeof hidden - 1, err) == ESP_E_FORMAT);
    CHECK(strstr(err, "line 2: it contains a NUL byte"), "%s", err);
    CHECK(mkdtemp(folder));
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    CHECK(mkfifo(pipe, 0600) == 0);
    CHECK(esp_theme_load(&theme, folder, err, sizeof err) == ESP_E_FILE);
    CHECK(strstr(err, "it is not a regular file"), "%s", err);
    CHECK(esp_theme_load(&theme, pipe, err, sizeof err) == ESP_E_FILE,
          "a pipe must be refused without waiting for it");
    unlink(pipe);
    rmdir(folder);
}

TEST(the_themes_in_the_project_are_valid)
{
    const char *const names[] = {"dark", "light", "high-contrast", "colour-blind", "mono"};
    for (int i = 0; i < 5; i++) {
        char path[300], err[256];
        struct esp_theme theme;
        snprintf(path, sizeof path, "%s", check_path("../themes/"));
        snprintf(path + strlen(path), sizeof path - strlen(path), "%s.theme", names[i]);
        CHECK(esp_theme_load(&theme, path, err, sizeof err) == 0, "%s", err);
        const struct esp_appearance *style = theme.style;
        CHECK(memcmp(&style[ESP_STYLE_DRAFTED], &style[ESP_STYLE_BONUS], sizeof *style) != 0);
        CHECK(style[ESP_STYLE_DRAFTED].attributes & ESP_UNDERLINE,
              "%s: only the colour shows which tokens were drafted", path);
        CHECK(style[ESP_STYLE_ACCEPTED].attributes & ESP_BOLD,
              "%s: only the colour shows which tokens were accepted", path);
    }
}

static int times_listed(const char *theme)
{
    char name[64];
    int times = 0;
    for (int i = 0; esp_theme_list(i, name, sizeof name) == 0; i++)
        times += strcmp(name, theme) == 0;
    return times;
}

TEST(the_users_own_theme_takes_precedence)
{
    char folder[] = P_tmpdir "/espalier-config-XXXXXX", command[300], err[256];
    struct esp_theme theme;
    CHECK(mkdtemp(folder));
    snprintf(command, sizeof command,
             "mkdir -p %s/espalier/themes && cd %s/espalier/themes && "
             "echo 'text = #010203' >dark.theme && touch mine.theme notes",
             folder, folder);
    CHECK(system(command) == 0);
    setenv("XDG_CONFIG_HOME", folder, 1);
    int status = esp_theme_load(&theme, "dark", err, sizeof err);
    CHECK(times_listed("dark") == 1 && times_listed("mine") == 1 && times_listed("notes") == 0);
    unsetenv("XDG_CONFIG_HOME");
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    CHECK(status == 0 && theme.style[ESP_STYLE_TEXT].foreground == 0x010203, "%s", err);
    CHECK(strcmp(theme.name, "dark") == 0);
}

TEST(the_nearest_available_colour_is_used)
{
    CHECK(esp_colour_near(-1, 256) == -1 && esp_colour_near(0xff0000, 2) == -1);
    CHECK(esp_colour_near(0x6fdc8c, 1 << 24) == 0x6fdc8c);
    CHECK(esp_colour_near(0xff0000, 256) == 196 && esp_colour_near(0xffffff, 256) == 231);
    CHECK(esp_colour_near(0x808080, 256) == 244);
    CHECK(esp_colour_near(0xff0000, 16) == 9 && esp_colour_near(0xcc0505, 8) == 1);
    CHECK(esp_colour_near(ESP_COLOUR_NAMED + 12, 256) == 12);
    CHECK(esp_colour_near(ESP_COLOUR_NAMED + 12, 8) == 4);
}

static bool looks_alike(const struct esp_theme *theme, int one, int other, int colours)
{
    struct esp_appearance a = esp_appearance_near(theme, one, colours),
                          b = esp_appearance_near(theme, other, colours);
    return memcmp(&a, &b, sizeof a) == 0;
}

/* With few colours or none, no theme may draw text in a colour that the background
 * may also have. Styles that must differ must still differ. */
TEST(themes_can_be_read_with_few_colours)
{
    static const int counts[] = {0, 8, 16, 256};
    char name[64], err[256];
    struct esp_theme theme;
    for (int i = 0; esp_list_data("themes", i, name, sizeof name) == 0; i++)
        for (int c = 0; c < 4; c++) {
            const int colours = counts[c];
            CHECK(esp_theme_load(&theme, name, err, sizeof err) == 0, "%s", err);
            for (int style = 0; style < ESP_STYLE_COUNT; style++) {
                struct esp_appearance look = esp_appearance_near(&theme, style, colours);
                int colour = look.foreground;
                CHECK(colours == 256 || look.background >= 0 ||
                          (colour != 0 && colour % 8 != 7),
                      "%s: %s is %d of %d", name, esp_style_key(style), colour, colours);
                CHECK(colour < 0 || colour != look.background, "%s: %s of %d", name,
                      esp_style_key(style), colours);
            }
            CHECK(!looks_alike(&theme, ESP_STYLE_PROMPT, ESP_STYLE_BONUS, colours) &&
                      !looks_alike(&theme, ESP_STYLE_DRAFTED, ESP_STYLE_BONUS, colours) &&
                      !looks_alike(&theme, ESP_STYLE_DRAFTED, ESP_STYLE_PROMPT, colours) &&
                      !looks_alike(&theme, ESP_STYLE_ACCEPTED, ESP_STYLE_REJECTED, colours) &&
                      !looks_alike(&theme, ESP_STYLE_SELECTION, ESP_STYLE_TITLE, colours),
                  "%s with %d colours", name, colours);
        }
}

static double linear(int part)
{
    const double value = part / 255.0;
    return value <= 0.03928 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

/* Computes the luminance as WCAG 2.1 defines it. */
static double luminance(int32_t rgb)
{
    return 0.2126 * linear(rgb >> 16 & 255) + 0.7152 * linear(rgb >> 8 & 255) +
           0.0722 * linear(rgb & 255);
}

static double contrast(int32_t one, int32_t other)
{
    const double a = luminance(one) + 0.05, b = luminance(other) + 0.05;
    return a > b ? a / b : b / a;
}

/* Returns the RGB value of colour `number` of a 256-colour terminal. `number` is at least
 * 16. */
static int32_t of_256(int number)
{
    static const int32_t level[6] = {0, 95, 135, 175, 215, 255};
    const int at = number - 16, grey = 8 + 10 * (number - 232);
    if (number >= 232)
        return grey << 16 | grey << 8 | grey;
    return level[at / 36] << 16 | level[at / 6 % 6] << 8 | level[at % 6];
}

/* Every theme with colours sets its own background. On it, text must have a contrast of at
 * least 4.5 to 1, and lines and bars of at least 3 to 1. This is checked with all colours and
 * with 256. */
TEST(themes_have_contrast)
{
    static const int drawn[] = {ESP_STYLE_EDGE,      ESP_STYLE_FRAME,      ESP_STYLE_SPARK,
                                ESP_STYLE_BAR_DRAFT, ESP_STYLE_BAR_VERIFY, ESP_STYLE_BAR_REST};
    char name[64], err[256];
    struct esp_theme theme;
    int painted = 0;
    for (int i = 0; esp_list_data("themes", i, name, sizeof name) == 0; i++) {
        CHECK(esp_theme_load(&theme, name, err, sizeof err) == 0, "%s", err);
        if (theme.style[ESP_STYLE_TEXT].background < 0) {
            CHECK(strcmp(name, "mono") == 0, "%s has no background", name);
            continue;
        }
        painted++;
        for (int style = 0; style < ESP_STYLE_COUNT; style++) {
            const struct esp_appearance *look = &theme.style[style];
            const struct esp_appearance few = esp_appearance_near(&theme, style, 256);
            double least = 4.5;
            for (size_t j = 0; j < sizeof drawn / sizeof *drawn; j++)
                if (style == drawn[j])
                    least = 3;
            CHECK(look->foreground >= 0 && look->foreground < ESP_COLOUR_NAMED &&
                      look->background >= 0 && look->background < ESP_COLOUR_NAMED,
                  "%s: %s", name, esp_style_key(style));
            const double all = contrast(look->foreground, look->background),
                         less = contrast(of_256(few.foreground), of_256(few.background));
            CHECK(all >= least && less >= least, "%s: %s has %.2f, with 256 colours %.2f", name,
                  esp_style_key(style), all, less);
            CHECK(!((look->attributes | few.attributes) & ESP_DIM),
                  "%s: %s is dim, which halves its contrast", name, esp_style_key(style));
        }
    }
    CHECK(painted >= 4);
}

TEST(hues_are_kept)
{
    const struct {
        int32_t rgb;
        int of_8, of_16;
    } near[] = {{0x7fd99a, 2, 10}, {0xd98a7c, 1, 9}, {0x7fb2e5, 6, 14}, {0xe3c07a, 3, 11},
                {0x1558a8, 4, 4},  {0xcc79a7, 5, 5}, {0xf7f7f7, 7, 15}, {0x808080, 7, 8}};
    struct esp_theme theme;
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        CHECK(esp_colour_near(near[i].rgb, 8) == near[i].of_8, "%06x", (unsigned)near[i].rgb);
        CHECK(esp_colour_near(near[i].rgb, 16) == near[i].of_16, "%06x", (unsigned)near[i].rgb);
    }
    esp_theme_plain(&theme);
    theme.style[ESP_STYLE_TEXT].foreground = ESP_COLOUR_NAMED + 7;
    CHECK(esp_appearance_near(&theme, ESP_STYLE_TEXT, 8).foreground == 7,
          "the colour that the theme chose by name is not used");
}

/* Reads the manual page about themes. Returns its text from the section about styles to the
 * end. */
static const char *styles_of_page(char *page, size_t size)
{
    FILE *file = fopen(check_path("../man/espalier-theme.5"), "r");
    CHECK(file);
    page[fread(page, 1, size - 1, file)] = '\0';
    fclose(file);
    const char *styles = strstr(page, ".Sh STYLES");
    CHECK(styles);
    return styles;
}

/* Finds the line ".It ... Cm key", which also names the attributes of a style. */
static bool page_names(const char *styles, const char *key, int attributes)
{
    static const struct {
        int attribute;
        const char *name;
    } names[] = {{ESP_BOLD, " bold "},
                 {ESP_DIM, " dim "},
                 {ESP_UNDERLINE, " underline "},
                 {ESP_REVERSE, " reverse "}};
    char line[200];
    for (const char *at = styles; (at = strstr(at, "\n.It Cm ")); at++) {
        snprintf(line, sizeof line, " %.*s ", (int)strcspn(at + 1, "\n"), at + 1);
        char word[64];
        snprintf(word, sizeof word, " %s ", key);
        if (!strstr(line, word))
            continue;
        const char *listed = strstr(line, " Pq ");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!!(attributes & names[i].attribute) !=
                (listed && strstr(listed, names[i].name)))
                return false;
        return true;
    }
    return false;
}

TEST(the_page_documents_every_style)
{
    static char page[16384];
    const char *styles = styles_of_page(page, sizeof page);
    for (int i = 0; i < ESP_STYLE_COUNT; i++)
        CHECK(page_names(styles, esp_style_key(i), esp_style_attributes(i)), "%s",
              esp_style_key(i));
    for (const char *at = styles; (at = strstr(at, "\n.It Cm ")); at++) {
        char line[200], *rest = NULL;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 8, "\n"), at + 8);
        line[strcspn(line, "P")] = '\0'; /* removes the text after the attributes */
        for (char *word = strtok_r(line, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest))
            CHECK(esp_style_find(word) >= 0, "'%s' is not a style", word);
    }
}
