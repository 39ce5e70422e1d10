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
#include "viz/picture_options.h"
#include "viz/tree_view.h"

/* X(identifier, name, whether espalier-dot draws it) */
#define ESP_EXPORTS(X)                                                                         \
    X(DOT, "dot", true)                                                                        \
    X(SVG, "svg", true)                                                                        \
    X(PNG, "png", true)                                                                        \
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
/* The format that the ending of a path names; -1: none. */
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
};

/* Makes the whole file in memory; the caller frees *bytes. Returns 0 or a negative status with
 * a sentence. The format is none of web_page.h's. */
int esp_export(const struct esp_export_options *options, char **bytes, size_t *length,
               char *err, size_t errlen);

#endif
