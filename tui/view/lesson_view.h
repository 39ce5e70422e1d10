/* lesson_view.h - a lesson on the screen: text, picture, question; and the list of lessons. */
#ifndef ESP_LESSON_VIEW_H
#define ESP_LESSON_VIEW_H

#include "tui/model/lecture.h"
#include "viz/canvas.h"

/* Draws the page. `keys`: with the line that says which keys there are. */
void esp_lesson_draw(struct esp_canvas *canvas, struct esp_lecture *lecture, bool keys);
/* Draws the lessons that come with the program, one of them as selected. */
void esp_lesson_draw_list(struct esp_canvas *canvas, int selected);

#endif
