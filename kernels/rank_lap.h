/* rank_lap.h - what a rank did between two exchanges with the others. */
#ifndef ESP_RANK_LAP_H
#define ESP_RANK_LAP_H

/* A pass is a sequence of laps. In a lap, every rank first computes, then waits for the
 * slowest rank, and then numbers travel between the ranks. If a pass has many exchanges, one
 * lap describes several of them. Times are in seconds. */
struct esp_rank_lap {
    int rank;
    float compute, wait, hop;
};

enum { ESP_RANK_LAPS = 128 }; /* the most laps of a pass, counted over all ranks */

#endif
