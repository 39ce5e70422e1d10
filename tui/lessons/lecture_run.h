/* lecture_run.h - decodes the runs of a lesson that are not recordings. */
#ifndef ESP_LECTURE_RUN_H
#define ESP_LECTURE_RUN_H

#include "engine/espalier.h"
#include "tui/lessons/lecture.h"

/* Decodes the runs with `engine`. Opens another engine from `options` for the lesson if
 * `engine` is NULL or if the lesson sets the time of a pass. Reports errors with
 * esp_lecture_say(). */
void esp_lecture_decode(struct esp_lecture *lecture, const struct esp_engine_options *options,
                        struct esp_engine *engine);

#endif
