/* export.h - one iteration as a file: a picture, a text or a line of JSON.
 *
 * A page plays several iterations: web_page.h makes it.
 * The command line exports iterations of a recording, the interface the one it shows; both come
 * here. Text is what the tree pane draws, JSON is the line that a recording has, pictures come
 * from espalier-dot (viz/dot_helper.h).
 */
#ifndef ESP_EXPORT_H
#define ESP_EXPORT_H

#include "sessions/recording.h"
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

/* The format of this name, which is how its files end ("svg"); -1: there is none. */
int esp_export_find(const char *name);
/* The format that the ending of a path names (.tex: tikz); -1: none. */
int esp_export_of_path(const char *path);

struct esp_export_options {
    const struct esp_iteration *iteration;
    struct esp_tokens tokens;
    double time;      /* of the iteration, in seconds since the session's start */
    const char *line; /* its line in a recording, without newline; NULL: make one */
    size_t line_length;
    const char *models; /* "target <- draft", for captions; NULL: not known */
    int format;
    const char *theme; /* of a picture: "light" (NULL) or "dark" */
    int nodes;         /* of a picture: nodes at most; 0: all, -1: as fit on a slide */
    int caption;       /* of a picture: enum esp_caption */
    double aspect;     /* of a picture: width by height; 0: as it comes */
    bool ascii;        /* of a text: nothing beyond ASCII */
    int figure;        /* enum esp_figure_kind; _NONE: the tree, as espalier-dot draws it */
    const struct esp_export_facts *facts; /* for figures; NULL: none are known */
};

/* What a figure shows of a recording besides the iteration. */
struct esp_export_facts {
    int32_t *text; /* (text_count) tokens before it */
    int text_count;
    double *passes; /* (pass_count) as in struct esp_figure */
    int pass_count;
    char order[24];
};

/* Collects them for the iteration that is event `event`. It may read other events. Returns 0 or
 * a negative status with a sentence; esp_export_facts_free releases them. */
int esp_export_facts(struct esp_recording *recording, int event, struct esp_export_facts *facts,
                     char *err, size_t errlen);
void esp_export_facts_free(struct esp_export_facts *facts);

/* Writes a drawing as svg, tikz, or through espalier-dot as png or pdf; it must have been drawn
 * for that. The caller frees *bytes. Returns 0 or a negative status with a sentence. */
int esp_export_drawing(const struct esp_drawing *drawing, int format, char **bytes,
                       size_t *length, char *err, size_t errlen);
/* Whether drawings have this format. */
bool esp_export_draws(int format);

/* Makes the whole file in memory; the caller frees *bytes. Returns 0 or a negative status with
 * a sentence. The format is none of web_page.h's. */
int esp_export(const struct esp_export_options *options, char **bytes, size_t *length,
               char *err, size_t errlen);

#endif
