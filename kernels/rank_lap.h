/* rank_lap.h - describes how a rank spends the time from one exchange to the next. */
#ifndef ESP_RANK_LAP_H
#define ESP_RANK_LAP_H

/* A pass is a sequence of laps. In a lap, every rank first computes, then waits for the
 * slowest rank. Then the ranks exchange numbers. If a pass has many exchanges, one lap
 * describes several of them. Times are in seconds. */
struct esp_rank_lap {
    int rank;
    float compute, wait, hop;
};

enum { ESP_RANK_LAPS = 128 }; /* maximum number for a pass, summed over all ranks */

#endif
