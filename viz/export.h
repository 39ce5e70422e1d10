/* export.h - exports one iteration as a picture, as text or as a line of JSON.
 *
 * The command line exports iterations of a recording; the interface exports the iteration that
 * it shows. JSON is the iteration's line in a recording, and espalier-dot (viz/dot_helper.h)
 * draws pictures from this line. Figures and text are made from the iteration itself. HTML
 * pages contain several iterations and are written by viz/page/page_writer.h.
 */
#ifndef ESP_EXPORT_H
#define ESP_EXPORT_H

#include "viz/figure.h"
#include "viz/picture_options.h"
#include "viz/tree_view.h"

/* X(identifier, name, whether espalier-dot draws trees in this format) */
#define ESP_EXPORTS(X)                                                                         \
    X(DOT, "dot", true)                                                                        \
    X(SVG, "svg", true)                                                                        \
    X(PNG, "png", true)                                                                        \
    X(PDF, "pdf", true)                                                                        \
    X(TIKZ, "tikz", false)                                                                     \
    X(TXT, "txt", false)                                                                       \
    X(JSON, "json", false)                                                                     \
    X(HTML, "html", false)

enum esp_export_format {
#define X(name, text, picture) ESP_EXPORT_##name,
    ESP_EXPORTS(X)
#undef X
        ESP_EXPORT_FORMATS
};

/* Returns the format with this name, which is also its file extension ("svg"), or -1. */
int esp_export_find(const char *name);
/* Returns the format for the extension of a path, or -1. ".tex" means tikz. */
int esp_export_of_path(const char *path);

struct esp_export_options {
    const struct esp_iteration *iteration;
    struct esp_tokens tokens;
    const char *line; /* for JSON and pictures: the iteration's line, without newline */
    size_t line_length;
    const char *models; /* "target <- draft", for captions; NULL means unknown */
    int format;
    const char *theme; /* pictures: "light" (NULL) or "dark" */
    int nodes;   /* pictures: maximum number of nodes; 0: all; -1: as many as fit on a slide */
    int caption; /* pictures: enum esp_caption */
    double aspect; /* pictures: width / height; 0 means any */
    bool ascii;    /* text: ASCII only */
    int figure;    /* enum esp_figure_kind; ESP_FIGURE_NONE: espalier-dot draws the tree */
    const struct esp_export_facts *facts; /* for figures; NULL if they are not known */
};

/* Data from the recording that figures need in addition to the iteration. */
struct esp_export_facts {
    int32_t *text; /* (text_count) tokens before the iteration */
    int text_count;
    double *passes; /* (pass_count) when each draft pass ended; see struct esp_figure */
    int pass_count;
    char order[24];
};

/* Writes a drawing as svg or tikz, or converts it to png or pdf with espalier-dot. The
 * drawing's `latex` must be true for tikz and false for the other formats. The caller frees
 * *bytes. Returns 0 or a negative status with a message. */
int esp_export_drawing(const struct esp_drawing *drawing, int format, char **bytes,
                       size_t *length, char *err, size_t errlen);
/* Returns whether a drawing can be exported in this format. */
bool esp_export_draws(int format);

/* Writes the whole file to memory; the caller frees *bytes. The format must not be HTML.
 * Returns 0 or a negative status with a message. */
int esp_export(const struct esp_export_options *options, char **bytes, size_t *length,
               char *err, size_t errlen);

#endif
