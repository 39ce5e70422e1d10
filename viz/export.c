/* export.c - writes an exported iteration to memory; see export.h. */
#include "viz/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/dot_helper.h"
#include "kernels/status.h"
#include "viz/safe.h"

enum { TEXT_WIDTH = 100 };

static const struct {
    const char *name;
    bool picture;
} formats[] = {
#define X(name, text, picture) {text, picture},
    ESP_EXPORTS(X)
#undef X
};

int esp_export_find(const char *name)
{
    for (int i = 0; i < ESP_EXPORT_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0)
            return i;
    return -1;
}

int esp_export_of_path(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".tex") == 0)
        return ESP_EXPORT_TIKZ;
    return dot && !strchr(dot, '/') ? esp_export_find(dot + 1) : -1;
}

/* ------------------------------------------------------------------ text */

/* Writes a name safely. A name from a recording can contain anything, even lines that look like
 * lines of the exported text. */
static void put_name(FILE *file, const char *name)
{
    struct esp_safe_unit shown;
    for (size_t left = name ? strlen(name) : 0; left > 0;) {
        const size_t taken = esp_safe_next(name, left, ESP_SAFE_ESCAPED, &shown);
        fputs(shown.text, file);
        name += taken;
        left -= taken;
    }
}

static void put_title(FILE *file, const struct esp_iteration *it)
{
    int cut = 0, seen;
    for (int i = 1; i < it->tree.count; i++)
        cut += it->tree.nodes[i].verdict == ESP_CUT;
    seen = it->tree.count - 1 - cut;
    fprintf(file, "iteration %d, ", it->index);
    put_name(file, it->drafter);
    fputs(", ", file);
    put_name(file, it->verifier);
    fprintf(file, ": %d of %d accepted", it->path_length, seen);
    if (cut > 0)
        fprintf(file, ", %d cut", cut);
    fprintf(file, ", %d committed\n", it->committed_count);
}

static int draw_text(FILE *file, const struct esp_export_options *options,
                     const struct esp_tree_rows *rows)
{
    const struct esp_tree_look look = {
        .tokens = options->tokens, .stages = ESP_STAGES, .cursor = -1};
    struct esp_canvas canvas;
    int status = esp_canvas_open(&canvas, TEXT_WIDTH, rows->count);
    if (status < 0)
        return status;
    if (options->ascii) {
        canvas.glyphs = &esp_glyphs_ascii;
        canvas.ascii_text = true;
    }
    esp_tree_rows_draw(&canvas, rows, options->iteration, &look);
    put_title(file, options->iteration);
    esp_canvas_dump(&canvas, file, false);
    esp_canvas_close(&canvas);
    return ESP_OK;
}

static int make_text(const struct esp_export_options *options, char **bytes, size_t *length)
{
    const struct esp_tree_choice choice = {.stages = ESP_STAGES};
    struct esp_tree_rows rows;
    int status = esp_tree_rows_build(&rows, options->iteration, &choice);
    if (status < 0)
        return status;
    FILE *file = open_memstream(bytes, length);
    status = file ? draw_text(file, options, &rows) : ESP_E_MEMORY;
    esp_tree_rows_free(&rows);
    if (file && fclose(file) != 0)
        status = ESP_E_MEMORY;
    return status;
}

/* ------------------------------------------------------------------ JSON and pictures */

/* Writes the iteration's line of JSON, with a newline. The line is made safe to show, because a
 * recording can contain anything. */
static int make_line(const struct esp_export_options *options, char **bytes, size_t *length)
{
    FILE *file = open_memstream(bytes, length);
    if (!file)
        return ESP_E_MEMORY;
    esp_safe_json(file, options->line, options->line_length);
    putc('\n', file);
    return fclose(file) == 0 ? (int)ESP_OK : (int)ESP_E_MEMORY;
}

static int make_picture(const struct esp_export_options *options, char **bytes, size_t *length,
                        char *err, size_t errlen)
{
    const struct esp_dot_options picture = {.format = formats[options->format].name,
                                            .theme = options->theme ? options->theme : "light",
                                            .models = options->models,
                                            .nodes = options->nodes,
                                            .caption = options->caption,
                                            .aspect = options->aspect};
    char *line = NULL;
    size_t line_length = 0;
    int status = make_line(options, &line, &line_length);
    if (status == ESP_OK)
        status = esp_dot_draw(line, line_length, &picture, bytes, length, err, errlen);
    free(line);
    return status;
}

/* ------------------------------------------------------------------ figures */

bool esp_export_draws(int format)
{
    return format == ESP_EXPORT_SVG || format == ESP_EXPORT_PNG || format == ESP_EXPORT_PDF ||
           format == ESP_EXPORT_TIKZ;
}

int esp_export_drawing(const struct esp_drawing *drawing, int format, char **bytes,
                       size_t *length, char *err, size_t errlen)
{
    const bool tikz = format == ESP_EXPORT_TIKZ;
    int status = esp_drawing_write(drawing, bytes, length);
    if (status < 0)
        return esp_fail(err, errlen, status, "not enough memory for the figure");
    if (tikz || format == ESP_EXPORT_SVG)
        return ESP_OK;
    char *svg = *bytes;
    status = esp_dot_convert(svg, *length, drawing->width, drawing->height,
                             formats[format].name, bytes, length, err, errlen);
    free(svg);
    return status;
}

static int make_figure(const struct esp_export_options *options, char **bytes, size_t *length,
                       char *err, size_t errlen)
{
    static const struct esp_export_facts nothing = {.text_count = 0};
    const struct esp_export_facts *facts = options->facts ? options->facts : &nothing;
    const struct esp_figure figure = {
        .kind = options->figure ? options->figure : ESP_FIGURE_TREE,
        .iteration = options->iteration,
        .tokens = options->tokens,
        .text = facts->text,
        .text_count = facts->text_count,
        .passes = facts->passes,
        .pass_count = facts->pass_count,
        .order = *facts->order ? facts->order : NULL,
        .colours = esp_colours_find(options->theme ? options->theme : "light"),
        .caption = options->caption,
        .nodes = options->nodes};
    struct esp_drawing drawing = {.latex = options->format == ESP_EXPORT_TIKZ};
    int status = esp_figure_draw(&figure, &drawing, err, errlen);
    if (status == ESP_OK)
        status = esp_export_drawing(&drawing, options->format, bytes, length, err, errlen);
    esp_drawing_free(&drawing);
    return status;
}

int esp_export(const struct esp_export_options *options, char **bytes, size_t *length,
               char *err, size_t errlen)
{
    int status;
    *bytes = NULL;
    *length = 0;
    if (errlen > 0)
        *err = '\0';
    if (options->figure || options->format == ESP_EXPORT_TIKZ)
        status = make_figure(options, bytes, length, err, errlen);
    else if (formats[options->format].picture)
        status = make_picture(options, bytes, length, err, errlen);
    else if (options->format == ESP_EXPORT_TXT)
        status = make_text(options, bytes, length);
    else
        status = make_line(options, bytes, length);
    if (status < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    if (status < 0 && errlen > 0 && !*err)
        esp_fail(err, errlen, status, "the iteration cannot be exported: %s",
                 esp_status_message(status));
    return status;
}
