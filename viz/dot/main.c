/* main.c - espalier-dot: reads one iteration from standard input and writes a picture of its
 * tree to standard output.
 *
 * The input is a line of a recording (an `iteration` event, man/espalier-session.5). This is a
 * separate program for three reasons. Graphviz ends the process when memory runs out. A layout
 * in a separate process can be limited and killed. The licences of Graphviz and readline do not
 * allow both in one binary. espalier runs this program (viz/dot_helper.h). A user can also run
 * it:
 *
 *     espalier export FILE --iteration 3 --format json | espalier-dot --format svg
 *
 * The picture is complete in memory before its first byte is written. The exit status is 0 for
 * success, 1 after an error with one sentence on standard error, or 2 for wrong usage.
 */
#include <errno.h>
#include <getopt.h>
#include <gvc.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/system.h"
#include "sessions/event_json.h"
#include "viz/dot/arrange.h"
#include "viz/dot/picture.h"

enum { DONE, BAD, USAGE };

struct picture_request {
    const char *format;
    struct esp_picture_look look;
    double width, height; /* size in points of the SVG to convert; 0 means draw a tree */
};

static int fail(const char *sentence)
{
    fprintf(stderr, "espalier-dot: %s\n", sentence);
    return BAD;
}

static void help(void)
{
    puts(
        "usage: espalier-dot [--format dot|svg|png|pdf] [--theme light|dark] [--nodes N] "
        "[--models TEXT] [--aspect W:H] [--caption full|short|none] <LINE\n"
        "       espalier-dot --convert WxH --format png|pdf <SVG\n\n"
        "Draws the tree of one iteration. LINE is the line of an iteration in a recording:\n"
        "    espalier export FILE --iteration 3 --format json | espalier-dot >tree.svg\n\n"
        "  --format FORMAT   dot, svg (default), png or pdf\n"
        "  --convert WxH     convert the SVG on standard input, which has this size in points\n"
        "  --theme NAME      light (default) or dark\n"
        "  --nodes N         show at most N nodes, the likeliest; 0: all (default: as many as "
        "fit on a slide)\n"
        "  --models TEXT     names of the models, for the caption\n"
        "  --aspect W:H      aspect ratio, such as 16:9 (default: the tree's own)\n"
        "  --caption NAME    full (default), short or none: text above and below the tree");
}

/* Reads a number of nodes; returns -1 if the text is not a valid number. */
static int count(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    return end > text && !*end && value >= 0 && value <= ESP_RECORDING_NODES ? (int)value : -1;
}

static bool read_size(const char *text, double *width, double *height)
{
    char more;
    return sscanf(text, "%lfx%lf%c", width, height, &more) == 2 && *width >= 1 &&
           *height >= 1 && *width <= 14400 && *height <= 14400;
}

/* Reads the command line. Returns an exit status, or -1 if the program must continue. */
static int parse(struct picture_request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'T'},  {"theme", required_argument, NULL, 't'},
        {"models", required_argument, NULL, 'm'},  {"nodes", required_argument, NULL, 'n'},
        {"aspect", required_argument, NULL, 'a'},  {"caption", required_argument, NULL, 'c'},
        {"convert", required_argument, NULL, 'C'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},       {NULL, 0, NULL, 0}};
    int flag;
    *request = (struct picture_request){.format = "svg",
                                        .look = {esp_colours_find("light"), "", .most = -1}};
    while ((flag = getopt_long(argc, argv, "T:hV", options, NULL)) != -1) {
        switch (flag) {
        case 'T':
            request->format = optarg;
            break;
        case 't':
            request->look.colours = esp_colours_find(optarg);
            break;
        case 'm':
            request->look.models = optarg;
            break;
        case 'n':
            request->look.most = count(optarg);
            if (request->look.most < 0)
                return fail("--nodes takes a whole number, 0 for all nodes");
            break;
        case 'a':
            request->look.aspect = esp_aspect_of(optarg);
            if (request->look.aspect == 0)
                return fail("--aspect takes W:H, such as 16:9, from 1:5 to 5:1");
            break;
        case 'c':
            request->look.caption = esp_caption_find(optarg);
            if (request->look.caption < 0)
                return fail("--caption takes full, short or none");
            break;
        case 'C':
            if (!read_size(optarg, &request->width, &request->height))
                return fail("--convert takes the width and height of the SVG in points, such "
                            "as 400x300");
            break;
        case 'h':
            help();
            return DONE;
        case 'V':
            puts("espalier-dot " ESP_VERSION);
            return DONE;
        default:
            return USAGE;
        }
    }
    if (optind < argc) {
        help();
        return USAGE;
    }
    if (!request->look.colours)
        return fail("--theme takes light or dark");
    const bool for_page =
        strcmp(request->format, "png") == 0 || strcmp(request->format, "pdf") == 0;
    if (request->width > 0 && !for_page)
        return fail("--convert needs --format png or --format pdf");
    if (!for_page && strcmp(request->format, "dot") != 0 && strcmp(request->format, "svg") != 0)
        return fail("--format takes dot, svg, png or pdf");
    return -1;
}

