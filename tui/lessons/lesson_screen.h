/* lesson_screen.h - the page of the interface that lists the lessons and shows the chosen
 * lesson. */
#ifndef ESP_LESSON_SCREEN_H
#define ESP_LESSON_SCREEN_H

#include "tui/view/page.h"
#include "tui/worker/worker.h"

struct esp_lesson_screen;

/* The functions that draw the page and handle its keys. Their first argument is a struct
 * esp_lesson_screen. */
extern const struct esp_page_ops esp_lesson_screen_ops;

/* Opens a lesson by its name, number or path. The name "" opens the list of lessons. The worker
 * decodes the runs of the lesson with `options`; in a replay, `worker` is NULL. Both must exist
 * until the screen is closed. Returns NULL with a message on failure. */
struct esp_lesson_screen *esp_lesson_screen_open(struct esp_worker *worker,
                                                 const struct esp_engine_options *options,
                                                 const char *name, char *err, size_t errlen);

#endif
