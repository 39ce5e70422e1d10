/* heat.h - colours tokens in five steps, by the probabilities that the target gave them or by
 * their origin. */
#ifndef ESP_HEAT_H
#define ESP_HEAT_H

#include "engine/text_token.h"

enum esp_heat {
    ESP_HEAT_OFF,
    ESP_HEAT_SURPRISAL, /* -log2 p of the token */
    ESP_HEAT_ENTROPY,   /* entropy of the target's distribution for the token, in bits */
    ESP_HEAT_RANK,      /* rank of the token in that distribution, from 1 */
    ESP_HEAT_ORIGIN,    /* origin of the token */
    ESP_HEATS
};

enum { ESP_HEAT_STEPS = 5 };

/* Returns the colour step of a token, 0 (expected) to 4 (surprising), or -1 if unknown. */
int esp_heat_step(int heat, int kind, const struct esp_token_score *score);
/* Returns the style of a step. */
int esp_heat_style(int step);
/* Returns the upper ends of the first four steps of surprisal, entropy or rank. */
const double *esp_heat_limits(int heat);
/* Returns the title of a legend, for example "surprisal, bits". */
const char *esp_heat_title(int heat);
/* Returns the label of a step, such as "1-2", or NULL if no token can have this step. */
const char *esp_heat_words(int heat, int step);

/* Returns -log2 p, or NaN if p is unknown or 0. */
double esp_surprisal(const struct esp_token_score *score);

#endif
