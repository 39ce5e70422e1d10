/* draft.h - the functions and data of drafting that the session uses. Drafters include only
 * drafter.h. */
#ifndef ESP_DRAFT_H
#define ESP_DRAFT_H

#include "engine/arrays.h"
#include "engine/drafters/drafter.h"

struct esp_kv_cache; /* a model's key/value rows; see kv_cache.h */
struct esp_features; /* hidden states of the target: see target_features.h */

enum { ESP_TIMED_PASSES = 64, ESP_EXCLUDED = 8 };

/* The draws below an expanded node: the node's generator of random numbers, and children that
 * were drawn without replacement before they are needed. Several children are drawn in one
 * call, because every call may have to wait for the device. Draw n below a node always uses the
 * same random number, no matter when it is drawn. */
struct esp_node_draws {
    struct esp_rng rng;
    int32_t token[ESP_MAX_DRAWS]; /* -1 means that no token is left to draw */
    double value[ESP_MAX_DRAWS];
    int next, count;
};

/* Holds the data and the measured times of draft passes. In the sizes of the arrays below,
 * `rows` is the tree's capacity + 1. */
struct esp_draft_work {
    struct esp_kv_cache *cache; /* NULL if there is no draft model */
    bool scratch; /* the cache is a view of the target's cache, so its rows are not kept */
    struct esp_rng *rng;
    struct esp_rows *q; /* (rows) draft probabilities after each expanded node */
    /* Used only with a draft head: the target's hidden states, and the head's own hidden states
     * after each expanded node: (capacity, hidden), in the same rows as q. */
    const struct esp_features *features;
    struct esp_rows *states;
    /* Called after each pass, so that a front end can show how the tree grows. */
    void (*layer)(void *user);
    void *user;

    /* The following members are measured in each iteration. */
    int rows_computed;
    /* For each of the first ESP_TIMED_PASSES passes of the iteration: its number of rows, and
     * the seconds from its start to the start of the next pass. The time of the last pass
     * ends when the draft stage ends. The observer's time is not included. */
    int pass_rows[ESP_TIMED_PASSES];
    double pass_seconds[ESP_TIMED_PASSES], pass_began;
    double model_seconds; /* time of the draft model's passes */
    double watched;       /* seconds that the observer took during the draft stage */

    /* Scratch memory. */
    struct esp_arrays arrays;     /* owns the arrays below and the arrays of struct esp_draft */
    int words;                    /* words in a mask row */
    uint64_t *mask;               /* (rows, words) mask rows in order of expansion */
    uint64_t *batch_mask;         /* (rows, words) mask rows of one pass */
    int32_t *tokens, *positions;  /* (rows) tokens and positions of one pass */
    int32_t *rows;                /* (rows) indices of rows of q or of the cache */
    int32_t *above;               /* (rows) the parents' rows of q */
    double *u, *value;            /* (rows, ESP_MAX_DRAWS) random numbers, probabilities */
    int32_t *drawn;               /* (rows, ESP_MAX_DRAWS) drawn tokens */
    int32_t *excluded;            /* (ESP_EXCLUDED * rows) tokens not to be drawn again */
    struct esp_node_draws *draws; /* (rows) one for each row of q */
    int32_t *frontier, *next, *end; /* (rows) lists of nodes */
    int32_t *unsettled; /* (rows) nodes of the last pass whose confidence is not known yet */
    int unsettled_count;
    int32_t *lacking; /* (rows) nodes that need draws */
    bool *listed; /* (record) true if list_once() has listed the node; false between calls */
};

/* Prepares the draft for this tree and allocates all memory that drafting needs. The caller
 * then sets the members of `work` from `cache` to `user`. */
int esp_draft_open(struct esp_draft *draft, struct esp_tree_builder *tree, char *err,
                   size_t errlen);
void esp_draft_close(struct esp_draft *draft);

/* Starts an iteration on a tree that has only its root. */
void esp_draft_begin(struct esp_draft *draft);

/* Ends the iteration's drafting and stops the timing of the last pass. */
void esp_draft_end(struct esp_draft *draft);

/* Keeps the cache rows that the draft model has computed for the accepted nodes,
 * path[0..count-1]. If `rebuild` is true, drops these rows instead, and the next iteration
 * computes them again. */
int esp_draft_commit(struct esp_draft *draft, const int32_t *path, int count, bool rebuild);

#endif
