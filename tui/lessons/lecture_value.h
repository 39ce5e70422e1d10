/* lecture_value.h - evaluates the expressions in the text of a lesson. An expression combines
 * numbers of the lesson's runs by sums, products and comparisons. */
#ifndef ESP_LECTURE_VALUE_H
#define ESP_LECTURE_VALUE_H

#include "tui/lessons/lecture.h"

/* Evaluates an expression. The value of a comparison is 1 or 0. Returns 0, or ESP_E_FORMAT with
 * a message. The caller must put the name of the file before the message. */
int esp_lecture_value(const struct esp_lecture *lecture, const char *expression, double *value,
                      char *err, size_t errlen);
/* Returns the iteration that `name` ("RUN[N]") refers to, and sets *run. Returns NULL if there
 * is no such iteration. */
const struct esp_iteration *esp_lecture_named(const struct esp_lecture *lecture,
                                              const char *name, struct esp_run **run);

/* Writes the likeliest rejected path to `path`. Its last node is the rejected node to which the
 * target gave the highest probability; its first node is a child of the root. Returns the
 * length of the path, or 0 if nothing was rejected. */
int esp_lecture_road(const struct esp_iteration *it, int path[ESP_MAX_NODES]);

#endif
