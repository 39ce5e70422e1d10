/* export.c - `espalier export FILE`: writes iterations of a recording as pictures, text or
 * JSON, or all of them as a page for a browser.
 *
 * Iterations are counted from 0 through the whole recording, as in a replay. A single iteration
 * is written to standard output or to the file given with -o. Several iterations are written to
 * one file each. In the formats dot, txt and json, they can also be written one after the other
 * to standard output. A file appears only when it is complete.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/support/write_file.h"
#include "kernels/status.h"
#include "tui/cli/bench/paper.h"
#include "tui/cli/cli.h"
#include "tui/cli/recordings/figure_facts.h"
#include "tui/model/export_all.h"
#include "tui/view/cast.h"
#include "viz/safe.h"

struct job {
    const struct cli_options *o;
    struct esp_recording *recording;
    int first, last, format;
    int chart;  /* kind of chart, or -1 */
    int figure; /* kind of figure, or ESP_FIGURE_NONE */
    int caption;
    double aspect;
    char models[256];
    char *bytes; /* (length) the contents of the file to write */
    size_t length;
    char err[512];
};

#define refuse(job, ...) esp_fail((job)->err, sizeof(job)->err, ESP_E_ARGUMENT, __VA_ARGS__)

/* ------------------------------------------------------------------ options */

static bool is_drawn(const struct job *job)
{
    return esp_export_draws(job->format);
}

static int bad_value(struct job *job, const char *flag, const char *takes, const char *value)
{
    return refuse(job, "--%s takes %s, not '%.40s'", flag, takes, value);
}

static bool read_count(const char **text, int *value)
{
    char *end;
    errno = 0;
    long number = strtol(*text, &end, 10);
    bool good = end != *text && **text >= '0' && **text <= '9' && !errno && number <= INT_MAX;
    *value = good ? (int)number : 0;
    *text = end;
    return good;
}

/* Reads the iterations to export, such as "7" or "3-9". */
static int read_range(struct job *job)
{
    const char *range = job->o->iteration, *text = range;
    int there = esp_recording_iterations(job->recording);
    if (!range && there > 0 && (job->format == ESP_EXPORT_HTML || job->chart >= 0)) {
        job->last = there - 1;
        return ESP_OK;
    }
    if (!range)
        return refuse(job, "say which iteration, for example --iteration 3 or --iteration 3-9");
    bool good = read_count(&text, &job->first);
    job->last = job->first;
    if (good && *text == '-') {
        text++;
        good = read_count(&text, &job->last);
    }
    if (!good || *text || job->last < job->first)
        return bad_value(job, "iteration", "a number, or a range such as 3-9", range);
    if (there == 0)
        return refuse(job, "%.300s has no iterations", job->o->arguments[0]);
    if (job->last >= there)
        return refuse(job, "there is no iteration %d; %.300s has 0 to %d", job->last,
                      job->o->arguments[0], there - 1);
    return ESP_OK;
}

static int read_format(struct job *job)
{
    static const char *const bytes[ESP_EXPORT_FORMATS] = {[ESP_EXPORT_PNG] = "a PNG picture",
                                                          [ESP_EXPORT_PDF] = "a PDF file",
                                                          [ESP_EXPORT_HTML] = "a page"};
    const struct cli_options *o = job->o;
    if (o->html && o->format && strcmp(o->format, "html") != 0)
        return refuse(job, "--html and --format %.40s exclude each other", o->format);
    job->format = o->html     ? ESP_EXPORT_HTML
                  : o->format ? esp_export_find(o->format)
                  : o->output ? esp_export_of_path(o->output)
                              : ESP_EXPORT_SVG;
    if (job->format < 0 && o->format)
        return bad_value(job, "format", "dot, svg, png, pdf, tikz, txt, json or html",
                         o->format);
    if (job->format < 0)
        return refuse(
            job,
            "%.300s does not end in .dot, .svg, .png, .pdf, .tikz, .txt, .json or .html; "
            "say --format",
            o->output);
    if (o->theme && strcmp(o->theme, "light") != 0 && strcmp(o->theme, "dark") != 0)
        return refuse(job, "pictures have the themes light and dark, not '%.40s'", o->theme);
    if (!o->output && bytes[job->format] && isatty(STDOUT_FILENO))
        return refuse(job, "%s is not for a terminal; name a file with -o", bytes[job->format]);
    return ESP_OK;
}

