/* verifier.h - acceptance rules: what one is, and what it gets.
 *
 * A rule ("verifier") walks the verified tree and returns the accepted path and one more token. It
 * lives in one file of verifiers/, exports one `const struct esp_verifier_ops esp_verifier_NAME` and has
 * one X(NAME) line in verifiers.def.
 */
#ifndef ESP_VERIFIER_H
#define ESP_VERIFIER_H

#include "drafter.h"

struct esp_verify {
    struct esp_tree_builder *tree;
    const struct esp_params *params;
    const struct esp_backend_ops *ops;
    struct esp_rows *p;   /* row tree->row[u]: the target's logits after node u, if it is not cut */
    struct esp_rows *q;   /* row q_row[u]: the draft's probabilities after node u, if expanded */
    const int32_t *q_row; /* (record) -1: not expanded */
    struct esp_sampling sampling;
    struct esp_rng *rng;
    int32_t *which, *token; /* (record) scratch for calls of the backend */
    double *number;         /* (record) likewise */

    /* Filled by the rule. */
    int32_t *path; /* (capacity) accepted nodes from the root's child on */
    int path_length;
    int32_t bonus;
};

struct esp_verifier_ops {
    const char *name, *summary, *source;
    unsigned lossless;              /* of enum esp_draws: with which draws it is exact */
    bool greedy;                    /* for temperature 0 (with any draws); otherwise for above 0 */
    bool single_path;               /* exact only if no node has two children */
    const struct esp_param *params; /* or NULL */
    /* Sets verdict, u and acceptance of the nodes it tests, p where it knows it, path and bonus. */
    int (*select)(struct esp_verify *verify);
};

extern const struct esp_verifier_ops *const esp_verifiers[]; /* NULL-terminated */
const struct esp_verifier_ops *esp_verifier_find(const char *name);

#endif
