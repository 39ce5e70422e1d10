/* Tests figures for papers. The blocks of the attention mask must be counted as in the engine.
 * Tokens can have any text, and text that does not fit must be truncated. */
#include "viz/figure.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tree.h"
#include "tests/check.h"
#include "viz/mask.h"

/* Makes a tree of `count` nodes. The parent of node i + 1 is node i / 3. */
static void grow(struct esp_tree_builder *builder, int count)
{
    char err[128];
    CHECK(esp_tree_open(builder, count, err, sizeof err) == 0, "%s", err);
    esp_tree_reset(builder, 7);
    for (int i = 0; i < count; i++)
        CHECK(esp_tree_add(builder, i / 3, 100 + i, 0.5) == i + 1);
}

static int count_blocks(const struct esp_tree *tree)
{
    struct esp_mask mask;
    int used = 0;
    CHECK(esp_mask_open(&mask, tree));
    for (int i = 0; i * ESP_MASK_BLOCK < mask.rows; i++)
        for (int j = 0; j * ESP_MASK_BLOCK < mask.rows; j++)
            used += esp_mask_block(&mask, i, j);
    esp_mask_close(&mask);
    return used;
}

TEST(a_mask_figure_has_the_blocks_that_the_engine_counts)
{
    struct esp_tree_builder builder;
    int before = 0;
    bool differ = false;
    grow(&builder, 150);
    for (int order = ESP_ORDER_bfs; order <= ESP_ORDER_hpd; order++) {
        esp_tree_flatten(&builder, (enum esp_order)order);
        const int used = count_blocks(&builder.tree);
        CHECK(used == builder.mask_blocks, "%d, not %d", used, builder.mask_blocks);
        differ = differ || (before > 0 && before != used);
        before = used;
    }
    CHECK(differ, "the order of this tree's nodes changes the number of blocks");
    esp_tree_close(&builder);
}

static const char *say(void *text, int32_t token, size_t *length)
{
    (void)token;
    *length = strlen(text);
    return text;
}

/* Draws the figure of a small tree in which all tokens are `text`. */
static char *draw(int kind, bool latex, const char *text)
{
    struct esp_tree_builder builder;
    struct esp_drawing drawing = {.latex = latex};
    char copy[256], err[128] = "", *bytes;
    size_t length;
    static const int32_t path[] = {1}, committed[] = {100, 9};
    snprintf(copy, sizeof copy, "%s", text);
    grow(&builder, 8);
    esp_tree_flatten(&builder, ESP_ORDER_bfs);
    builder.tree.nodes[1].verdict = ESP_ACCEPTED;
    const struct esp_iteration it = {.index = 3,
                                     .position = 12,
                                     .tree = builder.tree,
                                     .path = path,
                                     .path_length = 1,
                                     .bonus = 9,
                                     .committed = committed,
                                     .committed_count = 2,
                                     .draft_passes = 2,
                                     .seconds = {0.5, 0.25, 1, 0, 0, 0.125},
                                     .baseline = 1,
                                     .drafter = "x",
                                     .verifier = "y"};
    const double passes[] = {0.2, 0.5};
    const struct esp_figure figure = {.kind = kind,
                                      .iteration = &it,
                                      .tokens = {say, copy},
                                      .passes = passes,
                                      .pass_count = 2,
                                      .order = "bfs",
                                      .colours = esp_colours_find("light"),
                                      .nodes = -1};
    CHECK(esp_figure_draw(&figure, &drawing, err, sizeof err) == 0, "%s", err);
    CHECK(esp_drawing_write(&drawing, &bytes, &length) == 0);
    CHECK(drawing.width > 100 && drawing.height > 60);
    esp_drawing_free(&drawing);
    esp_tree_close(&builder);
    return bytes;
}

/* No token may contain a TeX command. So if the program's own commands are removed, none are
 * left. */
