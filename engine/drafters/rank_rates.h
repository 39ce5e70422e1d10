/* rank_rates.h - how often the k-th child of an accepted node is accepted: measured and
 * remembered.
 *
 * Counts of children tried and accepted stand beside a prior of 16 trials with a rate of 0.6 /
 * (k + 1)^2 for k = 0, 1, ...: a first guess right 60 % of the time, falling by a power law as
 * Sequoia found (Chen et al. 2024), in all 0.95. Old counts fade, so that the rates follow a
 * change of subject. Counts for one key (a pair of models, temperature, kind of draw) are kept
 * in one file of the state folder.
 */
#ifndef ESP_RANK_RATES_H
#define ESP_RANK_RATES_H

#include "engine/drafters/best_shape.h"

enum { ESP_RANKS = ESP_SHAPE_RANKS };

struct esp_rank_rates {
    double tried[ESP_RANKS], accepted[ESP_RANKS];
    char key[384], file[64]; /* what the counts are for, where they are kept; "": nowhere */
    bool learned;            /* something that is not in the file */
};

double esp_rank_rate(const struct esp_rank_rates *rates, int rank);

/* Counts a finished iteration: for every accepted node (the root is one), which child was
 * accepted. */
void esp_rank_rates_learn(struct esp_rank_rates *rates, const struct esp_iteration *iteration);

/* Turns to the counts for `key`, if they are not the current ones: stores those and reads the
 * others. An empty key has no file. NULL: no counts, only the prior. */
void esp_rank_rates_turn(struct esp_rank_rates *rates, const char *key);

/* Stores what is not yet in the file. Where that fails, the next run learns again. */
void esp_rank_rates_save(struct esp_rank_rates *rates);

#endif
