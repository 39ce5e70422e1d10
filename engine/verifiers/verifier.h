/* verifier.h - the interface of verifiers, and the functions they share.
 *
 * A verifier walks the tree after the target's pass and returns the accepted path and one more
 * token. It is one file of verifiers/, which defines one `const struct esp_verifier_ops
 * esp_verifier_NAME`, and one X(NAME) line in verifiers.def.
 *
 * Most verifiers decide node by node (delayed-tree-expansion, def. 3.2): given the target's
 * distribution p, the draft's q and the children drawn from q, they return a token that follows
 * p exactly and is one of the children as often as possible. Such a verifier is one function,
 * `solve`; the walk down the tree is shared. Verifiers that decide about whole paths have
 * `select`.
 *
 * The backend does all vocabulary-sized arithmetic; a verifier sees single numbers. The
 * residual of the target after refused drafts has the form max(0, a p - b q) for all verifiers
 * with draws from one q. So it is stored as two numbers and becomes a row only when a token is
 * drawn from it.
 */
#ifndef ESP_VERIFIER_H
#define ESP_VERIFIER_H

#include "engine/verifiers/chance.h"
#include "engine/drafters/drafter.h"

/* The residual of the target at a node: the distribution max(0, a p - b q), which sums to 1. */
struct esp_residual {
    double a, b;
};

struct esp_verify {
    struct esp_tree_builder *tree;
    const struct esp_params *params;
    const struct esp_backend_ops *ops;
    struct esp_rows *p;   /* row tree->row[u]: the target's logits after node u, unless cut */
    struct esp_rows *q;   /* row q_row[u]: the draft's probabilities after an expanded node */
    const int32_t *q_row; /* (record) -1: not expanded */
    struct esp_sampling sampling;
    unsigned draws; /* of enum esp_draws: how the children were drawn */
    struct esp_chance chance;

    /* Set before the verifier runs. Rows of p with children hold probabilities by then. */
    double *p_of, *q_of; /* (record) p and q of a node's token at its parent; NaN: not known */

    int32_t *which, *token;        /* (record) scratch for calls of the backend */
    double *number;                /* (2, record) likewise */
    double *weight;                /* (record) scratch of verifiers that weigh nodes */
    struct esp_residual *residual; /* (record) likewise */
    int32_t *next; /* (record) scratch of verifiers with an order of their own */

    /* Filled by the verifier. */
    int32_t *path; /* (capacity) accepted nodes from the root's child on */
    int path_length;
    int32_t bonus;
    float bonus_u; /* the random number that drew it; NaN if it was not drawn */

    /* (1) becomes the target's distribution at the node where the path ends, before a residual
     * replaces it; or NULL. */
    struct esp_rows *end;
    int end_node; /* the node whose distribution it has; -1: none */

    bool explain;                     /* evaluate the verifier's formulas before it runs */
    struct esp_tree_measure *measure; /* what p and q are is added to it first, or NULL */
    double explained_seconds;         /* the time of that in the last run */
};

int esp_verify_open(struct esp_verify *verify, struct esp_tree_builder *tree, char *err,
                    size_t errlen);
void esp_verify_close(struct esp_verify *verify);

/* One node with children, as `solve` gets it. */
struct esp_site {
    int node, p_row, q_row;
    const int32_t *draws; /* (count) children in drawing order, repeated draws included */
    int count;            /* 1..ESP_MAX_TESTED */
};

struct esp_verifier_ops {
    const char *name, *summary, *source;
    const char *differs;            /* where it differs from the source, and why; or NULL */
    unsigned lossless;              /* of enum esp_draws: with which draws it is exact */
    unsigned preferred;             /* of those: for which it is the default */
    bool greedy;                    /* for temperature 0 (any draws); otherwise for above 0 */
    bool single_path;               /* exact only if no node has two children */
    bool without_q;                 /* needs no draft probabilities */
    const struct esp_param *params; /* or NULL */
    const char *formula, *numbers, *where; /* of struct esp_item */

    /* A verifier has one of the next two. `solve` sets *token, which follows p if the children
     * follow q, and verdict, u and acceptance of the children it tests. */
    int (*solve)(struct esp_verify *verify, const struct esp_site *site, int32_t *token);
    /* `select` decides about the whole tree: it sets verdict, u and acceptance of all nodes it
     * tests, and path, bonus and bonus_u. */
    int (*select)(struct esp_verify *verify);

