/* rank_options.h - options for opening a group of ranks, and its measured times. */
#ifndef ESP_RANK_OPTIONS_H
#define ESP_RANK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_MAX_RANKS = 64 };

/* Environment variables of a program that was started by mpirun together with its ranks: the
 * path of the memory that they share, and the number of ranks. */
#define ESP_RANKS_GIVEN "ESPALIER_RANKS_GIVEN"
#define ESP_RANKS_COUNT "ESPALIER_RANKS_COUNT"

struct esp_rank_options {
    int ranks;   /* 2..ESP_MAX_RANKS */
    int threads; /* of each rank; 0: the cores are divided among the ranks */
    /* NULL hosts: all ranks run on this machine. Otherwise the names of machines, separated
     * by commas, this machine first. launcher starts processes on them; NULL: the first
     * mpirun that is found. */
    const char *hosts, *launcher;
    /* Relative amount of the model that each rank computes; all 0: equal parts. */
    double share[ESP_MAX_RANKS];
    unsigned whole; /* bit k: the matrices of kind k (rank_plan.h) are whole in every rank */
    bool by_layers; /* ranks have whole layers, not some rows of every layer */
    bool planned;   /* `whole` is given; otherwise the cost model chooses it */
};

/* Times of the exchanges between ranks, as rank 0 sees them. */
struct esp_rank_times {
    double seconds; /* spent in exchanges, including waiting for other ranks */
    double bytes;   /* received */
    long exchanges;
    double latency; /* measured: seconds of a small exchange */
    double rate;    /* measured: bytes per second of a large one */
};

#ifdef __cplusplus
}
#endif
#endif
