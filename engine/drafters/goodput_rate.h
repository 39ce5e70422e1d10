/* goodput_rate.h - measures lambda for goodput.c. Lambda is the rate of the latest iterations
 * in tokens per second, and converts costs from seconds into tokens. It is never less than the
 * rate of plain decoding.
 */
#ifndef ESP_GOODPUT_RATE_H
#define ESP_GOODPUT_RATE_H

#include "engine/costs.h"
#include "engine/drafters/drafter.h"

enum { ESP_RATE_AHEAD = 16 }; /* maximum number of additional rows in esp_rate_row() */

struct esp_rate {
    double tokens, seconds;                                /* decaying sums over iterations */
    double now;                                            /* lambda, in tokens per second */
    int budget;                                            /* maximum nodes of a tree */
    double verify[ESP_MAX_NODES / 8 + ESP_RATE_AHEAD + 2]; /* [n]: seconds to verify n rows */
};

/* Reads the measured costs for trees of at most `budget` nodes. */
void esp_rate_read(struct esp_rate *rate, const struct esp_costs *costs, int budget);

/* Returns the cost, in tokens, of adding a row to a tree of n nodes. The function considers
 * adding 1 to ESP_RATE_AHEAD rows, and returns the lowest cost per added row. */
double esp_rate_row(const struct esp_rate *rate, int n);

void esp_rate_learn(struct esp_rate *rate, int tokens, double seconds);

#endif
