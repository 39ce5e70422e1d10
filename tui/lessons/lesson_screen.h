/* lesson_screen.h - the page of the interface that runs lessons, with the list to choose
 * from. */
#ifndef ESP_LESSON_SCREEN_H
#define ESP_LESSON_SCREEN_H

#include "tui/view/page.h"
#include "tui/worker/worker.h"

struct esp_lesson_screen;

/* The functions of the page, which get a struct esp_lesson_screen. */
extern const struct esp_page_ops esp_lesson_screen_ops;

/* Opens a lesson by its name, number or path, or the list of lessons (""). The worker, which
 * is NULL in a replay, decodes what the lesson asks for, with `options`; both must stay until
 * the screen is closed. Returns NULL with a message on failure. */
struct esp_lesson_screen *esp_lesson_screen_open(struct esp_worker *worker,
                                                 const struct esp_engine_options *options,
                                                 const char *name, char *err, size_t errlen);

#endif
