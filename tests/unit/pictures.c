/* Tests pictures of trees. Hostile token text must stay text in DOT and SVG. The same tree must
 * give the same bytes, and a tree of any size must be drawn within the limits. If the helper
 * program is missing, fails, hangs or takes too much memory, one error message must say so. The
 * test needs espalier-dot in $BUILD. It reads DOT with gvpr, and SVG with xmllint. */
#include "viz/dot_helper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "sessions/event_json.h"
#include "viz/safe.h"
#include "tests/scene.h"

enum { MOST_NODES = ESP_RECORDING_NODES };

static char err[512];

/* ------------------------------------------------------------------ hostile tokens */

struct hostile {
    const char *text;
    size_t length;
};

#define BYTES(text)                                                                            \
    {                                                                                          \
        text, sizeof text - 1                                                                  \
    }
static const struct hostile hostile[] = {
    BYTES("\"];}digraph evil{x->y[label=\""),
    BYTES("a\\b\\\\c\\"),
    BYTES("\\N\\G\\E\\\""),
    BYTES("line\nand\r\ttab"),
    BYTES("<b>bold</b><script>alert(1)</script>"),
    BYTES("</td></tr></table>><a href=\"http://x/\">"),
    BYTES("&lt;b&gt;&#27;&#x202e;&amp;&bogus;"),
    BYTES("nul\0inside"),
    BYTES("\033[31mred\a\177"),
    BYTES("half \xe2\x82 and \xff\xfe"),
    BYTES("\u202eright\u202c\u200b\ufeff\u2028"),
    BYTES(" e\u0301\u6f22\u5b57\u3000\U0001f600"),
    BYTES("]]>{left|right}[x]"),
    BYTES(""),
    BYTES("  two  spaces  "),
};
#undef BYTES

enum { HOSTILE = sizeof hostile / sizeof *hostile, LONG = HOSTILE };

static const char *hostile_text(void *user, int32_t token, size_t *length)
{
    static char endless[20000];
    (void)user;
    if (token == LONG) {
        memset(endless, 'x', sizeof endless);
        memcpy(endless, "\"\\<", 3);
        *length = sizeof endless;
        return endless;
    }
    if (token < 0 || token >= HOSTILE)
        return NULL;
    *length = hostile[token].length;
    return hostile[token].text;
}

/* Makes a tree in which all nodes are children of the root. Node i has token i - 1. */
static const struct esp_iteration *hostile_tree(void)
{
    static struct esp_node nodes[HOSTILE + 2];
    static int32_t order[HOSTILE + 2];
    static const int32_t path[] = {1}, committed[] = {0, 4};
    static struct esp_iteration it;
    for (int i = 0; i < HOSTILE + 2; i++) {
        nodes[i] = (struct esp_node){.token = i > 0 ? i - 1 : 5,
                                     .parent = i > 0 ? 0 : -1,
                                     .depth = i > 0,
                                     .rank = i > 0 ? i - 1 : 0,
                                     .copies = 1,
                                     .q = i > 0 ? 0.05f : 1,
                                     .cumulative_log_q = i > 0 ? -3 : 0,
                                     .confidence = NAN,
                                     .value = NAN,
                                     .p = 0.1f,
                                     .u = NAN,
                                     .acceptance = NAN};
        order[i] = i;
    }
    nodes[1].verdict = ESP_ACCEPTED;
    it = (struct esp_iteration){.tree = {nodes, HOSTILE + 2, order, HOSTILE + 2},
                                .path = path,
                                .path_length = 1,
                                .bonus = 4,
                                .bonus_u = NAN,
                                .committed = committed,
                                .committed_count = 2,
                                .deepest = 1,
                                .gauges = {{"<a href=\"x\">\\N", 0.5, 0.4, 0, 1}},
                                .gauge_count = 1,
                                .seconds = {0.001, 0, 0.002},
                                .drafter = "<script>\\G</script>",
                                .verifier = "\"</table>"};
    return &it;
}

/* ------------------------------------------------------------------ the helper */

