/* export.c - `espalier export FILE`: iterations of a recording as pictures, text or JSON, or
 * all of them as a page for a browser.
 *
 * Iterations are counted from 0 through the whole recording, as replay counts them. One of them
 * goes to standard output or to the file of -o; several go to one file each, or, where that
 * makes sense (dot, txt, json), one after the other to standard output. A file is written as a
 * whole or not at all.
 */
#include "viz/export.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/view/cast.h"
#include "tui/cli/cli.h"
#include "tui/cli/bench/paper.h"
#include "tui/model/export_all.h"
#include "viz/page/page_writer.h"
#include "kernels/status.h"
#include "viz/safe.h"
#include "engine/support/write_file.h"

struct job {
    const struct cli_options *o;
    struct esp_recording *recording;
    int first, last, format;
    int chart;  /* -1: none */
    int figure; /* ESP_FIGURE_NONE: none */
    int caption;
    double aspect;
    char models[256];
};

/* ------------------------------------------------------------------ what is asked for */

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

/* "7" or "3-9". */
static int read_range(struct job *job, char *err, size_t errlen)
{
    const char *range = job->o->iteration, *text = range;
    int there = esp_recording_iterations(job->recording);
    if (!range && there > 0 && (job->format == ESP_EXPORT_HTML || job->chart >= 0)) {
        job->last = there - 1;
        return ESP_OK;
    }
    if (!range)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "say which iteration, as --iteration 3 or --iteration 3-9");
    bool good = read_count(&text, &job->first);
    job->last = job->first;
    if (good && *text == '-') {
        text++;
        good = read_count(&text, &job->last);
    }
    if (!good || *text || job->last < job->first)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--iteration takes a number, or two as 3-9, not '%.40s'", range);
    if (there == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%.300s holds no iteration",
                        job->o->arguments[0]);
    if (job->last >= there)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "there is no iteration %d; %.300s holds 0 to %d", job->last,
                        job->o->arguments[0], there - 1);
    return ESP_OK;
}

static int read_format(struct job *job, char *err, size_t errlen)
{
    const char *format = job->o->format, *output = job->o->output;
    if (job->o->html && format && strcmp(format, "html") != 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--html and --format %.40s exclude each other", format);
    job->format = job->o->html ? ESP_EXPORT_HTML
                  : format     ? esp_export_find(format)
                  : output     ? esp_export_of_path(output)
                               : ESP_EXPORT_SVG;
    if (job->format < 0 && format)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "--format takes dot, svg, png, pdf, tikz, txt, json or html, not '%.40s'", format);
    if (job->format < 0)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "%.300s does not end in .dot, .svg, .png, .pdf, .tikz, .txt, .json or .html; "
            "say --format",
            output);
    if (job->o->theme && strcmp(job->o->theme, "light") != 0 &&
        strcmp(job->o->theme, "dark") != 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "pictures have the themes light and dark, not '%.40s'", job->o->theme);
    const char *bytes = job->format == ESP_EXPORT_PNG    ? "a PNG picture"
                        : job->format == ESP_EXPORT_PDF  ? "a PDF file"
                        : job->format == ESP_EXPORT_HTML ? "a page"
                                                         : NULL;
    if (!output && bytes && isatty(STDOUT_FILENO))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s is not for a terminal; name a file with -o", bytes);
    return ESP_OK;
}

/* What a picture is to look like. */
static int read_look(struct job *job, char *err, size_t errlen)
{
    const struct cli_options *o = job->o;
    const bool picture = esp_export_draws(job->format) || job->format == ESP_EXPORT_DOT;
    if ((o->aspect || o->caption) && !picture)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--aspect and --caption are for pictures: svg, png, pdf and tikz");
    if (o->aspect && job->figure)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "figures are as large as what they show; --aspect is for charts and "
                        "for trees without --figure");
    job->aspect = o->aspect ? esp_aspect_of(o->aspect) : 0;
    job->caption = o->caption ? esp_caption_find(o->caption) : ESP_CAPTION_FULL;
    if (o->aspect && job->aspect == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--aspect takes W:H, as 16:9, from 1:5 to 5:1, not '%.40s'", o->aspect);
    if (job->caption < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--caption takes full, short or none, not '%.40s'", o->caption);
    return ESP_OK;
}

static int read_chart(struct job *job, char *err, size_t errlen)
{
    const char *chart = job->o->chart;
    job->chart = chart ? esp_course_chart_find(chart) : -1;
    if (chart && job->chart < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--chart takes thresholds, acceptance or stages, not '%.40s'", chart);
    if (chart && !esp_export_draws(job->format))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "charts are written as svg, png, pdf or tikz");
    return ESP_OK;
}

static int read_figure(struct job *job, char *err, size_t errlen)
{
    const char *figure = job->o->figure;
    job->figure = figure ? esp_figure_find(figure) : ESP_FIGURE_NONE;
    if (job->figure < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "--figure takes mask, timeline, iteration or tree, not '%.40s'",
                        figure);
    if (figure && job->chart >= 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "--figure and --chart exclude each other");
    if (figure && !esp_export_draws(job->format))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "figures are written as svg, png, pdf or tikz");
    if (job->chart < 0 && job->format == ESP_EXPORT_TIKZ && !figure)
        job->figure = ESP_FIGURE_TREE;
    return ESP_OK;
}

