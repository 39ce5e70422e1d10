/* Fuzzes the pictures of trees that espalier-dot draws. Whatever tokens and names contain, DOT
 * and SVG must be text without control characters. The first line of the input has "dot" or
 * "svg", a theme, the maximum number of nodes, a caption and an aspect ratio. The second line
 * is the line of an iteration in a recording. */
#include "viz/dot/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gvc.h>

#include "viz/dot/arrange.h"
#include "sessions/event_json.h"
#include "tests/fuzz/support/fuzz.h"

enum { MOST_DRAWN = 40 /* nodes; the layout of a larger tree takes too long */ };

static int ignore(char *message)
{
    (void)message;
    return 0;
}

static void require_text(const char *text, size_t length)
{
    FUZZ_REQUIRE(length > 0, "a picture is not empty");
    for (size_t i = 0; i < length; i++)
        FUZZ_REQUIRE((unsigned char)text[i] >= 0x20 || strchr("\n\t", text[i]),
                     "byte %zu of a picture is the control character %02x", i,
                     (unsigned char)text[i]);
}

static void write_dot(Agraph_t *graph)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    FUZZ_REQUIRE(file && agwrite(graph, file) == 0 && fclose(file) == 0, "there is memory");
    require_text(text, size);
    free(text);
}

static void write_svg(Agraph_t *graph, double aspect)
{
    static GVC_t *context; /* created only once, because creating a context takes long */
    char *text = NULL;
    unsigned size = 0;
    if (!context)
        context = gvContext();
    FUZZ_REQUIRE(context && esp_arrange(context, graph, aspect), "a tree can be laid out");
    esp_arrange_bend(graph);
    FUZZ_REQUIRE(gvRenderData(context, graph, "svg", &text, &size) == 0, "SVG can be drawn");
    require_text(text, size);
    gvFreeRenderData(text);
    gvFreeLayout(context, graph);
}

static void draw(const struct esp_recorded_event *recorded, struct esp_texts *texts,
                 const char *how)
{
    char format[8] = "", theme[8] = "", caption[8] = "", aspect[16] = "";
    int nodes = -1;
    sscanf(how, "%7s %7s %d %7s %15s", format, theme, &nodes, caption, aspect);
    struct esp_picture_look look = {esp_colours_find(theme), how, nodes,
                                    esp_caption_find(caption), esp_aspect_of(aspect)};
    struct esp_tokens tokens = {esp_texts_find, texts};
    if (!look.colours)
        look.colours = esp_colours_find("light");
    if (look.most < -1 || look.most > ESP_RECORDING_NODES)
        look.most = -1;
    if (look.caption < 0)
        look.caption = ESP_CAPTION_FULL;
    agseterrf(ignore);
    Agraph_t *graph = esp_picture(&recorded->iteration.it, &tokens, &look);
    FUZZ_REQUIRE(graph, "there is memory");
    if (strcmp(format, "svg") == 0 && agnnodes(graph) <= MOST_DRAWN)
        write_svg(graph, look.aspect);
    else
        write_dot(graph);
    agclose(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct esp_recorded_event recorded = {.texts = {NULL}};
    struct esp_texts texts = {.name_count = 0};
    char how[64], err[512];
    const uint8_t *newline = memchr(bytes, '\n', length);
    if (!newline)
        return 0;
    size_t first = (size_t)(newline - bytes) + 1;
    snprintf(how, sizeof how, "%.*s", (int)(first - 1 < 63 ? first - 1 : 63), bytes);
    const uint8_t *end = memchr(bytes + first, '\n', length - first);
    size_t line = end ? (size_t)(end - bytes) - first : length - first;
    if (esp_event_from_json(&recorded, &texts, (const char *)bytes + first, line, 0, err,
                            sizeof err) > 0 &&
        recorded.event.type == ESP_EVENT_ITERATION)
        draw(&recorded, &texts, how);
    esp_recorded_event_free(&recorded);
    esp_texts_free(&texts);
    return 0;
}
