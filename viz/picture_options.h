/* picture_options.h - what a user can choose about a picture, besides its colours. */
#ifndef ESP_PICTURE_OPTIONS_H
#define ESP_PICTURE_OPTIONS_H

/* X(identifier, name): the words above and below what is shown */
#define ESP_CAPTIONS(X)                                                                        \
    X(FULL, "full")   /* what happened, with which settings, how long, and a legend */         \
    X(SHORT, "short") /* what happened, and a legend */                                        \
    X(NONE, "none")   /* nothing */

enum esp_caption {
#define X(name, text) ESP_CAPTION_##name,
    ESP_CAPTIONS(X)
#undef X
        ESP_CAPTIONS_COUNT
};

/* The caption of this name, or -1. */
int esp_caption_find(const char *name);
const char *esp_caption_name(int caption);

/* Reads "16:9" as width by height: 1.78. Returns 0 if it is no such pair, or one narrower or
 * wider than 1 to 5. */
double esp_aspect_of(const char *text);

#endif
