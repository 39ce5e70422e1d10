/* enumerate.h - runs a verifier once for every outcome of its random decisions.
 *
 *     enumerate_start(&all);
 *     do {
 *         ... run the verifier with a chance of {.number = enumerate_number, .user = &all} ...
 *         sum += all.probability;
 *     } while (enumerate_next(&all));
 *
 * The verifier is the real one, but it gets its random numbers from this enumeration. Each
 * decision lists the outcomes between which its random number decides (struct esp_odds). So
 * every outcome occurs once, with its exact probability.
 *
 * A rig is a small draft tree with target and draft distributions, on which a verifier can run
 * repeatedly. The test chooses the tree and the distributions.
 */
#ifndef ESP_ENUMERATE_H
#define ESP_ENUMERATE_H

#include "tests/toy.h"

enum { MOST_DECISIONS = 64 };

struct enumerate {
    struct {
        int taken, next; /* the outcome of this run; the next possible outcome, or -1 */
    } decision[MOST_DECISIONS];
    /* how many decisions to repeat; how many decisions this run has made so far */
    int known, at;
    double probability; /* probability of the outcomes of this run so far */
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
    /* Writes the distribution (vocabulary) after a node to `values`. */
    void (*distribution)(void *user, bool draft, const int32_t *tokens, int count,
                         double *values);
    void *user;
    /* Only nodes above this depth have a draft distribution, because their children were drawn.
     * rig_open() sets it so that all nodes have one. */
    int drawn;
};

void rig_open(struct rig *rig, int vocabulary, int nodes, unsigned draws);
void rig_close(struct rig *rig);

/* Empties the tree. Callers then grow it with esp_tree_draw() or esp_tree_add(). */
void rig_reset(struct rig *rig);

/* Fills the rows of the current tree, and runs the verifier with the decisions of rig->all. */
void rig_run(struct rig *rig, const struct esp_verifier_ops *rule);

/* Writes the tokens on the path from the root (not included) to `node`; returns their
 * number. */
int rig_path(const struct rig *rig, int node, int32_t *tokens);

/* Writes the tokens that the verifier committed: the accepted path and the bonus token. Returns
 * how many there are. */
int rig_output(const struct rig *rig, int32_t *tokens);

#endif
