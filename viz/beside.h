/* beside.h - a picture that shows a paper's numbers beside numbers measured with this program.
 *
 * Two panels of bars have the same rows and the same scale. The left panel has the paper's
 * values. The right panel has the measured values. If they were measured in several ways, each
 * way has its own bar. The bars of the first way are outlined and the other bars are
 * filled, so they differ in more than colour.
 */
#ifndef ESP_BESIDE_H
#define ESP_BESIDE_H

#include "viz/colours.h"
#include "viz/drawing.h"

enum { ESP_BESIDE_ROWS = 24, ESP_BESIDE_HERE = 3, ESP_BESIDE_TEXT = 128 };

struct esp_beside_row {
    char label[ESP_BESIDE_TEXT];
    double paper;                 /* NaN means the paper has no value */
    double here[ESP_BESIDE_HERE]; /* here_count values; NaN means not measured */
};

struct esp_beside {
    char title[ESP_BESIDE_TEXT], measure[ESP_BESIDE_TEXT];
    char paper[ESP_BESIDE_TEXT], source[ESP_BESIDE_TEXT]; /* where the numbers come from */
    char here[ESP_BESIDE_HERE][ESP_BESIDE_TEXT];          /* (here_count) how it was measured */
    int here_count;
    double reference; /* a value that a dashed line marks in both panels; 0: no line */
    char reference_label[ESP_BESIDE_TEXT];
    struct esp_beside_row row[ESP_BESIDE_ROWS]; /* (rows) */
    int rows;
};

/* Fills an empty drawing. Values are positive. */
void esp_beside_draw(const struct esp_beside *beside, const struct esp_colours *colours,
                     struct esp_drawing *drawing);

#endif
