/* enumerate.h - runs a verifier once for every outcome of its random decisions.
 *
 *     enumerate_start(&all);
 *     do {
 *         ... run the verifier with a chance of {.number = enumerate_number, .user = &all} ...
 *         sum += all.probability;
 *     } while (enumerate_next(&all));
 *
 * The verifier is part of the engine, but it gets its random numbers from this enumeration. For
 * each random decision, it passes the possible outcomes and their weights (struct esp_odds). So
 * every outcome occurs once, with its exact probability.
 *
 * A rig is a small draft tree with target and draft distributions. The test chooses the tree
 * and the distributions, and can run a verifier on them repeatedly.
 */
#ifndef ESP_ENUMERATE_H
#define ESP_ENUMERATE_H

#include "tests/toy.h"

enum { MOST_DECISIONS = 64 };

struct enumerate {
    struct {
        int taken, next; /* the outcome of this run; the next possible outcome, or -1 */
    } decision[MOST_DECISIONS];
    /* known: how many decisions have a chosen outcome; at: how many this run has made so far */
    int known, at;
    double probability; /* joint probability of this run's outcomes so far */
};

double enumerate_number(void *all, const struct esp_odds *odds);
void enumerate_start(struct enumerate *all);
bool enumerate_next(struct enumerate *all);

struct rig {
    struct toy toy;
    int vocabulary;
    struct esp_tree_builder tree;
    int32_t *q_row;
    struct esp_rows *p, *q;
    struct esp_verify verify;
    struct enumerate all;
    /* Writes to `values` the target's or draft's distribution (vocabulary) after `tokens`. */
    void (*distribution)(void *user, bool draft, const int32_t *tokens, int count,
                         double *values);
    void *user;
    /* Nodes with a depth less than `drawn` have a draft distribution, from which their children
     * were drawn. After rig_open(), all nodes have a draft distribution. */
    int drawn;
};

void rig_open(struct rig *rig, int vocabulary, int nodes, unsigned draws);
void rig_close(struct rig *rig);

/* Empties the tree. Callers then grow it with esp_tree_draw() or esp_tree_add(). */
void rig_reset(struct rig *rig);

/* Computes the distributions at the nodes of the current tree, and runs the verifier `rule`
 * with the random decisions of rig->all. */
void rig_run(struct rig *rig, const struct esp_verifier_ops *rule);

/* Writes the tokens on the path from the root to `node`, without the root's token. Returns the
 * number of these tokens. */
int rig_path(const struct rig *rig, int node, int32_t *tokens);

/* Writes the tokens that the verifier committed: the accepted path and the bonus token. Returns
 * the number of these tokens. */
int rig_output(const struct rig *rig, int32_t *tokens);

#endif
