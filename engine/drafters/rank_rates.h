/* rank_rates.h - measures how often the k-th child of an accepted node is accepted.
 *
 * Counts of tried and accepted children are added to a prior of 16 trials with the rate 0.6 /
 * (k + 1)^2 for k = 0, 1, ... By this prior, the first guess is right 60 % of the time, and the
 * rates follow the power law that Sequoia found (Chen et al. 2024). They sum to 0.95. Old
 * counts decay, so that the rates adapt when the subject of the text changes. Each key (model
 * pair, temperature, kind of draw) has its own counts, in one file of the state folder.
 */
#ifndef ESP_RANK_RATES_H
#define ESP_RANK_RATES_H

#include "engine/drafters/best_shape.h"

enum { ESP_RANKS = ESP_SHAPE_RANKS };

struct esp_rank_rates {
    double tried[ESP_RANKS], accepted[ESP_RANKS];
    char key[384], file[64]; /* key of the counts, and their file; "" means that there is no
                                file */
    bool learned;            /* true if some counts are not in the file yet */
};

double esp_rank_rate(const struct esp_rank_rates *rates, int rank);

/* Learns from a finished iteration: counts which child was accepted below the root and below
 * each accepted node. */
void esp_rank_rates_learn(struct esp_rank_rates *rates, const struct esp_iteration *iteration);

/* Switches to the counts for `key`: stores the current counts and reads the new counts. With an
 * empty key, counts are not stored. With NULL, there are no counts, only the prior. */
void esp_rank_rates_turn(struct esp_rank_rates *rates, const char *key);

/* Writes unsaved counts to the file. If that fails, the next run must learn them again. */
void esp_rank_rates_save(struct esp_rank_rates *rates);

#endif
