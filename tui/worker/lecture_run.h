/* lecture_run.h - decodes the runs of a lesson that no recording brings. */
#ifndef ESP_LECTURE_RUN_H
#define ESP_LECTURE_RUN_H

#include "engine/espalier.h"
#include "tui/model/lecture.h"

/* Fills the runs, with `engine` unless the lesson wants a target that takes long (or it is
 * NULL): then with one that is opened for it, as `options` say. What goes wrong is said in the
 * lecture. */
void esp_lecture_decode(struct esp_lecture *lecture, const struct esp_engine_options *options,
                        struct esp_engine *engine);

#endif