TEST(tokens_are_plain_text_in_latex)
{
    char *tikz = draw(ESP_FIGURE_TREE, true, "\\a{%#_}~^&$");
    CHECK(strstr(tikz, "\\textbackslash{}\\textbackslash{}a\\{\\%\\#\\_\\}\\textasciitilde{}"
                       "\\textasciicircum{}\\&\\symbol{36}"),
          "%s", tikz);
    CHECK(!strstr(tikz, "\\a"));
    free(tikz);
    tikz = draw(ESP_FIGURE_TREE, true, " \u4e2d\u00e9--\"\x1b");
    CHECK(strstr(tikz, "{\\textvisiblespace{}\\textless{}U+4E2D\\textgreater{}\\'{e}-{}-{}"
                       "\\symbol{34}\\textasciicircum{}[}"),
          "%s", tikz);
    for (const char *c = tikz; *c; c++)
        CHECK((*c >= ' ' && *c <= '~') || *c == '\n', "byte %02x", (unsigned char)*c);
    free(tikz);
}

TEST(tokens_are_plain_text_in_svg)
{
    for (int kind = ESP_FIGURE_MASK; kind < ESP_FIGURE_KINDS; kind++) {
        char *svg = draw(kind, false, "</text>\x07\u202e<b>&");
        CHECK(!strstr(svg, "<b>") && !strstr(svg, "\u202e") && !strchr(svg, '\x07'));
        CHECK((strstr(svg, "&lt;/tex") != NULL) == (kind != ESP_FIGURE_TIMELINE), "%d", kind);
        free(svg);
    }
}

TEST(a_long_token_is_truncated)
{
    const struct esp_drawing drawing = {.latex = false};
    char text[256];
    CHECK(esp_drawing_cells(&drawing, text, sizeof text, "abcdef", 6, 6) == 6);
    CHECK(strcmp(text, "abcdef") == 0);
    CHECK(esp_drawing_cells(&drawing, text, sizeof text, "abcdefg", 7, 6) == 6);
    CHECK(strcmp(text, "abcde\u2026") == 0, "%s", text);
    CHECK(esp_drawing_cells(&drawing, text, sizeof text, "\u4e2d\u4e2d\u4e2d\u4e2d", 12, 6) ==
          5);
    CHECK(strcmp(text, "\u4e2d\u4e2d\u2026") == 0, "%s", text);
    CHECK(esp_drawing_cells(&drawing, text, 8, " a b c d e", 10, 40) == 3, "%s", text);
    CHECK(strcmp(text, "\u2423a\u2026") == 0, "%s", text);
}

/* Each stage's bar begins where the bar of the previous stage ends. Each draft pass has its own
 * bar. */
TEST(a_timeline_has_its_stages_in_order)
{
    char *svg = draw(ESP_FIGURE_TIMELINE, false, "a");
    const struct esp_colours *colours = esp_colours_find("light");
    double x[ESP_STAGES], wide[ESP_STAGES], y, high;
    for (int s = 0; s < ESP_STAGES; s++) {
        char what[32];
        snprintf(what, sizeof what, "fill=\"%s\"/>", colours->stage[s]);
        const char *at = strstr(svg, what);
        CHECK(at, "%s", what);
        while (*at != '<')
            at--;
        CHECK(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &x[s], &y,
                     &wide[s], &high) == 4);
        CHECK(s == 0 || x[s] >= x[s - 1], "%d", s);
    }
    CHECK(x[1] - (x[0] + wide[0]) < 0.02 && x[1] - (x[0] + wide[0]) > -0.02);
    CHECK(wide[2] / wide[0] > 1.99 && wide[2] / wide[0] < 2.01, "as 1 to .5 seconds");
    CHECK(strstr(svg, ">draft, 2 passes<") && strstr(svg, ">plain decoding<"));
    free(svg);
}

/* At the beginning of a line, a token is drawn without its leading spaces. A token that has
 * only spaces keeps them. */
TEST(a_token_of_blanks_has_room)
{
    char *svg = draw(ESP_FIGURE_ITERATION, false, "  ");
    CHECK(!strstr(svg, "width=\"-"), "%s", svg);
    free(svg);
}
