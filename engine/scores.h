/* scores.h - collects the target's probabilities for the tokens of a text (struct
 * esp_token_score).
 *
 * No extra pass is needed: the pass that verifies a tree computes the target's distribution
 * after every node. For nodes on the accepted path, the likeliest tokens and the entropy are
 * read before a verifier changes their rows. Only these few numbers leave the backend. The time
 * for this is not included in any stage.
 */
#ifndef ESP_SCORES_H
#define ESP_SCORES_H

#include "engine/arrays.h"
#include "engine/espalier_event.h"
#include "kernels/kernels.h"

struct esp_scores {
    const struct esp_backend_ops *ops;
    struct esp_rows *end; /* (1) the distribution at the end of an accepted path */
    int record, k;  /* record: maximum number of nodes in a tree, including cut nodes and the
                       root. k: number of tokens stored for each node */
    bool *known;    /* (record) true if ids, values and mean_log are filled for a node */
    bool *changed;  /* (record) true if a verifier has changed the row of the node */
    bool end_exact; /* true: the row at the end of the path was read before it was changed */
    int32_t *ids;   /* (record, k) the likeliest tokens after the node */
    float *values;  /* (record, k) */
    double *mean_log;           /* (record) sum of p log p */
    double *power;              /* (record) scratch memory */
    struct esp_token_score *of; /* (record) scores of the committed tokens */
    double seconds;             /* time spent on scores in the last iteration */
    struct esp_arrays arrays;
};

/* Allocates memory for trees of `record` nodes over a vocabulary. Returns 0 or a negative
 * status. */
int esp_scores_open(struct esp_scores *scores, struct esp_backend *backend, int record,
                    int vocabulary, char *err, size_t errlen);
void esp_scores_close(struct esp_scores *scores);

/* Begins an iteration. */
void esp_scores_begin(struct esp_scores *scores);
/* Stores the likeliest tokens after `node`. Row `row` of `p` must contain the probabilities of
 * the tokens after `node`. */
int esp_scores_keep(struct esp_scores *scores, int node, struct esp_rows *p, int32_t row,
                    enum esp_delivery when);
/* Returns the score of a token after `node`. `p` is the token's probability, which is used if
 * the token is not among the likeliest. */
struct esp_token_score esp_scores_of(const struct esp_scores *scores, int node, int32_t token,
                                     double p);

#endif
