/* verifier.h - defines the interface of verifiers, and declares the functions that they share.
 *
 * A verifier walks the tree after the target's pass and returns the accepted path and one more
 * token. To add a verifier, write a file in verifiers/ that defines a `const struct
 * esp_verifier_ops esp_verifier_NAME`, and add a line X(NAME) to verifiers.def.
 *
 * Most verifiers decide node by node (delayed-tree-expansion, def. 3.2). Given the target's
 * distribution p, the draft's q and the children drawn from q, such a verifier returns a token.
 * The token follows p exactly, and is one of the children as often as possible. Such a verifier
 * is one function, `solve`; all of them share the walk down the tree. Verifiers that decide
 * about whole paths have the function `select` instead.
 *
 * The backend does all arithmetic on whole rows of the vocabulary; a verifier handles only
 * single numbers. If all drafts of a node are drawn from one q, the target's residual after
 * rejected drafts has the form max(0, a p - b q), for all verifiers. The residual is therefore
 * stored as the two numbers a and b, and is written as a row only when a token is drawn from
 * it.
 */
#ifndef ESP_VERIFIER_H
#define ESP_VERIFIER_H

#include "engine/verifiers/chance.h"
#include "engine/drafters/drafter.h"
#include "engine/scores.h"

/* The residual of the target at a node: the distribution max(0, a p - b q), which sums to 1.
 */
struct esp_residual {
    double a, b;
};

struct esp_verify {
    struct esp_tree_builder *tree;
    const struct esp_backend_ops *ops;
    /* Row tree->row[u] of p contains the target's logits after node u, if u was not cut from
     * the tree. Row q_row[u] of q contains the draft's probabilities after node u, if u was
     * expanded. */
    struct esp_rows *p;
    struct esp_rows *q;
    const int32_t *q_row; /* (record) for each node, its row of q; -1 means not expanded */
    struct esp_sampling sampling;
    unsigned draws; /* how the children were drawn: one of enum esp_draws */
    struct esp_chance chance;

    /* These two arrays are set before the verifier runs. By then, the rows of p for nodes with
     * children contain probabilities. */
    double *p_of, *q_of; /* (record) p and q of a node's token after its parent, or NaN */

    int32_t *which, *token;        /* (record) scratch memory for backend calls */
    double *number;                /* (2, record) scratch memory for backend calls */
    double *weight;                /* (record) scratch memory for weights of nodes */
    struct esp_residual *residual; /* (record) scratch memory for residuals of nodes */
    int32_t *next;                 /* (record) scratch memory for one index per node */

    /* The verifier sets path, path_length, bonus and bonus_u. */
    int32_t *path; /* (capacity) accepted nodes, beginning with a child of the root */
    int path_length;
    int32_t bonus;
    float bonus_u; /* the random number that drew the bonus token; NaN if it was not drawn */

    /* NULL, or one row that receives the target's distribution at the end of the path, before
     * a residual replaces it. */
    struct esp_rows *end;
    int end_node; /* the node whose distribution is in `end`; -1 if none */

    struct esp_scores *scores; /* receives the target's likeliest tokens; or NULL */

    bool explain;                     /* the formulas are evaluated before the verifier runs */
    struct esp_tree_measure *measure; /* NULL, or receives p and q of the nodes */
    double explained_seconds; /* time for `explain` and `measure` in the last run, in seconds */
    struct esp_arrays arrays; /* owns the arrays above */
};

int esp_verify_open(struct esp_verify *verify, struct esp_tree_builder *tree, char *err,
                    size_t errlen);
void esp_verify_close(struct esp_verify *verify);

/* The input of `solve`: a node with children. */
struct esp_site {
    int node, p_row, q_row;
    const int32_t *draws; /* (count) children in drawing order, repeated draws included */
    int count;            /* 1..ESP_MAX_TESTED */
};

struct esp_verifier_ops {
    const char *name, *summary, *source;
    const char *differs; /* differences from the source and their reasons; or NULL */
    unsigned lossless;   /* the draws for which the verifier is exact (flags of enum
                            esp_draws) */
    unsigned preferred;  /* the draws in `lossless` for which this verifier is the default */
    bool greedy;         /* true: for temperature 0, with any draws; false: for temperatures
                            above 0 */
    bool single_path;    /* true: the verifier is exact only if no node has two children */
    bool without_q;      /* the verifier needs no draft probabilities */
    const char *formula, *numbers, *where; /* see struct esp_item */

    /* A verifier has either `solve` or `select`. `solve` sets verdict, u and acceptance of the
     * children that it tests. It returns the accepted child, 0 if there is none, or a negative
     * status. If it returns 0, the token is drawn from *left, which initially represents the
     * whole p. The token must follow p if the children follow q. */
    int (*solve)(struct esp_verify *verify, const struct esp_site *site,
                 struct esp_residual *left);
    /* `select` decides for the whole tree: it sets verdict, u and acceptance of all nodes that
     * it tests, and path, bonus and bonus_u. */
    int (*select)(struct esp_verify *verify);