/* Uses the helper of this build. If there is none, prints a line and returns false. */
static bool has_helper(void)
{
    char path[512];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s/espalier-dot", build ? build : "build");
    setenv("ESPALIER_DOT", path, 1);
    if (access(path, X_OK) == 0)
        return true;
    printf("  not tested, because there is no %s\n", path);
    return false;
}

static char *line_of(const struct esp_iteration *it, esp_token_text *text, size_t *length)
{
    const struct esp_event event = {.type = ESP_EVENT_ITERATION, .iteration = it};
    const struct esp_tokens tokens = {text, NULL};
    struct esp_line line = {.length = 0};
    CHECK(esp_event_to_json(&line, &event, NULL, &tokens) == 0);
    *length = line.length;
    return line.text;
}

/* Draws a picture. Returns its text, or NULL with an error message in err. */
static char *draw(const struct esp_iteration *it, esp_token_text *text,
                  const struct esp_dot_options *options, size_t *size)
{
    char *picture, *ended = NULL;
    size_t length;
    char *line = line_of(it, text, &length);
    *err = '\0';
    int status = esp_dot_draw(line, length, options, &picture, size, err, sizeof err);
    free(line);
    CHECK((status == 0) == (picture != NULL) && (status == 0) == !*err, "%d: %s", status, err);
    if (picture && (ended = realloc(picture, *size + 1)))
        ended[*size] = '\0';
    return ended;
}

