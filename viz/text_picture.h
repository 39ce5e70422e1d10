/* text_picture.h - draws a text as a picture, with the tokens coloured as viz/heat.h says.
 *
 * No meaning depends on colour alone: the steps also differ in lightness, and the higher steps
 * are underlined. A legend explains the steps.
 */
#ifndef ESP_TEXT_PICTURE_H
#define ESP_TEXT_PICTURE_H

#include "viz/drawing.h"
#include "viz/heat.h"

/* A token of the text. */
struct esp_picture_token {
    const char *bytes; /* (length) its text; empty for a control token of the chat format */
    size_t length;
    int kind; /* enum esp_text_kind */
    const struct esp_token_score *score;
};

struct esp_text_picture {
    int heat;                               /* enum esp_heat; OFF is treated as ORIGIN */
    const char *theme;                      /* "light" (NULL) or "dark" */
    const char *models;                     /* names of the models, for the caption */
    int caption;                            /* enum esp_caption */
    const struct esp_picture_token *tokens; /* (count) */
    int count;
};

/* Fills an empty drawing. Returns 0, or a negative status with a message in err. */
int esp_text_picture_draw(const struct esp_text_picture *picture, struct esp_drawing *drawing,
                          char *err, size_t errlen);

#endif