    /* The next two formulas are for display, planning and tests. They work on plain arrays
     * (n), and are NULL if the verifier has no such formula (delayed-tree-expansion, defs. 5.1
     * and 5.3, app. C and D). */

    /* Returns the probability that `solve` returns one of k >= 1 children, averaged over their
     * draws; NaN if there is no memory. */
    double (*acceptance_rate)(const double *p, const double *q, int n, int k);
    /* Sets branch[i] to the probability that `solve` returns children[i], given the children
     * in drawing order (k, at most ESP_MAX_TESTED). Returns 0 or a negative status. */
    int (*branching)(const double *p, const double *q, int n, const int32_t *children, int k,
                     double *branch);
};

extern const struct esp_verifier_ops *const esp_verifiers[]; /* NULL-terminated */
extern const struct esp_param esp_verifier_params[];         /* parameters of every verifier */
const struct esp_verifier_ops *esp_verifier_find(const char *name);

/* If `explain` is set, sets branching, acceptance_rate and ceiling of the nodes; if `measure`
 * is set, adds the nodes to it. Call this before the verifier changes the rows. The values
 * stay NaN if memory runs out. */
int esp_verify_explain(struct esp_verify *verify, const struct esp_verifier_ops *ops);
/* Adds one node to a measurement. p, q: (n) the target's and the draft's distribution after
 * the node. Returns 0 or ESP_E_MEMORY. */
int esp_tree_measure_add(struct esp_tree_measure *measure, const struct esp_node *node,
                         const double *p, const double *q, int n);

/* Stores the target's likeliest tokens after `node`, which has children, in v->scores. Call it
 * before the verifier changes the row. */
int esp_verify_keep_scores(struct esp_verify *verify, int node);

/* Runs a verifier on a tree: sets path and bonus, and records the outcome of the tests in the
 * nodes. On failure the path is empty and bonus is -1. Returns ESP_E_NUMERIC if a logit that
 * affects the result is NaN or +Inf. */
int esp_verify_run(struct esp_verify *verify, const struct esp_verifier_ops *ops);

/* ------------------------------------------------------------------ shared by verifiers */

/* Turns the rows of p into probabilities for nodes that have children. Fills in p of all
 * drafted nodes, both in the tree and in p_of. If with_q is true, also fills in q_of. */
int esp_verify_probabilities(struct esp_verify *verify, const struct esp_sampling *sampling,
                             bool with_q);

/* Returns the acceptance probability of a draft: min(1, p / q), or 0 if q = 0, because such a
 * draft cannot have been drawn. */
static inline double esp_keep(double p, double q)
{
    return !(q > 0) ? 0 : p < q ? p / q : 1;
}

/* Tests child `node` and records the outcome. Returns whether it is accepted. */
bool esp_verify_accept(struct esp_verify *verify, int node, double acceptance);

/* Records the outcome of a test in the node. The recorded numbers are rounded such that u <
 * acceptance if and only if `accepted`. */
void esp_verify_record(struct esp_verify *verify, int node, double acceptance, double u,
                       bool accepted);

static const struct esp_residual esp_whole = {1, 0};

/* Returns the value of the residual at the token of child `node`. */
double esp_residual_of(const struct esp_verify *verify, const struct esp_residual *residual,
                       int node);

/* Call this when a draft below `node`, tested with weight w, was rejected: residual <- norm((w
 * residual - q)+). If `sum` is not NULL, *sum is set to the sum before normalising. If that is
 * 0 (nothing can be rejected), the residual does not change. */
int esp_residual_refuse(struct esp_verify *verify, int node, double w,
                        struct esp_residual *residual, double *sum);

/* Call this when `child` was rejected and children are drawn without replacement. Writes the
 * residual into the row of p and resets the residual to the whole row. Removes `child` from the
 * row of q. Then looks up p and q of all children of `node` again. */
int esp_residual_remove(struct esp_verify *verify, int node, int child,
                        struct esp_residual *residual);

/* Copies the target's distribution after `node` to `end`. A verifier must call this before it
 * writes a residual that is not of the form max(0, a p - b q) into the node's row of p. */
int esp_verify_keep_end(struct esp_verify *verify, int node);

/* Ends a select(): the path from the root to `node` is accepted, and the bonus token is drawn
 * from the target's residual after `node`. */
int esp_verify_end(struct esp_verify *verify, int node, const struct esp_residual *residual);

/* Returns alpha*: the largest probability with which a token that follows p can be one of k
 * independent draws from q. p, q: (n). Returns NaN if there is no memory. */
double esp_acceptance_ceiling(const double *p, const double *q, int n, int k);

/* Sets p to norm((p - q)+). Does nothing if (p - q)+ is 0 everywhere. The formulas use this
 * function. p, q: (n). */
void esp_formula_refuse(double *p, const double *q, int n);

#endif