/* ------------------------------------------------------------------ reading */

/* Returns the first line of standard input, without its newline; NULL if it is too long. */
static char *read_line(size_t *length)
{
    char *line = malloc(ESP_RECORDING_LINE + 1);
    if (!line)
        return NULL;
    *length = fread(line, 1, ESP_RECORDING_LINE + 1, stdin);
    const char *newline = memchr(line, '\n', *length);
    if (newline)
        *length = (size_t)(newline - line);
    if (*length <= ESP_RECORDING_LINE)
        return line;
    free(line);
    return NULL;
}

static int read_iteration(struct esp_recorded_event *recorded, struct esp_texts *texts,
                          char *err, size_t errlen)
{
    size_t length = 0;
    char *line = read_line(&length);
    if (!line) {
        snprintf(err, errlen, "the line is longer than %d bytes", ESP_RECORDING_LINE);
        return ESP_E_FORMAT;
    }
    int status = esp_event_from_json(recorded, texts, line, length, 0, err, errlen);
    free(line);
    if (status < 0)
        return status;
    if (status > 0 && recorded->event.type == ESP_EVENT_ITERATION)
        return ESP_OK;
    snprintf(err, errlen, "it is an event of another type");
    return ESP_E_FORMAT;
}

/* ------------------------------------------------------------------ writing */

/* Drops Graphviz's warnings. They do not prevent a picture, and Graphviz's functions return a
 * status if they fail. */
static int ignore(char *message)
{
    (void)message;
    return 0;
}

/* True if Graphviz has reported anything. If Graphviz cannot read an image, its functions do
 * not fail: it only reports this and continues without the image. */
static bool complained;

static int note(char *message)
{
    (void)message;
    complained = true;
    return 0;
}

static int write_all(const char *bytes, size_t length)
{
    if (fwrite(bytes, 1, length, stdout) != length || fflush(stdout) != 0)
        return fail(strerror(errno));
    return DONE;
}

static int write_dot(Agraph_t *graph)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (!file || agwrite(graph, file) < 0 || fclose(file) != 0)
        return fail("not enough memory for the graph");
    int code = write_all(text, length);
    free(text);
    return code;
}

/* Returns the dots per inch of a PNG. The result is 144, which is sharp on a projector. For a
 * large tree it is lower, to stay within the limits of Cairo and of memory. Returns 0 if the
 * picture would be illegible. */
static double resolution(Agraph_t *graph)
{
    enum { SHARP = 144, LEAST = 36, SIDE = 32000, POINTS = 72 };
    const double most = 24e6; /* dots */
    const boxf all = GD_bb(graph);
    double width = (all.UR.x - all.LL.x) / POINTS + 1,
           height = (all.UR.y - all.LL.y) / POINTS + 1;
    double dpi = fmin(SHARP, sqrt(most / (width * height)));
    dpi = floor(fmin(dpi, SIDE / fmax(width, height)));
    return dpi < LEAST ? 0 : dpi;
}