static int read_chart(struct job *job)
{
    const char *chart = job->o->chart;
    job->chart = chart ? esp_course_chart_find(chart) : -1;
    if (chart && job->chart < 0)
        return bad_value(job, "chart", "thresholds, acceptance or stages", chart);
    if (chart && !is_drawn(job))
        return refuse(job, "charts are written as svg, png, pdf or tikz");
    return ESP_OK;
}

static int read_figure(struct job *job)
{
    const char *figure = job->o->figure;
    job->figure = figure ? esp_figure_find(figure) : ESP_FIGURE_NONE;
    if (job->figure < 0)
        return bad_value(job, "figure", "mask, timeline, iteration or tree", figure);
    if (figure && job->chart >= 0)
        return refuse(job, "--figure and --chart exclude each other");
    if (figure && !is_drawn(job))
        return refuse(job, "figures are written as svg, png, pdf or tikz");
    if (job->chart < 0 && job->format == ESP_EXPORT_TIKZ && !figure)
        job->figure = ESP_FIGURE_TREE;
    return ESP_OK;
}

/* Reads the flags for the aspect ratio and the caption of a picture. */
static int read_look(struct job *job)
{
    const struct cli_options *o = job->o;
    if ((o->aspect || o->caption) && !is_drawn(job) && job->format != ESP_EXPORT_DOT)
        return refuse(job, "--aspect and --caption are for pictures: svg, png, pdf and tikz");
    if (o->aspect && job->figure)
        return refuse(job, "the size of a figure follows from what it shows; --aspect is for "
                           "charts and for trees without --figure");
    job->aspect = o->aspect ? esp_aspect_of(o->aspect) : 0;
    job->caption = o->caption ? esp_caption_find(o->caption) : ESP_CAPTION_FULL;
    if (o->aspect && job->aspect == 0)
        return bad_value(job, "aspect", "W:H, such as 16:9, from 1:5 to 5:1", o->aspect);
    if (job->caption < 0)
        return bad_value(job, "caption", "full, short or none", o->caption);
    return ESP_OK;
}

static int read_options(struct job *job)
{
    static int (*const read[])(struct job * job) = {read_format, read_chart, read_figure,
                                                    read_look, read_range};
    int status = ESP_OK;
    for (size_t i = 0; i < sizeof read / sizeof *read && status == ESP_OK; i++)
        status = read[i](job);
    return status;
}

static void name_models(struct job *job)
{
    const struct esp_recording_header *header = esp_recording_header(job->recording);
    if (header->target.name[0])
        snprintf(job->models, sizeof job->models, header->draft.name[0] ? "%s \u2190 %s" : "%s",
                 header->target.name, header->draft.name);
}

/* ------------------------------------------------------------------ writing */

/* Writes the name of the file for one of several iterations. The number of the iteration
 * replaces %d in the name. Without %d, the number is put before the extension. */
static int name_file(const struct job *job, int iteration, char path[PATH_MAX])
{
    const char *output = job->o->output, *mark = strstr(output, "%d");
    const char *name = strrchr(output, '/'), *dot = strrchr(name ? name : output, '.');
    int length;
    if ((job->first == job->last || job->format == ESP_EXPORT_HTML || job->chart >= 0) && !mark)
        length = snprintf(path, PATH_MAX, "%s", output);
    else if (mark)
        length = snprintf(path, PATH_MAX, "%.*s%d%s", (int)(mark - output), output, iteration,
                          mark + 2);
    else
        length = snprintf(path, PATH_MAX, "%.*s-%04d%s",
                          dot ? (int)(dot - output) : (int)strlen(output), output, iteration,
                          dot ? dot : "");
    return length < PATH_MAX ? ESP_OK : ESP_E_ARGUMENT;
}

static int check_new(struct job *job, const char *path)
{
    if (job->o->force || access(path, F_OK) != 0)
        return ESP_OK;
    refuse(job, "%.300s already exists; choose another name, or add --force", path);
    return ESP_E_FILE;
}

