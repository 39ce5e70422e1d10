/* picture_options.h - options of a picture, other than its colours. */
#ifndef ESP_PICTURE_OPTIONS_H
#define ESP_PICTURE_OPTIONS_H

/* X(identifier, name): how much text is above and below a picture. */
#define ESP_CAPTIONS(X)                                                                        \
    X(FULL, "full")   /* what happened, settings, times, and a legend */                       \
    X(SHORT, "short") /* what happened, and a legend */                                        \
    X(NONE, "none")   /* nothing */

enum esp_caption {
#define X(name, text) ESP_CAPTION_##name,
    ESP_CAPTIONS(X)
#undef X
        ESP_CAPTIONS_COUNT
};

/* Returns the caption with this name (enum esp_caption), or -1. */
int esp_caption_find(const char *name);
const char *esp_caption_name(int caption);

/* Reads "16:9" as width divided by height: 1.78. Returns 0 if the text is not of this form, or
 * if the ratio is narrower than 1:5 or wider than 5:1. */
double esp_aspect_of(const char *text);

#endif
