/* rank_options.h - declares the options for opening a group of ranks, and the times that a
 * group measures. */
#ifndef ESP_RANK_OPTIONS_H
#define ESP_RANK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/rank_lap.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_MAX_RANKS = 64 };

/* If mpirun started a program together with its ranks, these environment variables contain the
 * path of the memory that they share, and the number of ranks. */
#define ESP_RANKS_GIVEN "ESPALIER_RANKS_GIVEN"
#define ESP_RANKS_COUNT "ESPALIER_RANKS_COUNT"

struct esp_rank_options {
    int ranks;   /* 2..ESP_MAX_RANKS */
    int threads; /* threads of each rank; 0 divides the cores among the ranks */
    /* If hosts is NULL, all ranks run on this machine. Otherwise it has the names of machines,
     * separated by commas, beginning with this machine. `launcher` is the mpirun that starts
     * processes on them; NULL means the first mpirun that is found. */
    const char *hosts, *launcher;
    bool given; /* mpirun has started the program together with its ranks */
    /* The share of the model that each rank computes, relative to the other ranks. If all
     * shares are 0, the parts are equal. */
    double share[ESP_MAX_RANKS];
    unsigned whole; /* bit k: every rank has all of the matrices of kind k (rank_plan.h) */
    bool by_layers; /* ranks have whole layers, not some rows of every layer */
    bool planned;   /* `whole` is given; otherwise the cost model chooses it */
};

/* Is called repeatedly while a rank does not answer, in the thread that waits for the rank.
 * seconds: how long the thread has waited. Returns whether to wait longer. */
typedef bool esp_rank_patience(void *user, int rank, int ranks, double seconds);

/* Holds the times of the exchanges between ranks, measured in rank 0. */
struct esp_rank_times {
    double seconds; /* spent in exchanges, including waiting for other ranks */
    double bytes;   /* received in exchanges */
    long exchanges;
    double latency; /* measured seconds of a small exchange */
    double rate;    /* measured bytes per second of a large exchange */
    int starts;     /* how often the ranks were started */
    /* (lap_count) The laps of the last pass, in order; each lap has one entry for every rank.
     * Valid until the next pass. */
    const struct esp_rank_lap *laps;
    int lap_count;
};

#ifdef __cplusplus
}
#endif
#endif