/* Writes the bytes of a file and frees them. If `status` is an error, only frees them. */
static int write_out(struct job *job, int iteration, int status)
{
    char path[PATH_MAX];
    if (status == ESP_OK && !job->o->output) {
        if (isatty(STDOUT_FILENO))
            esp_safe_write(stdout, job->bytes, job->length);
        else
            fwrite(job->bytes, 1, job->length, stdout);
        if (fflush(stdout) != 0 || ferror(stdout))
            status = esp_fail(job->err, sizeof job->err, ESP_E_FILE,
                              "standard output cannot be written: %s", strerror(errno));
    } else if (status == ESP_OK && name_file(job, iteration, path) < 0) {
        status = refuse(job, "the name %.60s... is too long", job->o->output);
    } else if (status == ESP_OK && (status = check_new(job, path)) == ESP_OK) {
        status = esp_write_file(path, job->bytes, job->length, job->o->force, job->err,
                                sizeof job->err);
    }
    free(job->bytes);
    job->bytes = NULL;
    return status;
}

static int export_one(struct job *job, int iteration)
{
    int number = esp_recording_iteration_event(job->recording, iteration);
    const struct esp_event *event;
    struct esp_export_facts facts = {.text_count = 0};
    struct esp_export_options options = {.tokens = {esp_recording_token_text, job->recording},
                                         .models = job->models,
                                         .format = job->format,
                                         .theme = job->o->theme,
                                         .nodes = job->o->nodes,
                                         .caption = job->caption,
                                         .aspect = job->aspect,
                                         .ascii = job->o->ascii,
                                         .figure = job->figure,
                                         .facts = &facts};
    int status = ESP_OK;
    if (job->figure)
        status = cli_figure_facts(job->recording, number, &facts, job->err, sizeof job->err);
    if (status == ESP_OK)
        status = esp_recording_read(job->recording, number, &event, job->err, sizeof job->err);
    if (status == ESP_OK) {
        options.line = esp_recording_line(job->recording, number, &options.line_length);
        options.iteration = event->iteration;
        status = esp_export(&options, &job->bytes, &job->length, job->err, sizeof job->err);
    }
    cli_figure_facts_free(&facts);
    return write_out(job, iteration, status);
}

/* ------------------------------------------------------------------ the whole replay */

/* Reads the flag --size as columns and rows. Both are 0 without the flag, which means the
 * recorded size. */
static int read_size(struct job *job, int *columns, int *rows)
{
    const char *text = job->o->size;
    int end = 0;
    *columns = *rows = 0;
    if (!text || (sscanf(text, "%dx%d%n", columns, rows, &end) == 2 && !text[end] &&
                  *columns >= 20 && *columns <= 500 && *rows >= 5 && *rows <= 200))
        return ESP_OK;
    return refuse(job, "--size takes WxH, from 20x5 to 500x200, not '%.80s'", text);
}

/* Returns whether a flag was given that only applies to pictures of iterations, charts or a
 * page. */
static bool is_picture(const struct cli_options *o)
{
    return o->iteration || o->html || o->chart || o->figure || o->aspect || o->caption;
}

static int export_replay(struct job *job)
{
    const struct cli_options *o = job->o;
    struct esp_theme theme;
    int columns, rows;
    int status = read_size(job, &columns, &rows);
    if (status < 0)
        return status;
    const struct esp_cast_options options = {.recording = o->arguments[0],
                                             .width = columns,
                                             .height = rows,
                                             .speed = o->speed,
                                             .idle = o->idle,
                                             .theme = &theme,
                                             .ascii = o->ascii};
    if (is_picture(o) || o->format || o->output)
        return refuse(
            job,
            "--asciicast writes the whole replay to its own file; it excludes --iteration, "
            "--format, --html, --chart, --figure, --aspect, --caption and -o");
    status = check_new(job, o->asciicast);
    if (status == ESP_OK)
        status =
            esp_theme_load(&theme, o->theme ? o->theme : "dark", job->err, sizeof job->err);
    if (status == ESP_OK)
        status = esp_cast_make(&options, &job->bytes, &job->length, job->err, sizeof job->err);
    if (status == ESP_OK)
        status = esp_write_file(o->asciicast, job->bytes, job->length, o->force, job->err,
                                sizeof job->err);
    free(job->bytes);
    return status;
}

static int export_page(struct job *job)
{
    int status = esp_export_page(job->recording, job->first, job->last, &job->bytes,
                                 &job->length, job->err, sizeof job->err);
    status = write_out(job, job->first, status);
    if (status == ESP_OK && job->o->output)
        fprintf(stderr, "espalier: a page of %d iteration%s, %.1f MB\n",
                job->last - job->first + 1, job->last > job->first ? "s" : "",
                1e-6 * (double)job->length);
    return status;
}

