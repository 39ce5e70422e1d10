/* goodput_rate.h - tokens per second of the last iterations, which turns costs into tokens:
 * lambda of goodput.c. Plain decoding is the lowest rate.
 */
#ifndef ESP_GOODPUT_RATE_H
#define ESP_GOODPUT_RATE_H

#include "engine/costs.h"
#include "engine/drafters/drafter.h"

enum { ESP_RATE_AHEAD = 16 }; /* rows that may come as a class */

struct esp_rate {
    double tokens, seconds;                                /* decaying sums */
    double now;                                            /* tokens per second */
    int budget;                                            /* maximum nodes of a tree */
    double verify[ESP_MAX_NODES / 8 + ESP_RATE_AHEAD + 2]; /* seconds by rows */
};

/* Reads the measured costs for trees of at most `budget` nodes. */
void esp_rate_read(struct esp_rate *rate, const struct esp_costs *costs, int budget);

/* Cost of a row, in tokens, after a tree of n nodes: the class with the least cost per row. */
double esp_rate_row(const struct esp_rate *rate, int n);

void esp_rate_learn(struct esp_rate *rate, int tokens, double seconds);

#endif
