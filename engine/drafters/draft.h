/* draft.h - the session's side of drafting; drafters see drafter.h only. */
#ifndef ESP_DRAFT_H
#define ESP_DRAFT_H

#include "engine/drafters/drafter.h"

/* The draws below an expanded node: its own random numbers, in drawing order, and children
 * drawn ahead without replacement. Several are drawn in one call, because every call may wait
 * for the device. Draw n below a node has the same number either way. */
struct esp_node_draws {
    struct esp_rng rng;
    int32_t token[ESP_MAX_DRAWS]; /* -1: nothing is left */
    double value[ESP_MAX_DRAWS];
    int next, count;
};

/* Scratch memory of drafting; rows = capacity + 1 of the tree. */
struct esp_draft_scratch {
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

enum { ESP_EXCLUDED = 8 };

/* `cache` may be NULL (no draft model). Allocates all memory that drafting needs. */
int esp_draft_open(struct esp_draft *draft, struct esp_kv_cache *cache, struct esp_rows *q,
                   struct esp_tree_builder *tree, char *err, size_t errlen);
void esp_draft_close(struct esp_draft *draft);

/* Starts an iteration on a tree that holds only its root. */
void esp_draft_begin(struct esp_draft *draft);

/* Ends it and takes the time of the last pass. */
void esp_draft_end(struct esp_draft *draft);

/* Keeps the cache rows of the accepted nodes (the first `count`) that the draft model has
 * computed. With `rebuild` it drops them, so that the next iteration computes them again. */
int esp_draft_commit(struct esp_draft *draft, const int32_t *path, int count, bool rebuild);

#endif