static int export_chart(struct job *job)
{
    const struct esp_course_chart_options options = {.kind = job->chart,
                                                     .theme = job->o->theme,
                                                     .models = job->models,
                                                     .aspect = job->aspect,
                                                     .caption = job->caption};
    return write_out(job, job->first,
                     esp_export_chart(job->recording, job->first, job->last, &options,
                                      job->format, &job->bytes, &job->length, job->err,
                                      sizeof job->err));
}

/* Draws the numbers of a paper next to the corresponding numbers of a suite. */
static int export_paper(struct job *job)
{
    const struct cli_options *o = job->o;
    struct esp_beside *beside = calloc(1, sizeof *beside);
    struct esp_drawing drawing = {.latex = false};
    int status = beside ? read_format(job) : (int)ESP_E_MEMORY;
    if (status == ESP_OK && (is_picture(o) || o->asciicast || !is_drawn(job)))
        status =
            refuse(job, "a paper's figures are one picture: only --format svg, png, pdf or "
                        "tikz, --theme, -o and --force apply");
    if (status == ESP_OK)
        status = cli_paper_read(beside, o->arguments[0], job->err, sizeof job->err);
    if (status == ESP_OK) {
        drawing.latex = job->format == ESP_EXPORT_TIKZ;
        esp_beside_draw(beside, esp_colours_find(o->theme ? o->theme : "light"), &drawing);
        status = esp_export_drawing(&drawing, job->format, &job->bytes, &job->length, job->err,
                                    sizeof job->err);
    }
    esp_drawing_free(&drawing);
    free(beside);
    return write_out(job, 0, status);
}

static int export_iterations(struct job *job)
{
    name_models(job);
    int status = read_options(job);
    if (status == ESP_OK && job->format == ESP_EXPORT_HTML)
        return export_page(job);
    if (status == ESP_OK && job->chart >= 0)
        return export_chart(job);
    if (status == ESP_OK && !job->o->output && job->last > job->first && is_drawn(job))
        status = refuse(job, "several pictures need a file name: -o tree.svg gives "
                             "tree-0003.svg and so on");
    for (int i = job->first; status == ESP_OK && i <= job->last; i++)
        status = export_one(job, i);
    return status;
}

static int run(struct cli_options *o)
{
    struct job job = {.o = o};
    const bool paper = cli_is_paper(o->arguments[0]);
    int status =
        paper ? export_paper(&job)
              : esp_recording_open(&job.recording, o->arguments[0], job.err, sizeof job.err);
    if (status == ESP_OK && !paper)
        status = o->asciicast ? export_replay(&job) : export_iterations(&job);
    if (status == ESP_OK && !paper)
        cli_tell_cut(job.recording, o->arguments[0]);
    esp_recording_close(job.recording);
    return cli_code(status, job.err);
}

const struct cli_command cli_export = {
    .name = "export",
    .arguments = "FILE --iteration N|A-B [--figure NAME] | --html | --chart NAME",
    .summary =
        "write trees as pictures, text or JSON, or a page or an asciicast of the recording",
    .flags = CLI(EXPORT) | CLI(FORMAT) | CLI(OUTPUT) | CLI(LOOKS) | CLI(FORCE) | CLI(SPEED),
    .least = 1,
    .most = 1,
    .details =
        "Iterations are counted from 0. Without -o the file goes to standard output.\n"
        "Several iterations with -o tree.svg give tree-0003.svg and so on; %d in the name\n"
        "stands for the number. Pictures are drawn by espalier-dot, with Graphviz.\n"
        "`espalier export FILE --html -o OUT.html` writes a page that plays the whole "
        "recording\n"
        "in any browser, or iterations A to B of it; the page is one file and loads nothing.\n"
        "`espalier export FILE --chart NAME` draws thresholds, acceptance by depth or the time "
        "of\n"
        "the stages, iteration by iteration, for all iterations or for A to B.\n"
        "`espalier export FILE --iteration N --figure NAME` draws a figure for a paper: mask,\n"
        "timeline, iteration (the text and its tree) or tree. -o fig.tikz is for LaTeX.\n"
        "`espalier export FILE --asciicast OUT` writes the whole replay for terminal players.\n"
        "`espalier export NAME.paper` draws a paper's figures next to those of a suite.",
    .run = run,
};