/* Writes the picture to a file, runs `command FILE`, and returns the output of the command. */
static char *through(const char *command, const char *bytes, size_t size)
{
    char path[] = "/tmp/espalier-picture-XXXXXX", line[256];
    char *text = calloc(1, 1 << 17);
    int fd = mkstemp(path);
    CHECK(text && fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    snprintf(line, sizeof line, "%s %s 2>&1", command, path);
    FILE *pipe = popen(line, "r");
    CHECK(pipe);
    text[fread(text, 1, (1 << 17) - 1, pipe)] = '\0';
    int status = pclose(pipe);
    unlink(path);
    CHECK(status == 0, "%s: %d %.200s", command, status, text);
    return text;
}

static void safe_text(int32_t token, char *text, size_t size)
{
    struct esp_safe_unit shown;
    size_t length = 0, used = 0;
    const char *bytes = hostile_text(NULL, token, &length);
    for (size_t i = 0; bytes && i < length && used < 2000;) {
        i += esp_safe_next(bytes + i, length - i, ESP_SAFE_ESCAPED, &shown);
        used += (size_t)snprintf(text + used, size - used, "%s", shown.text);
    }
    text[used] = '\0';
}

TEST(hostile_text_is_plain_text_in_dot)
{
    static const char command[] =
        "gvpr 'N[verdict==\"not visited\"]{print($.token,\"=\",$.text)}'";
    static char line[1 << 16], text[1 << 15];
    size_t size;
    if (!has_helper())
        return;
    char *dot = draw(hostile_tree(), hostile_text,
                     &(struct esp_dot_options){.format = "dot", .theme = "light"}, &size);
    CHECK(dot, "%s", err);
    char *read = through(command, dot, size);
    for (int token = 1; token <= LONG; token++) {
        safe_text(token, text, sizeof text);
        snprintf(line, sizeof line, "%d=%s\n", token, text);
        CHECK(strstr(read, line), "token %d, wanted %.80s in %.2000s", token, line, read);
    }
    free(read);
    read = through("dot -Tplain", dot, size);
    CHECK(strncmp(read, "graph ", 6) == 0 && strstr(read, "\nstop\n"), "%.200s", read);
    CHECK(!strstr(read, "\nnode x "), "a token became a node");
    free(read);
    free(dot);
}

/* All angle brackets except Graphviz's own are written as character references. So these
 * elements can occur only if the text of a token was read as markup. */
TEST(hostile_text_opens_no_element_in_svg)
{
    static const char *const forbidden[] = {"<script", "<a ",    "<a>",      "href=\"",
                                            "<b>",     "<image", "<foreign", "onload=\""};
    size_t size;
    if (!has_helper())
        return;
    for (int dark = 0; dark < 2; dark++) {
        char *svg = draw(hostile_tree(), hostile_text,
                         &(struct esp_dot_options){.format = "svg",
                                                   .theme = dark ? "dark" : "light",
                                                   .models = "<a href=\"x\">&#27;",
                                                   .nodes = -1},
                         &size);
        CHECK(svg, "%s", err);
        CHECK(strlen(svg) == size, "a NUL in it");
        for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
            CHECK(!strstr(svg, forbidden[i]), "%s in %s", forbidden[i], svg);
        for (size_t i = 0; i < size; i++)
            CHECK((unsigned char)svg[i] >= 0x20 || svg[i] == '\n', "byte %d", svg[i]);
        CHECK(strstr(svg, "&lt;script&gt;alert("), "the token is not shown");
        CHECK(strstr(svg, "&lt;script&gt;\\G&lt;/script&gt;"),
              "an escape sequence in a token took effect");
        CHECK(strstr(svg, "&quot;\\\\N\\\\G"), "an escape sequence in a token took effect");
        CHECK(strstr(svg, "nul^@inside"), "the replacement of NUL is not shown");
        free(through("xmllint --noout", svg, size));
        free(svg);
    }
}

TEST(the_same_tree_gives_the_same_bytes)
{
    static const char *const formats[] = {"dot", "svg", "png"};
    size_t size, again;
    if (!has_helper())
        return;
    for (size_t i = 0; i < 3; i++) {
        const struct esp_dot_options options = {
            .format = formats[i], .theme = "dark", .nodes = -1};
        char *first = draw(scene_king(3), scene_text, &options, &size);
        char *second = draw(scene_king(3), scene_text, &options, &again);
        CHECK(first && second, "%s: %s", formats[i], err);
        CHECK(size == again && memcmp(first, second, size) == 0, "%s differs", formats[i]);
        if (i == 2)
            CHECK(size > 1000 && memcmp(first, "\x89PNG\r\n\x1a\n", 8) == 0);
        free(first);
        free(second);
    }
}

static double height_of(const char *plain, const char *name)
{
    char start[24];
    double x, y = -1;
    snprintf(start, sizeof start, "\nnode %s ", name);
    const char *at = strstr(plain, start);
    CHECK(at && sscanf(at + strlen(start), "%lf %lf", &x, &y) == 2, "there is no node %s",
          name);
    return y;
}

/* Siblings must also be in order of rank if another program lays out the DOT file. In such a
 * layout, y grows upwards. */
TEST(siblings_are_in_order_of_rank)
{
    size_t size;
    if (!has_helper())
        return;
    char *dot =
        draw(scene_king(3), scene_text,
             &(struct esp_dot_options){.format = "dot", .theme = "light", .nodes = -1}, &size);
    CHECK(dot, "%s", err);
    char *plain = through("dot -Tplain", dot, size);
    CHECK(height_of(plain, "n1") > height_of(plain, "n2"));
    CHECK(height_of(plain, "n2") > height_of(plain, "n7"));
    CHECK(height_of(plain, "n4") > height_of(plain, "n3"));
    CHECK(height_of(plain, "n10") > height_of(plain, "target"));
    free(plain);
    free(dot);
}

/* The picture of the scene's tree must contain these texts. */
TEST(the_picture_says_what_happened)
{
    static const char *const words[] = {
        "Iteration 3: 4 tokens committed in one pass of the target",
        "10 tokens drafted, 2 cut, 8 verified, 3 accepted",
        "dynatree",
        "greedy",
        "fairytale",
        "tauh",
        "cut: path too unlikely",
        "from the target itself",
        "&quot;\u2423king&quot;",
        "q .71",
        "p .64",
        "\u2713",
        "\u2717",
        "stroke-dasharray",
        "not visited",
        "stroke-width=\"3.5\""};
    size_t size;
    if (!has_helper())
        return;
    char *svg = draw(scene_king(3), scene_text,
                     &(struct esp_dot_options){
                         .format = "svg", .theme = "light", .models = "fairytale", .nodes = -1},
                     &size);
    CHECK(svg, "%s", err);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(strstr(svg, words[i]), "'%s' is not in the picture", words[i]);
    free(svg);
}

/* A picture may show a random number next to a probability only if the verifier compared the
 * two. */
TEST(the_picture_distinguishes_draws_from_tests)
{
    const struct esp_dot_options options = {.format = "svg", .theme = "light", .nodes = -1};
    struct esp_iteration it = *scene_king(3);
    size_t size;
    if (!has_helper())
        return;
    it.verifier = "naivetree";
    struct esp_node *n = &it.tree.nodes[it.path[0]];
    n->acceptance = 0.23f;
    n->u = 0.81f;
    n->drawn = true;
    char *svg = draw(&it, scene_text, &options, &size);
    CHECK(svg, "%s", err);
    CHECK(strstr(svg, "a .23") && strstr(svg, "drawn") &&
          strstr(svg, "drew this token; a is its probability"));
    CHECK(!strstr(svg, "u .81") && !strstr(svg, "u: random number"));
    free(svg);
    n->u = 0.11f;
    n->drawn = false;
    svg = draw(&it, scene_text, &options, &size);
    CHECK(svg, "%s", err);
    CHECK(strstr(svg, "u .11") && strstr(svg, "u: random number, below a if accepted"));
    CHECK(!strstr(svg, "drew it"));
    free(svg);
}

/* ------------------------------------------------------------------ limits */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Draws the largest tree that a recording can have. A part of it that fits on a slide must be
 * drawn quickly. The whole tree must be drawn within the limits or refused. */
TEST(a_huge_tree_is_drawn_or_refused_in_time)
{
    static struct esp_node nodes[MOST_NODES];
    static int32_t path[MOST_NODES], order[MOST_NODES];
    struct esp_iteration it;
    unsigned long long random = 5;
    size_t size;
    if (!has_helper())
        return;
    scene_random(&it, nodes, path, MOST_NODES, &random);
    it.drafter = it.verifier = "random";
    it.tree.order = order;
    it.tree.verified = 0;
    nodes[0].verdict = ESP_UNVISITED;
    for (int i = 0; i < MOST_NODES; i++) {
        if (i > 0 && nodes[nodes[i].parent].verdict == ESP_CUT)
            nodes[i].verdict = ESP_CUT;
        if (nodes[i].verdict != ESP_CUT)
            order[it.tree.verified++] = i;
    }
    for (int all = 0; all < 2; all++) {
        double start = now();
        char *svg = draw(&it, scene_text,
                         &(struct esp_dot_options){.format = "svg",
                                                   .theme = "light",
                                                   .nodes = all ? 0 : -1,
                                                   .seconds = all ? 3 : 10},
                         &size);
        CHECK(svg || all, "%s", err);
        CHECK(svg || strstr(err, "seconds") || strstr(err, "MB"), "%s", err);
        CHECK(now() - start < 5, "%.1f s", now() - start);
        free(svg);
    }
}

/* Makes a root with `count` - 1 children. */
static void make_fan(struct esp_iteration *it, struct esp_node *nodes, int count)
{
    for (int i = 0; i < count; i++)
        nodes[i] = (struct esp_node){.token = TOKEN_KING,
                                     .parent = i > 0 ? 0 : -1,
                                     .depth = i > 0,
                                     .rank = i > 0 ? i - 1 : 0,
                                     .copies = 1,
                                     .confidence = NAN,
                                     .p = NAN,
                                     .u = NAN};
    *it = (struct esp_iteration){
        .tree = {.nodes = nodes, .count = count}, .drafter = "fan", .verifier = "greedy"};
}

TEST(a_long_chain_fits_on_a_slide)
{
    static struct esp_node nodes[40];
    struct esp_iteration it;
    size_t size;
    if (!has_helper())
        return;
    make_fan(&it, nodes, 40);
    for (int i = 1; i < 40; i++) {
        nodes[i].parent = i - 1;
        nodes[i].depth = i;
        nodes[i].rank = 0;
    }
    for (int all = 0; all < 2; all++) {
        char *svg = draw(
            &it, scene_text,
            &(struct esp_dot_options){.format = "svg", .theme = "light", .nodes = all ? 0 : -1},
            &size);
        CHECK(svg, "%s", err);
        CHECK((strstr(svg, "\u2026 29 more") == NULL) == (all == 1), "all nodes: %d", all);
        free(svg);
    }
}

TEST(a_large_png_can_be_read)
{
    static struct esp_node nodes[2000];
    const struct esp_dot_options options = {
        .format = "png", .theme = "light", .nodes = 0, .seconds = 300};
    struct esp_iteration it;
    size_t size;
    if (!has_helper())
        return;
    make_fan(&it, nodes, 500);
    char *png = draw(&it, scene_text, &options, &size);
    CHECK(png && size > 24, "%s", err);
    int width = (unsigned char)png[18] << 8 | (unsigned char)png[19];
    CHECK(width >= 500, "the picture of 500 nodes is only %d pixels wide", width);
    free(png);
    make_fan(&it, nodes, 2000);
    png = draw(&it, scene_text, &options, &size);
    CHECK(!png && strstr(err, "too large for a PNG"), "%s", err);
}

/* Uses a shell script as the helper. */
static void pretend(const char *script)
{
    static char path[] = "/tmp/espalier-helper-XXXXXX";
    int fd = strchr(path, 'X') ? mkstemp(path) : -1;
    if (fd >= 0)
        close(fd);
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "#!/bin/sh\n%s\n", script) > 0 && fclose(file) == 0);
    CHECK(chmod(path, 0700) == 0);
    setenv("ESPALIER_DOT", path, 1);
}

