/* laps.h - says when each rank computes, waits, or exchanges data during a pass of several
 * ranks. */
#ifndef ESP_LAPS_H
#define ESP_LAPS_H

#include "engine/espalier_event.h"

enum esp_lap_part { ESP_LAP_COMPUTE, ESP_LAP_WAIT, ESP_LAP_HOP, ESP_LAP_PARTS };

/* The names of the parts of a lap: "computes", "waits", "exchanges". */
extern const char *const esp_lap_words[ESP_LAP_PARTS];

/* Describes a period of the pass in which a rank computes, waits, or exchanges data. */
struct esp_lap_piece {
    double begin, seconds; /* `begin` counts from the beginning of the pass */
    int part;
};

enum { ESP_LAP_PIECES = ESP_LAP_PARTS * ESP_RANK_LAPS };

/* Returns the number of ranks; 0 means that the iteration ran without ranks. */
int esp_laps_ranks(const struct esp_iteration *it);
/* Writes the pieces of a rank in order, and returns the number of pieces. A lap (rank_lap.h)
 * begins in all ranks at the same time. Sets *all to the seconds of the whole pass. */
int esp_laps_of(const struct esp_iteration *it, int rank,
                struct esp_lap_piece pieces[ESP_LAP_PIECES], double *all);
/* Writes for how many seconds of the pass a rank computes, waits, and exchanges data. */
void esp_laps_sums(const struct esp_iteration *it, int rank, double sums[ESP_LAP_PARTS]);

#endif