    /* For display, planning and tests, on plain arrays (n); NULL where a verifier has no such
     * formula (delayed-tree-expansion, defs. 5.1 and 5.3, app. C and D). */

    /* Probability that `solve` returns one of k >= 1 children, averaged over their draws. NaN
     * if there is no memory. */
    double (*acceptance_rate)(const double *p, const double *q, int n, int k);
    /* branch[i] becomes the probability that `solve` returns children[i], given the children in
     * drawing order (k, at most ESP_MAX_TESTED). */
    int (*branching)(const double *p, const double *q, int n, const int32_t *children, int k,
                     double *branch);
};

extern const struct esp_verifier_ops *const esp_verifiers[]; /* NULL-terminated */
const struct esp_verifier_ops *esp_verifier_find(const char *name);

/* With `explain`, fills branching, acceptance_rate and ceiling of the nodes; adds them to
 * `measure`. Call it before the verifier changes the rows. Without memory for it they stay NaN.
 */
int esp_verify_explain(struct esp_verify *verify, const struct esp_verifier_ops *ops);
/* Adds one node, after which the distributions (n) of target and draft are p and q. Returns 0
 * or ESP_E_MEMORY. */
int esp_tree_measure_add(struct esp_tree_measure *measure, const struct esp_node *node,
                         const double *p, const double *q, int n);

/* Runs a verifier on a tree: sets path and bonus, and in the tree's nodes what was tested and
 * decided. On failure the path is empty and bonus is -1. ESP_E_NUMERIC if a logit that matters
 * is NaN or +Inf. */
int esp_verify_run(struct esp_verify *verify, const struct esp_verifier_ops *ops);

/* ------------------------------------------------------------------ for verifiers */

/* Turns the rows of p that have children into probabilities and fills in p of all drafted
 * nodes, in the tree and in p_of. with_q: fills in q_of as well. */
int esp_verify_probabilities(struct esp_verify *verify, const struct esp_sampling *sampling,
                             bool with_q);

/* The probability with which a draft is kept: min(1, p / q). A draft of probability 0, which
 * cannot have been drawn, is never kept. */
static inline double esp_keep(double p, double q)
{
    return !(q > 0) ? 0 : p < q ? p / q : 1;
}

/* Tests child `node` and stores the outcome in it. True: it is accepted. */
bool esp_verify_accept(struct esp_verify *verify, int node, double acceptance);

/* Stores the outcome of a test in the node, so that `accepted` means u < acceptance in the
 * numbers as stored, too. */
void esp_verify_record(struct esp_verify *verify, int node, double acceptance, double u,
                       bool accepted);

static const struct esp_residual esp_whole = {1, 0};

/* The residual's value at the token of child `node`. */
double esp_residual_of(const struct esp_verify *verify, const struct esp_residual *residual,
                       int node);

/* Call this after a draft of `node`, tested with weight w, was refused: residual <- norm((w
 * residual - q)+). *sum, if not NULL, becomes the sum before normalising. If that is 0 (nothing
 * can be refused), the residual does not change. */
int esp_residual_refuse(struct esp_verify *verify, int node, double w,
                        struct esp_residual *residual, double *sum);

/* For draws without replacement: writes the residual into the row of p and resets it to the
 * whole row, removes `child` from the row of q, and looks up p and q of all children of `node`
 * again. */
int esp_residual_remove(struct esp_verify *verify, int node, int child,
                        struct esp_residual *residual);

/* Draws the token after `node` from the residual, which is written into the row of p. Children
 * that were not tested and are not the token are rejected. */
int esp_residual_draw(struct esp_verify *verify, int node, const struct esp_residual *residual,
                      int32_t *token);

/* To be called by a verifier that writes another residual than max(0, a p - b q) into the row
 * of p of `node`, before it does: keeps the distribution for `end`. */
int esp_verify_keep_end(struct esp_verify *verify, int node);

/* Ends a select(): the nodes from the root to `node` become the path, and the bonus token is
 * drawn from the residual of the target after it. */
int esp_verify_end(struct esp_verify *verify, int node, const struct esp_residual *residual);

#define ESP_PARAM_LOSSY                                                                        \
    {                                                                                          \
        "lossy", ESP_CHOICE, 0, 1, 0,                                                          \
            .choices = "refuse|allow",                                                         \
            .help = "with trees for which the verifier changes what the model says"            \
    }

#endif