static int render(GVC_t *context, Agraph_t *graph, const char *format)
{
    char *bytes = NULL;
    unsigned length = 0;
    int code;
    if (strcmp(format, "png") == 0 && !(GD_drawing(graph)->dpi = resolution(graph)))
        return fail("the picture is too large for a PNG; export it as svg, or show fewer nodes "
                    "(--nodes)");
    agsafeset(graph, (char *)"margin", (char *)"0",
              (char *)""); /* without this, a PDF would have a margin */
    esp_arrange_bend(graph);
    if (gvRenderData(context, graph, format, &bytes, &length) != 0 || !bytes || length == 0)
        code = fail("Graphviz cannot write this format; is its plugin for it installed?");
    else if (complained)
        code = fail("Graphviz cannot read the SVG; is its plugin rsvg installed?");
    else
        code = write_all(bytes, length);
    gvFreeRenderData(bytes);
    return code;
}

/* Lays out the graph and writes the picture. `complaint`: the error message if the layout
 * fails. Returns the exit status. */
static int write_picture(Agraph_t *graph, const char *format, double aspect,
                         const char *complaint)
{
    GVC_t *context = gvContext();
    if (!context || !esp_arrange(context, graph, aspect))
        return fail(complaint);
    int code = render(context, graph, format);
    gvFreeLayout(context, graph);
    gvFreeContext(context);
    return code;
}

/* Draws an SVG as the image of a graph's only node: Graphviz's SVG plugin reads the image, and
 * Cairo draws it. */
static int convert(const struct picture_request *request)
{
    enum { POINTS = 72 };
    static const char *const node[][2] = {{"shape", "none"},      {"label", ""},
                                          {"margin", "0"},        {"fixedsize", "true"},
                                          {"imagescale", "true"}, {"image", ESP_PATH_OF_STDIN}};
    char width[32], height[32];
    Agraph_t *graph = agopen((char *)"figure", Agdirected, NULL);
    Agnode_t *only = graph ? agnode(graph, (char *)"svg", 1) : NULL;
    if (!only)
        return fail("not enough memory for the picture");
    snprintf(width, sizeof width, "%.4f", request->width / POINTS);
    snprintf(height, sizeof height, "%.4f", request->height / POINTS);
    agsafeset(graph, (char *)"pad", (char *)"0", (char *)"");
    agsafeset(only, (char *)"width", width, (char *)"");
    agsafeset(only, (char *)"height", height, (char *)"");
    for (size_t i = 0; i < sizeof node / sizeof *node; i++)
        agsafeset(only, (char *)node[i][0], (char *)node[i][1], (char *)"-");
    agseterrf(note);
    int code =
        write_picture(graph, request->format, 0,
                      "Graphviz cannot lay the picture out; is its dot plugin installed?");
    agclose(graph);
    return code;
}

int main(int argc, char **argv)
{
    struct picture_request request;
    struct esp_recorded_event recorded = {.texts = {NULL}};
    struct esp_texts texts = {.count = 0};
    char err[512] = "";
    setlocale(LC_CTYPE, "C.UTF-8");
    int code = parse(&request, argc, argv);
    if (code >= 0)
        return code;
    agseterrf(ignore);
    if (request.width > 0)
        return convert(&request);
    if (read_iteration(&recorded, &texts, err, sizeof err) < 0) {
        fprintf(stderr, "espalier-dot: standard input is not a recorded iteration: %s\n", err);
        return BAD;
    }
    struct esp_tokens tokens = {esp_texts_find, &texts};
    Agraph_t *graph = esp_picture(&recorded.iteration.it, &tokens, &request.look);
    if (!graph)
        return fail("not enough memory for the picture");
    code =
        strcmp(request.format, "dot") == 0
            ? write_dot(graph)
            : write_picture(graph, request.format, request.look.aspect,
                            "Graphviz cannot lay the tree out; is its dot plugin installed?");
    agclose(graph);
    esp_recorded_event_free(&recorded);
    esp_texts_free(&texts);
    return code;
}
