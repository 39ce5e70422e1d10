/* rank_options.h - how a group of ranks is opened, and what is known about one. */
#ifndef ESP_RANK_OPTIONS_H
#define ESP_RANK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/rank_lap.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_MAX_RANKS = 64 };

/* Environment of a program that mpirun has started together with its ranks: the path of the
 * memory that it shares with them, and how many they are. */
#define ESP_RANKS_GIVEN "ESPALIER_RANKS_GIVEN"
#define ESP_RANKS_COUNT "ESPALIER_RANKS_COUNT"

struct esp_rank_options {
    int ranks;   /* 2..ESP_MAX_RANKS */
    int threads; /* of each rank; 0: the cores divided among the ranks */
    /* NULL: processes of this machine. Else names of machines with commas, this one first, and
     * the program that starts processes on them, NULL: the first mpirun that is found. */
    const char *hosts, *launcher;
    bool given; /* mpirun has started the program together with its ranks */
    /* How much of the model each rank computes, in relation to the others; all 0: the same. */
    double share[ESP_MAX_RANKS];
    unsigned whole; /* bit k: the matrices of kind k (plan.h) are whole in every rank */
    bool by_layers; /* ranks have whole layers, not rows of each */
    bool planned;   /* `whole` is given; else the cost model chooses */
};

/* Called again and again while a rank does not answer, in the thread that waits for it. seconds:
 * for how long. Returns whether to wait on. */
typedef bool esp_rank_patience(void *user, int rank, int ranks, double seconds);

/* What the exchanges between ranks cost, seen from rank 0. */
struct esp_rank_times {
    double seconds; /* in exchanges, waiting for other ranks included */
    double bytes;   /* that came in */
    long exchanges;
    double latency; /* measured: seconds of a small exchange, */
    double rate;    /* and bytes per second of a large one */
    int starts;     /* how often the ranks were started */
    /* (lap_count) the laps of the last pass in order, in each one entry for every rank. Valid
     * until the next pass. */
    const struct esp_rank_lap *laps;
    int lap_count;
};

#ifdef __cplusplus
}
#endif
#endif
