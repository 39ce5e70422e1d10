/* espalier_ranks.h - reports how the target is divided among ranks (engine option `ranks`), and
 * how long its passes are expected to take.
 *
 * Part of the public interface.
 */
#ifndef ESPALIER_RANKS_H
#define ESPALIER_RANKS_H

#include <stdbool.h>

#include "engine/espalier.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_RANK_KINDS_MOST = 8, ESP_RANKS_MOST = 64 };

/* Describes the matrices of one kind. `part` counts key/value heads for attention, and outputs
 * for other matrices. */
struct esp_rank_kind_report {
    const char *word, *name;  /* word: name in options ("mlp"); name: name in tables ("gate,
                                 up") */
    double bytes;             /* weights that a one-row pass reads if one process computes
                               * everything */
    bool whole;               /* every rank computes all outputs of these matrices */
    int part[ESP_RANKS_MOST]; /* (ranks) */
    double gathered;          /* bytes that the ranks exchange for each row of a pass */
    int exchanges;            /* number of exchanges in one pass */
};

struct esp_rank_report {
    int ranks, kinds;
    bool by_layers; /* true: each rank computes whole layers */
    int layers[ESP_RANKS_MOST +
               1]; /* if by_layers: number of layers of each rank. The last entry is for
                      the last layers, which rank 0 computes */
    struct esp_rank_kind_report kind[ESP_RANK_KINDS_MOST]; /* only kinds that the model has */
    double latency; /* measured seconds of a small exchange */
    double rate;    /* measured bytes per second of a large exchange */
    double read;    /* measured bytes per second that the slowest rank reads from memory */
};

/* Makes every later exchange slower by this delay, to simulate a network between the ranks:
 * "500us", or with a rate "10ms,1Gb/s"; "0us" removes the delay. Returns ESP_E_ARGUMENT if
 * the text is not a delay or the engine has no ranks. */
int esp_engine_set_delay(struct esp_engine *engine, const char *delay, char *err,
                         size_t errlen);

/* Fills in the report. Returns false if the engine has no ranks. */
bool esp_engine_ranks(const struct esp_engine *engine, struct esp_rank_report *report);
/* Estimates the seconds of a pass over `rows` rows. Only the time to read weights and to
 * exchange rows is included. ranks: the assumed number of ranks; 1 means one process. An
 * exchange among n ranks takes log2(n) steps, and each step takes the measured time. Returns 0
 * if the engine has no ranks, or if the model has too few layers to be divided by layers. */
double esp_engine_ranks_expected(const struct esp_engine *engine, int ranks, int rows);

#ifdef __cplusplus
}
#endif
#endif
