/* dot_helper.h - runs the program espalier-dot, which draws the tree of an iteration.
 *
 * The process of the program has limits: 10 seconds, 512 MB of memory, 64 MB of output. Its
 * standard input and output are files in memory, so the two processes never wait for each other
 * to read or write, and the caller gets a whole picture or none.
 */
#ifndef ESP_DOT_HELPER_H
#define ESP_DOT_HELPER_H

#include "engine/espalier.h"
#include "viz/picture_options.h"

struct esp_dot_options {
    const char *format; /* "dot", "svg", "png" or "pdf" */
    const char *theme;  /* "light" or "dark" */
    const char *models; /* names of the models, for the caption; NULL if none */
    int nodes;          /* maximum number of nodes; 0: all, -1: as many as fit on a slide */
    int caption;        /* enum esp_caption */
    double aspect;      /* width divided by height; 0: chosen to fit the tree */
    int seconds;        /* time limit; 0 means 10 */
};

/* Draws the iteration in `line`, a line of a recording (event_json.h). The caller frees
 * *picture. Returns 0, or a negative status with a message in err: ESP_E_UNSUPPORTED if the
 * program is missing, ESP_E_FORMAT if it failed or exceeded a limit.
 *
 * The program is the value of the environment variable ESPALIER_DOT if it is set, otherwise
 * espalier-dot in the folder of the running program, otherwise the first espalier-dot in
 * PATH. */
int esp_dot_draw(const char *line, size_t length, const struct esp_dot_options *options,
                 char **picture, size_t *size, char *err, size_t errlen);

/* Converts an SVG of width x height points to "png" or "pdf". Returns the same as
 * esp_dot_draw(). */
int esp_dot_convert(const char *svg, size_t length, double width, double height,
                    const char *format, char **picture, size_t *size, char *err, size_t errlen);

#endif
