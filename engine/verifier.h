/* verifier.h - acceptance rules: what one is, and what it gets.
 *
 * A rule ("verifier") walks the verified tree and returns the accepted path and one more token.
 * It lives in one file of verifiers/, exports one `const struct esp_verifier_ops
 * esp_verifier_NAME` and has one X(NAME) line in verifiers.def.
 *
 * Most rules decide node by node (delayed-tree-expansion, def. 3.2): given the target's
 * distribution p, the draft's q and the children drawn from q, they return a token that follows
 * p exactly and is one of the children as often as can be. Such a rule is one function,
 * `solve`; walking down the tree is the same for all of them. Rules that look at whole paths
 * have `select`.
 *
 * Vocabulary-sized arithmetic stays with the backend; a rule sees single numbers. What is left
 * of the target after drafts were refused has the form max(0, a p - b q) for all rules with
 * draws from one q, so it is kept as two numbers and becomes a row only when a token is drawn
 * from it.
 */
#ifndef ESP_VERIFIER_H
#define ESP_VERIFIER_H

#include "chance.h"
#include "drafter.h"

/* What is left of the target at a node: the distribution max(0, a p - b q), which sums to 1. */
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

    /* Set before the rule runs. Rows of p with children are probabilities by then. */
    double *p_of, *q_of; /* (record) of a node's token at its parent; q_of NaN: not known */

    int32_t *which, *token;        /* (record) scratch for calls of the backend */
    double *number;                /* (2, record) likewise */
    double *weight;                /* (record) scratch of rules that weigh nodes */
    struct esp_residual *residual; /* (record) likewise */
    int32_t *next;                 /* (record) scratch of rules that walk in their own order */

    /* Filled by the rule. */
    int32_t *path; /* (capacity) accepted nodes from the root's child on */
    int path_length;
    int32_t bonus;
    float bonus_u; /* the number that drew it; NaN if none did */

    bool explain;             /* evaluate the rule's formulas before it runs */
    double explained_seconds; /* what that took in the last run */
};

int esp_verify_open(struct esp_verify *verify, struct esp_tree_builder *tree, char *err,
                    size_t errlen);
void esp_verify_close(struct esp_verify *verify);

/* One node with children, as a rule sees it. */
struct esp_site {
    int node, p_row, q_row;
    const int32_t *draws; /* (count) children in drawing order, i.i.d. repetitions included */
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

    /* Either: sets *token, which follows p if the children follow q. Sets verdict, u and
     * acceptance of the children it tests. */
    int (*solve)(struct esp_verify *verify, const struct esp_site *site, int32_t *token);
    /* Or: the whole tree. Sets these on all nodes it tests, and path, bonus and bonus_u. */
    int (*select)(struct esp_verify *verify);

    /* For display, planning and tests, on plain arrays (n); NULL where a rule has no such
     * formula (delayed-tree-expansion, defs. 5.1 and 5.3, app. C and D). */

    /* Probability that `solve` returns one of k >= 1 children, over their draws too. NaN: no
     * memory. */
    double (*acceptance_rate)(const double *p, const double *q, int n, int k);
    /* branch[i] becomes the probability that `solve` returns children[i], given the children in
     * drawing order (k, at most ESP_MAX_TESTED). */
    int (*branching)(const double *p, const double *q, int n, const int32_t *children, int k,
                     double *branch);
};

extern const struct esp_verifier_ops *const esp_verifiers[]; /* NULL-terminated */
const struct esp_verifier_ops *esp_verifier_find(const char *name);

/* Fills branching, acceptance_rate and ceiling of the nodes, from rows that no rule has touched
 * yet. Where there is no memory for it they stay NaN. */
int esp_verify_explain(struct esp_verify *verify, const struct esp_verifier_ops *ops);

/* Runs a rule on a verified tree: path, bonus and what the record shows of its way there. On
 * failure there is no path and no bonus (-1). ESP_E_NUMERIC if a logit that matters is NaN or
 * +Inf. */
int esp_verify_run(struct esp_verify *verify, const struct esp_verifier_ops *ops);

/* ------------------------------------------------------------------ for rules */

/* Fills in p of all drafted nodes, for the record and p_of: softmax of the rows that have
 * children; with_q: q_of, too. */
int esp_verify_probabilities(struct esp_verify *verify, const struct esp_sampling *sampling,
                             bool with_q);

/* The probability with which a draft is kept: min(1, p / q). A draft of probability 0, which
 * cannot have been drawn, is never kept. */
static inline double esp_keep(double p, double q)
{
    return !(q > 0) ? 0 : p < q ? p / q : 1;
}

/* Tests child `node` and records it. True: it is accepted. */
bool esp_verify_accept(struct esp_verify *verify, int node, double acceptance);

/* Writes what a test found to the record. */
void esp_verify_record(struct esp_verify *verify, int node, double acceptance, double u,
                       bool accepted);

static const struct esp_residual esp_whole = {1, 0};

/* The residual's value at the token of child `node`. */
double esp_residual_of(const struct esp_verify *verify, const struct esp_residual *residual,
                       int node);

/* A draft of `node` that was tested with weight w was refused: residual <- norm((w residual -
 * q)+). *sum, if not NULL, is what it summed to before. Where that is 0 (nothing can be
 * refused) the residual stays as it is. */
int esp_residual_refuse(struct esp_verify *verify, int node, double w,
                        struct esp_residual *residual, double *sum);

/* Draws without replacement: the residual becomes the row of p, and is whole again; `child`
 * leaves the row of q; the probabilities of all children of `node` are looked up anew. */
int esp_residual_remove(struct esp_verify *verify, int node, int child,
                        struct esp_residual *residual);

/* Draws the token after `node` from the residual, which becomes the row of p; children that
 * were not tested and are not the token are rejected by that. */
int esp_residual_draw(struct esp_verify *verify, int node, const struct esp_residual *residual,
                      int32_t *token);

/* Ends a select(): the nodes from the root to `node` become the path, and the bonus token is
 * drawn from what is left of the target after it. */
int esp_verify_end(struct esp_verify *verify, int node, const struct esp_residual *residual);

#define ESP_PARAM_LOSSY                                                                        \
    {                                                                                          \
        "lossy", ESP_CHOICE, 0, 1, 0,                                                          \
            .choices = "refuse|allow",                                                         \
            .help = "with trees for which the rule changes what the model says"                \
    }

#endif
