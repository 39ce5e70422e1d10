/* rank_options.h - how a group of ranks is opened, and what is known about one. */
#ifndef ESP_RANK_OPTIONS_H
#define ESP_RANK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_MAX_RANKS = 64 };

struct esp_rank_options {
    int ranks;             /* 2..ESP_MAX_RANKS */
    int threads;           /* of each rank; 0: the cores divided among the ranks */
    const char *transport; /* NULL: "shm" */
    /* How much of the model each rank computes, in relation to the others; all 0: the same. */
    double share[ESP_MAX_RANKS];
    unsigned whole; /* bit k: the matrices of kind k (plan.h) are whole in every rank */
    bool planned;   /* `whole` is given; else the cost model chooses */
};

/* What the exchanges between ranks cost, seen from rank 0. */
struct esp_rank_times {
    double seconds; /* in exchanges, waiting for other ranks included */
    double bytes;   /* that came in */
    long exchanges;
    double latency; /* measured: seconds of a small exchange, */
    double rate;    /* and bytes per second of a large one */
};

#ifdef __cplusplus
}
#endif
#endif
