/* divided.h - runs passes of models that are divided among ranks, for tests of the CPU and the
 * CUDA backend. The results must be bit-identical to the results with one rank. */
#ifndef ESP_TEST_DIVIDED_H
#define ESP_TEST_DIVIDED_H

#include <sys/types.h>

#include "engine/model/model.h"
#include "kernels/ranks/rank_plan.h"

/* CACHE: rows of the KV cache. PREFIX: tokens before the tree. NODES: nodes of the tree. */
enum { CACHE = 80, PREFIX = 9, NODES = 12 };

/* Describes how a model is divided among ranks. */
struct division {
    int ranks, threads; /* number of ranks; threads of each rank on the CPU */
    double share[5];
    unsigned whole;
    bool by_layers;
};

enum {
    ATTENTION = 1 << ESP_RANK_ATTENTION,
    OUTPUT = 1 << ESP_RANK_OUTPUT,
    MLP = 1 << ESP_RANK_MLP | 1 << ESP_RANK_EXPERTS,
    DOWN = 1 << ESP_RANK_DOWN,
    HEAD = 1 << ESP_RANK_HEAD,
    STATES = 1 << ESP_RANK_STATES,
    GATES = 1 << ESP_RANK_GATES
};

/* Starts the ranks of a backend, unless there is only one. Returns the status. */
int divided_start(struct esp_backend *backend, const struct division *d, char *err,
                  size_t errlen);

/* Opens a model of tests/vectors, which the test then divides. */
struct esp_model *divided_model(const char *name);

/* A model on a backend. It has a KV cache, and rows for the logits and the hidden states. */
struct divided {
    const struct esp_backend_ops *ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits, *states;
    int vocabulary, hidden;
};

void divided_open_on(struct divided *m, struct esp_backend *backend,
                     const struct esp_model_desc *desc);
void divided_close_on(struct divided *m);

/* Runs a pass over `count` rows after the first `first` rows of the cache. The tokens are
 * `seed`, seed + 1, ... The first `text` rows of the pass belong to the text, so they cannot be
 * removed later. Returns the status. */
int divided_run_rows(struct divided *m, int first, int seed, int count, int text, bool wanted);
int divided_run_chain(struct divided *m, int first, int count, bool wanted);

/* The results of divided_compute(): all outputs of passes over a chain, over a tree, and over
 * one more row after accepting a path of the tree. */
struct divided_results {
    size_t count;
    float *values; /* the caller must free() it */
};

/* Runs the passes that struct divided_results describes. `window` is the attention window of
 * the tree, or NULL. */
struct divided_results divided_compute(struct esp_backend *backend,
                                       const struct esp_model_desc *desc,
                                       const struct esp_window *window);
/* Runs the same passes on this backend. The test fails if a bit of the outputs differs from
 * *e. */
void divided_compare(struct esp_backend *backend, const struct esp_model_desc *desc,
                     const struct esp_window *window, const struct divided_results *e,
                     const char *name, const struct division *d);
/* Runs a copy of the target that drafts in the target's KV cache, with one rank and with
 * several ranks. The logits must be bit-identical. */
void divided_compare_copy(struct esp_backend *one, struct esp_backend *many);

/* Returns the process id of child `which` of this process, counted from 0. Returns 0 if
 * the process has fewer children. */
pid_t divided_child(int which);

#endif