static int check_pictures(const struct job *job, char *err, size_t errlen)
{
    if (!job->o->output && job->last > job->first && esp_export_draws(job->format))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "several pictures need a name with -o; tree.svg gives tree-0003.svg");
    return ESP_OK;
}

static void name_models(struct job *job)
{
    const struct esp_recording_header *header = esp_recording_header(job->recording);
    if (header->target.name[0])
        snprintf(job->models, sizeof job->models, header->draft.name[0] ? "%s \u2190 %s" : "%s",
                 header->target.name, header->draft.name);
}

/* ------------------------------------------------------------------ writing */

/* The name of the file for one of several iterations: the number takes the place of %d, or goes
 * before the ending. */
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

static int write_out(const struct job *job, int iteration, const char *bytes, size_t length,
                     char *err, size_t errlen)
{
    char path[PATH_MAX];
    if (!job->o->output) {
        if (isatty(STDOUT_FILENO))
            esp_safe_write(stdout, bytes, length);
        else
            fwrite(bytes, 1, length, stdout);
        if (fflush(stdout) == 0 && !ferror(stdout))
            return ESP_OK;
        return esp_fail(err, errlen, ESP_E_FILE, "standard output cannot be written: %s",
                        strerror(errno));
    }
    if (name_file(job, iteration, path) < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "the name %.60s... is too long",
                        job->o->output);
    if (!job->o->force && access(path, F_OK) == 0)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%.300s is there already; choose another name, or --force", path);
    return esp_write_file(path, bytes, length, job->o->force, err, errlen);
}

static int export_one(const struct job *job, int iteration, char *err, size_t errlen)
{
    int number = esp_recording_iteration_event(job->recording, iteration);
    const struct esp_event *event;
    struct esp_export_options options = {.tokens = {esp_recording_token_text, job->recording},
                                         .models = job->models,
                                         .format = job->format,
                                         .theme = job->o->theme,
                                         .nodes = job->o->nodes,
                                         .caption = job->caption,
                                         .aspect = job->aspect,
                                         .ascii = job->o->ascii,
                                         .figure = job->figure};
    struct esp_export_facts facts = {.text_count = 0};
    char *bytes = NULL;
    size_t length = 0;
    int status = ESP_OK;
    if (job->figure)
        status = esp_export_facts(job->recording, number, &facts, err, errlen);
    if (status == ESP_OK)
        status = esp_recording_read(job->recording, number, &event, err, errlen);
    if (status < 0) {
        esp_export_facts_free(&facts);
        return status;
    }
    options.facts = &facts;
    options.line = esp_recording_line(job->recording, number, &options.line_length);
    options.iteration = event->iteration;
    options.time = event->time;
    status = esp_export(&options, &bytes, &length, err, errlen);
    if (status == ESP_OK)
        status = write_out(job, iteration, bytes, length, err, errlen);
    esp_export_facts_free(&facts);
    free(bytes);
    return status;
}

/* ------------------------------------------------------------------ the whole replay */

/* Columns and rows; 0: as recorded. */
static int read_size(const char *text, int *columns, int *rows, char *err, size_t errlen)
{
    int end = 0;
    *columns = *rows = 0;
    if (!text || (sscanf(text, "%dx%d%n", columns, rows, &end) == 2 && !text[end] &&
                  *columns >= 20 && *columns <= 500 && *rows >= 5 && *rows <= 200))
        return ESP_OK;
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "--size takes WxH, from 20x5 to 500x200, not '%.80s'", text);
}

static int export_replay(const struct cli_options *o, char *err, size_t errlen)
{
    struct esp_theme theme;
    int columns, rows;
    if (read_size(o->size, &columns, &rows, err, errlen) < 0)
        return ESP_E_ARGUMENT;
    const struct esp_cast_options options = {.recording = o->arguments[0],
                                             .width = columns,
                                             .height = rows,
                                             .speed = o->speed,
                                             .idle = o->idle,
                                             .theme = &theme,
                                             .ascii = o->ascii};
    char *bytes = NULL;
    size_t length = 0;
    if (o->iteration || o->format || o->output || o->html || o->chart || o->figure ||
        o->aspect || o->caption)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "--asciicast writes the whole replay to its own file, without "
            "--iteration, --format, --html, --chart, --figure, --aspect, --caption and "
            "-o");
    if (!o->force && access(o->asciicast, F_OK) == 0)
        return esp_fail(err, errlen, ESP_E_FILE,
                        "%.300s is there already; choose another name, or --force",
                        o->asciicast);
    int status = esp_theme_load(&theme, o->theme ? o->theme : "dark", err, errlen);
    if (status == ESP_OK)
        status = esp_cast_make(&options, &bytes, &length, err, errlen);
    if (status == ESP_OK)
        status = esp_write_file(o->asciicast, bytes, length, o->force, err, errlen);
    free(bytes);
    return status;
}

