/* learn_page.h - opens the page of lessons (tui/lessons/lesson_screen.h). */
#ifndef ESP_LEARN_PAGE_H
#define ESP_LEARN_PAGE_H

#include "tui/commands/control.h"

/* Opens a lesson by its name, number or path. The name "" opens the list of lessons. Returns 0
 * or a negative status, with a reply. */
int esp_learn_page_open(struct esp_control *control, const char *name);

#endif
