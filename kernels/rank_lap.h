/* rank_lap.h - what a rank did between two exchanges with the others. */
#ifndef ESP_RANK_LAP_H
#define ESP_RANK_LAP_H

/* A pass is a sequence of laps. In each, every rank computes, then waits for the slowest one,
 * then the numbers of all are on their way. In seconds. Of many exchanges several are one lap. */
struct esp_rank_lap {
    int rank;
    float compute, wait, hop;
};

enum { ESP_RANK_LAPS = 128 }; /* at most, of all ranks together */

#endif
