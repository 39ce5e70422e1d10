/* heat.h - tokens coloured by what the target thought of them, in five steps. */
#ifndef ESP_HEAT_H
#define ESP_HEAT_H

#include "engine/text_token.h"

enum esp_heat {
    ESP_HEAT_OFF,
    ESP_HEAT_SURPRISAL, /* -log2 p of the token */
    ESP_HEAT_ENTROPY,   /* of the distribution it was chosen from, in bits */
    ESP_HEAT_RANK,      /* among the likeliest tokens */
    ESP_HEAT_ORIGIN,    /* who wrote it */
    ESP_HEATS
};

enum { ESP_HEAT_STEPS = 5 };

/* The step of a token, 0 (expected) to 4 (surprising); -1: unknown, or the user's words. */
int esp_heat_step(int heat, int kind, const struct esp_token_score *score);
/* The style of a step. */
int esp_heat_style(int step);
/* The ends of the first four steps of surprisal, entropy or rank. */
const double *esp_heat_limits(int heat);
/* "surprisal, bits"; and the words for a step: "1-2". NULL: nothing has this step. */
const char *esp_heat_title(int heat);
const char *esp_heat_words(int heat, int step);

/* -log2 p; NaN: unknown. */
double esp_surprisal(const struct esp_token_score *score);

#endif
