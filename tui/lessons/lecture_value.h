/* lecture_value.h - evaluates the expressions of a lesson: numbers of its runs, and their
 * sums, products and comparisons. */
#ifndef ESP_LECTURE_VALUE_H
#define ESP_LECTURE_VALUE_H

#include "tui/lessons/lecture.h"

/* Evaluates an expression; a comparison yields 1 or 0. Returns 0, or ESP_E_FORMAT with a
 * message to be put after the name of the file. */
int esp_lecture_value(const struct esp_lecture *lecture, const char *expression, double *value,
                      char *err, size_t errlen);
/* Returns the iteration that "RUN[N]" names, and sets *run; or returns NULL. */
const struct esp_iteration *esp_lecture_named(const struct esp_lecture *lecture,
                                              const char *name, struct esp_run **run);

/* Writes the road not taken: the path from the root's child to the rejected node that the
 * target found likeliest. Returns its length, or 0 if nothing was rejected. */
int esp_lecture_road(const struct esp_iteration *it, int path[ESP_MAX_NODES]);

#endif
