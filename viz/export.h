/* export.h - exports one iteration: as a picture, a text or a line of JSON.
 *
 * The command line exports iterations of a recording, the interface the one it shows. JSON is
 * the iteration's line in a recording; espalier-dot (viz/dot_helper.h) draws pictures of it.
 * Figures and text come from the iteration itself. HTML pages hold several iterations:
 * viz/page/page_writer.h.
 */
#ifndef ESP_EXPORT_H
#define ESP_EXPORT_H

#include "viz/figure.h"
#include "viz/picture_options.h"
#include "viz/tree_view.h"

/* X(identifier, name, whether espalier-dot draws trees in it) */
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

/* The format with this name, which is also its file extension ("svg"); -1: none. */
int esp_export_find(const char *name);
/* The format for the extension of a path (.tex: tikz); -1: none. */
int esp_export_of_path(const char *path);

struct esp_export_options {
    const struct esp_iteration *iteration;
    struct esp_tokens tokens;
    const char *line; /* JSON, pictures: its line in a recording, without newline */
    size_t line_length;
    const char *models; /* "target <- draft", for captions; NULL: unknown */
    int format;
    const char *theme; /* pictures: "light" (NULL) or "dark" */
    int nodes;         /* pictures: maximum of nodes; 0: all, -1: as many as fit a slide */
    int caption;       /* pictures: enum esp_caption */
    double aspect;     /* pictures: width / height; 0: any */
    bool ascii;        /* text: ASCII only */
    int figure;        /* enum esp_figure_kind; _NONE: the tree, drawn by espalier-dot */
    const struct esp_export_facts *facts; /* for figures; NULL: none */
};

/* Data of the recording that figures need besides the iteration. */
struct esp_export_facts {
    int32_t *text; /* (text_count) tokens before it */
    int text_count;
    double *passes; /* (pass_count) as in struct esp_figure */
    int pass_count;
    char order[24];
};

/* Converts a drawing to svg or tikz, or through espalier-dot to png or pdf. It must have been
 * drawn for that format. The caller frees *bytes. Returns 0 or a negative status with a
 * message. */
int esp_export_drawing(const struct esp_drawing *drawing, int format, char **bytes,
                       size_t *length, char *err, size_t errlen);
/* Whether a drawing can have this format. */
bool esp_export_draws(int format);

/* Makes the whole file in memory; the caller frees *bytes. The format must not be HTML. Returns
 * 0 or a negative status with a message. */
int esp_export(const struct esp_export_options *options, char **bytes, size_t *length,
               char *err, size_t errlen);

#endif
