/* lesson_view.h - draws a lesson (text, picture, question) and the list of lessons. */
#ifndef ESP_LESSON_VIEW_H
#define ESP_LESSON_VIEW_H

#include "tui/lessons/lecture.h"
#include "viz/canvas.h"

/* Draws the current page. If `keys` is true, also draws a line that names the keys. */
void esp_lesson_draw(struct esp_canvas *canvas, struct esp_lecture *lecture, bool keys);
/* Draws the list of the bundled lessons. */
void esp_lesson_draw_list(struct esp_canvas *canvas, int selected);

#endif