static int export_page(const struct job *job, char *err, size_t errlen)
{
    char *bytes = NULL;
    size_t length = 0;
    int status =
        esp_web_page(job->recording, job->first, job->last, &bytes, &length, err, errlen);
    if (status == ESP_OK)
        status = write_out(job, job->first, bytes, length, err, errlen);
    if (status == ESP_OK && job->o->output)
        fprintf(stderr, "espalier: a page of %d iteration%s, %.1f MB\n",
                job->last - job->first + 1, job->last > job->first ? "s" : "", 1e-6 * length);
    free(bytes);
    return status;
}

static int export_chart(const struct job *job, char *err, size_t errlen)
{
    const struct esp_course_chart_options options = {.kind = job->chart,
                                                     .theme = job->o->theme,
                                                     .models = job->models,
                                                     .aspect = job->aspect,
                                                     .caption = job->caption};
    char *bytes = NULL;
    size_t length = 0;
    int status = esp_export_chart(job->recording, job->first, job->last, &options, job->format,
                                  &bytes, &length, err, errlen);
    if (status == ESP_OK)
        status = write_out(job, job->first, bytes, length, err, errlen);
    free(bytes);
    return status;
}

/* Figures of a paper beside those from here. */
static int export_paper(struct job *job, char *err, size_t errlen)
{
    const struct cli_options *o = job->o;
    struct esp_beside *beside = calloc(1, sizeof *beside);
    struct esp_drawing drawing = {.count = 0};
    char *bytes = NULL;
    size_t length = 0;
    int status = beside ? read_format(job, err, errlen) : (int)ESP_E_MEMORY;
    if (status == ESP_OK && (o->iteration || o->html || o->chart || o->figure || o->asciicast ||
                             o->aspect || o->caption || !esp_export_draws(job->format)))
        status =
            esp_fail(err, errlen, ESP_E_ARGUMENT,
                     "figures of a paper are a picture of their own: svg, png, pdf or tikz, "
                     "with --theme alone");
    if (status == ESP_OK)
        status = cli_paper_read(beside, o->arguments[0], err, errlen);
    if (status == ESP_OK) {
        drawing.latex = job->format == ESP_EXPORT_TIKZ;
        esp_beside_draw(beside, esp_colours_find(o->theme ? o->theme : "light"), &drawing);
        status = esp_export_drawing(&drawing, job->format, &bytes, &length, err, errlen);
    }
    if (status == ESP_OK)
        status = write_out(job, 0, bytes, length, err, errlen);
    esp_drawing_free(&drawing);
    free(beside);
    free(bytes);
    return status;
}

static int export_iterations(struct job *job, char *err, size_t errlen)
{
    name_models(job);
    int status = read_format(job, err, errlen);
    if (status == ESP_OK)
        status = read_chart(job, err, errlen);
    if (status == ESP_OK)
        status = read_figure(job, err, errlen);
    if (status == ESP_OK)
        status = read_look(job, err, errlen);
    if (status == ESP_OK)
        status = read_range(job, err, errlen);
    if (status == ESP_OK && job->format == ESP_EXPORT_HTML)
        return export_page(job, err, errlen);
    if (status == ESP_OK && job->chart >= 0)
        return export_chart(job, err, errlen);
    if (status == ESP_OK)
        status = check_pictures(job, err, errlen);
    for (int i = job->first; status == ESP_OK && i <= job->last; i++)
        status = export_one(job, i, err, errlen);
    return status;
}

static int run(struct cli_options *o)
{
    struct job job = {.o = o};
    char err[512] = "";
    const bool paper = cli_is_paper(o->arguments[0]);
    int status = paper ? export_paper(&job, err, sizeof err)
                       : esp_recording_open(&job.recording, o->arguments[0], err, sizeof err);
    if (status == ESP_OK && !paper)
        status = o->asciicast ? export_replay(o, err, sizeof err)
                              : export_iterations(&job, err, sizeof err);
    if (status == ESP_OK && !paper)
        cli_tell_cut(job.recording, o->arguments[0]);
    esp_recording_close(job.recording);
    return status < 0 ? cli_fail(*err ? err : esp_status_message(status)) : EXIT_DONE;
}

const struct cli_command cli_export = {
    .name = "export",
    .arguments = "FILE --iteration N|A-B [--figure NAME] | --html | --chart NAME",
    .summary =
        "trees of a recording as pictures, text or JSON; a page or an asciicast that plays it",
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
        "`espalier export FILE --chart NAME` draws how thresholds, acceptance by depth or the "
        "time\n"
        "of the stages went, over all iterations or over A to B.\n"
        "`espalier export FILE --iteration N --figure NAME` draws a figure for a paper: mask,\n"
        "timeline, iteration (the text and its tree) or tree. -o fig.tikz is for LaTeX.\n"
        "`espalier export FILE --asciicast OUT` writes the whole replay for terminals.\n"
        "`espalier export NAME.paper` draws a paper's figures beside those of a suite.",
    .run = run,
};