/* Draws a picture with the script as the helper. Returns the script's output, or NULL. */
static char *run_pretended(void)
{
    size_t size;
    return draw(scene_king(0), scene_text,
                &(struct esp_dot_options){.format = "svg", .theme = "light", .seconds = 1},
                &size);
}

TEST(a_helper_that_fails_is_reported)
{
    static const struct {
        const char *script, *word;
    } cases[] = {
        {"sleep 30", "more than 1 seconds"},
        {"exec sleep 30 2>/dev/null", "more than 1 seconds"},
        {"while :; do :; done", "more than 1 seconds"},
        {"echo half; exit 1", "ended early"},
        {"echo half; echo espalier-dot: it is raining >&2; exit 1",
         "no picture: it is raining"},
        {"echo half; kill -SEGV $$", "ended early"},
        {"exit 0", "gave no picture"},
        {"yes >&2", "more than 1 seconds"},
        {"printf 'bad \\033[31m\\n' >&2; exit 3", "bad ?[31m"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double start = now();
        pretend(cases[i].script);
        char *picture = run_pretended();
        CHECK(!picture, "%s gave a picture", cases[i].script);
        CHECK(strstr(err, cases[i].word), "%s: %s", cases[i].script, err);
        CHECK(!strchr(err, '\n') && !strchr(err, '\033'), "%s", err);
        CHECK(now() - start < 4, "%s: %.1f s", cases[i].script, now() - start);
    }
    setenv("ESPALIER_DOT", "/nonexistent/espalier-dot", 1);
    CHECK(!run_pretended() && strstr(err, "cannot be run"), "%s", err);
}

TEST(the_helper_has_resource_limits)
{
    pretend("cat >/dev/null; ulimit -v; ulimit -t; ulimit -f; ulimit -c");
    char *limits = run_pretended();
    CHECK(limits && strcmp(limits, "524288\n1\n131072\n0\n") == 0, "%s", limits ? limits : err);
    free(limits);
    pretend("head -c 100000000 /dev/zero");
    CHECK(!run_pretended(), "a picture of more than 64 MB was accepted");
    unlink(getenv("ESPALIER_DOT"));
}
