/* draft.h - the session's side of drafting; drafters see drafter.h only. */
#ifndef ESP_DRAFT_H
#define ESP_DRAFT_H

#include "engine/arrays.h"
#include "engine/drafters/drafter.h"

struct esp_kv_cache; /* a model's key/value rows; see kv_cache.h */
struct esp_features; /* hidden states of the target: see target_features.h */

enum { ESP_TIMED_PASSES = 64, ESP_EXCLUDED = 8 };

/* The draws below an expanded node: its own random numbers, in drawing order, and children
 * drawn ahead without replacement. Several are drawn in one call, because every call may wait
 * for the device. Draw n below a node has the same number either way. */
struct esp_node_draws {
    struct esp_rng rng;
    int32_t token[ESP_MAX_DRAWS]; /* -1: nothing is left */
    double value[ESP_MAX_DRAWS];
    int next, count;
};

/* What draft passes need, and their times; rows = capacity + 1 of the tree. */
struct esp_draft_work {
    struct esp_kv_cache *cache; /* NULL: there is no draft model */
    bool scratch;               /* it is a view of the target's: rows are not kept */
    struct esp_rng *rng;
    struct esp_rows *q; /* (rows) draft probabilities after each expanded node */
    /* Only with a draft head: the target's hidden states, and the head's own after each
     * expanded node, (capacity, hidden), in the rows of q. */
    const struct esp_features *features;
    struct esp_rows *states;
    /* Called after each pass, so that a front end can show the tree grow. */
    void (*layer)(void *user);
    void *user;

    /* Of this iteration. */
    int rows_computed;
    /* Of the first passes: rows, and seconds from the start of a pass to the start of the next
     * (the last: to the end of the stage), without the observer's. */
    int pass_rows[ESP_TIMED_PASSES];
    double pass_seconds[ESP_TIMED_PASSES], pass_began;
    double model_seconds; /* of the draft model's passes */
    double watched;       /* that the observer took during the draft stage */

    /* Scratch. */
    struct esp_arrays arrays;       /* of these, and of struct esp_draft */
    int words;                      /* per mask row */
    uint64_t *mask;                 /* (rows, words) by order of expansion */
    uint64_t *batch_mask;           /* (rows, words) rows of one pass */
    int32_t *tokens, *positions;    /* (rows) of one pass */
    int32_t *rows;                  /* (rows) of q, or of the cache */
    int32_t *above;                 /* (rows) of q of the parents */
    double *u, *value;              /* (rows, ESP_MAX_DRAWS) random numbers, probabilities */
    int32_t *drawn;                 /* (rows, ESP_MAX_DRAWS) drawn tokens */
    int32_t *excluded;              /* (ESP_EXCLUDED * rows) tokens not to be drawn again */
    struct esp_node_draws *draws;   /* (rows) by row of q */
    int32_t *frontier, *next, *end; /* (rows) nodes */
    int32_t *unsettled; /* (rows) nodes of the last pass with a confidence that is still due */
    int unsettled_count;
    int32_t *lacking; /* (rows) nodes */
    bool *listed;     /* (record) */
};

/* Opens drafting in a tree and allocates all memory that it needs. The caller sets the
 * session's part of `work`. */
int esp_draft_open(struct esp_draft *draft, struct esp_tree_builder *tree, char *err,
                   size_t errlen);
void esp_draft_close(struct esp_draft *draft);

/* Starts an iteration on a tree that holds only its root. */
void esp_draft_begin(struct esp_draft *draft);

/* Ends it and takes the time of the last pass. */
void esp_draft_end(struct esp_draft *draft);

/* Keeps the cache rows of the accepted nodes (the first `count`) that the draft model has
 * computed. With `rebuild` it drops them, so that the next iteration computes them again. */
int esp_draft_commit(struct esp_draft *draft, const int32_t *path, int count, bool rebuild);

#endif
