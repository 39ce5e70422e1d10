/* drafter.h - the interface of drafters, and the draft model's operations for them.
 *
 * A drafter fills the session's tree. It is one file of drafters/, exports one `const struct
 * esp_drafter_ops esp_drafter_NAME` and has one X(NAME) line in drafters.def; parsing, help,
 * completion, lists and tests follow from that.
 *
 * Drafters draft layer by layer: esp_draft_expand() runs the draft model once over a whole
 * frontier, with tree attention, so an iteration takes one draft pass per layer of the tree.
 * The draft model's key/value rows of accepted nodes are kept for the next iteration.
 */
#ifndef ESP_DRAFTER_H
#define ESP_DRAFTER_H

#include "kernels/kernels.h"
#include "engine/support/params.h"
#include "engine/support/rng.h"
#include "engine/tree.h"

/* How a drafter may draw children; a verifier is lossless only with some of them. */
enum esp_draws {
    ESP_DRAW_TOPK = 1, /* the likeliest tokens, deterministic */
    ESP_DRAW_IID = 2,  /* independent samples; duplicates counted in `copies` */
    ESP_DRAW_SWOR = 4, /* sampled without replacement, in order */
};

/* A child that could be added. */
struct esp_candidate {
    int32_t parent, token, at; /* at: index in drawing order */
    float q, cumulative_log_q;
    bool taken;
};

struct esp_engine;
struct esp_kv_cache;    /* a model's key/value rows; see kv_cache.h */
struct esp_features;    /* hidden states of the target: see target_features.h */
struct esp_calibration; /* draft temperature and acceptance rates: see calibration.h */
struct esp_costs;       /* measured time of passes: see costs.h */

/* What the target computed for the token before the root in the last iteration, for drafters
 * that look back. */
struct esp_look_back {
    int length;             /* length of the text it belongs to; if another, it is out of
                               date */
    struct esp_rows *p;     /* (1, vocabulary) the target's distribution */
    struct esp_rows *state; /* (rows, hidden) its hidden states after the final norm */
    int state_row;
    /* Row of q and of the draft's states at that token, or -1. Read it before the draft's next
     * pass. */
    int draft_row;
};

enum { ESP_TIMED_PASSES = 64 };

struct esp_draft {
    struct esp_tree_builder *tree;
    const struct esp_params *params; /* of this drafter */
    void *state;                     /* (ops->state_size) of this drafter, zeroed before init */
    struct esp_rng *rng;
    struct esp_sampling sampling; /* how logits become q, at the draft's temperature */
    double temperature;           /* of the text; 0: greedy */
    bool greedy;                  /* the text is generated at temperature 0 */
    int seen;                     /* tokens that the last one sees: all, or a window */
    int max_depth;                /* maximum depth of a node (context and length limits) */

    /* Tokens committed so far, root last. For drafters that look at the text. */
    const int32_t *text;
    int text_length;

    const struct esp_calibration *calibration;
    const struct esp_costs *costs;
    const struct esp_look_back *back;

    bool repeatable; /* nothing learned by other sessions is loaded, nothing is saved */
    char pair[256];  /* names target and draft, for learned values; empty: unknown */

    /* Results of the last esp_draft_expand(): (count, k) the k likeliest tokens of each
     * node. */
    int32_t *top_token;
    float *top_q;
    struct esp_candidate *candidates; /* (capacity * (ESP_MAX_TOP + 1)) for drafters */

    /* Below: for the session only. */
    struct esp_kv_cache *cache; /* NULL: there is no draft model */
    /* Only with a draft head: the target's hidden states, and the head's own after each
     * expanded node, (capacity, hidden), in the rows of q. */
    const struct esp_features *features;
    struct esp_rows *states;
    struct esp_rows *q; /* (capacity) draft probabilities after each expanded node */
    int32_t *q_row;     /* (record) row of q of a node: 0 for the root, in order of expansion;
                           -1: not expanded */
    int expanded;       /* nodes expanded, root included */
    int capacity;       /* nodes that can be expanded; q has one more row */
    /* (capacity + 1, hidden) hidden states after each expanded node (after the final norm), in
     * the rows of q; NULL: the drafter does not look back. */
    struct esp_rows *own_states;
    int passes, rows; /* of this iteration: passes, and the rows that they computed */
    /* Of the first passes: rows, and seconds from the start of a pass to the start of the next
     * (the last: to the end of the stage), without the observer's. */
    int pass_rows[ESP_TIMED_PASSES];
    double pass_seconds[ESP_TIMED_PASSES], pass_began;
    double model_seconds; /* of the draft model's passes in this iteration */
    double watched;       /* that the observer took during the draft stage */
    struct esp_draft_scratch *scratch;
    void (*layer)(void *user); /* called after each pass, so that a front end can show the tree
                                  grow */
    void *user;
};

enum { ESP_MAX_TOP = 64 }; /* maximum children of a node */

/* ------------------------------------------------------------------ passes and draws */

/* One draft pass over `count` nodes (the root, or nodes with expanded parents). Computes their
 * next-token distributions, sets their confidence and writes the k (1..ESP_MAX_TOP) likeliest
 * tokens to top_token / top_q. After k = 0 the caller must draw below these nodes: one wait
 * then serves both, and the confidence is known after the draws. Returns 0 or a negative
 * status. */
int esp_draft_expand(struct esp_draft *draft, const int32_t *nodes, int count, int k);

/* Like esp_draft_expand() of the root, for drafters that look back. With `before` the pass also
 * computes the token before the root, into row `capacity` of q and of own_states. The text must
 * have at least two tokens. esp_draft_paths() then reuses this pass for the root. */
int esp_draft_expand_root(struct esp_draft *draft, bool before);

/* Draws one child below each of `count` expanded nodes. ESP_DRAW_IID: a parent may occur
 * several times; a token drawn again is counted as a copy. ESP_DRAW_SWOR: each parent occurs
 * once, and its earlier children are excluded. children[i] becomes the node, or -1 if no token
 * is left to draw (or the tree is full, which a drafter must prevent by counting draws). */
int esp_draft_draw(struct esp_draft *draft, const int32_t *parents, int count,
                   enum esp_draws how, int32_t *children);

/* R of dyspec: the probability with which the last child was drawn below its parent, at most 1.
 * It is its q over the mass that its earlier siblings left. */
double esp_draft_share(const struct esp_draft *draft, int32_t child);

/* Tokens that the root's pass computes: the root, and earlier ones that the draft model has not
 * computed yet. */
int esp_draft_behind(const struct esp_draft *draft);

/* Call this when the children of a pass are in the tree: a front end shows them. */
void esp_draft_layer_done(struct esp_draft *draft);

/* ------------------------------------------------------------------ shared growth rules */

/* Rule of the layer-by-layer drafters with likeliest-token children. */
struct esp_layer_rule {
    const void *drafter; /* passed to the functions below */
    /* May this node be expanded? If not, it sets the reason. */
    bool (*expand)(const void *drafter, const struct esp_node *node, enum esp_reason *reason);
    /* How many children does it get, 1..most? Its confidence is known. */
    int (*breadth)(const void *drafter, const struct esp_node *node);
    int most;         /* maximum children of a node */
    int budget;       /* maximum nodes in the tree */
    double log_least; /* nodes with a lower cumulative log q are not expanded; -INFINITY: no
                         limit */
    bool cut;         /* such nodes are cut as well, except the draft's first guess (below) */
    bool sampled;     /* children are drawn without replacement, and none is cut */
    bool draft_root;  /* the root gets a single child (the papers' literal form) */
};

/* Grows the tree by a rule, one draft pass per layer. If a layer exceeds the budget, the nodes
 * of highest cumulative q are used. (dynatree, sec. 3.3, and dynatree-fixed-tree, sec. 3.3,
 * take the first ones, whatever their q.) Sampled children are drawn in rounds of one per node
 * that gets another. If a round does not fit, the parents of highest cumulative q get theirs,
 * independent of the tokens drawn. Each node must get at least one child. */
int esp_draft_grow(struct esp_draft *draft, const struct esp_layer_rule *rule);

/* Rule of the drafters that draw independent paths: at depth i every path splits into width[i]
 * parts, and each part draws its own token. Paths with the same tokens share nodes. */
struct esp_path_rule {
    const int *width; /* (levels) */
    int levels;
    double least_q; /* a path ends after a token with a lower q; 0: never */
};

/* Draws such paths, one pass per depth. If they do not fit the tree, the last draws are left
 * out. Every draw counts as a node for this limit, so that it never depends on the tokens
 * drawn. */
int esp_draft_paths(struct esp_draft *draft, const struct esp_path_rule *rule);

/* A single chain of at most `length` tokens, sampled or likeliest. It ends after a token with a
 * q below least_q (0: never). */
int esp_draft_chain(struct esp_draft *draft, int length, double least_q, bool sampled);

/* Rule of the drafters that expand the likeliest nodes anywhere in the tree. */
struct esp_best_rule {
    int budget;       /* N nodes */
    int batch;        /* B nodes expanded per pass */
    double threshold; /* th: stop when the next B nodes together are less likely than this */
};

/* SALF (salf-talf, alg. 2). With threshold 0: the N likeliest nodes, like SpecExec. */
int esp_draft_best(struct esp_draft *draft, const struct esp_best_rule *rule);

/* Lists the k children of the `count` nodes just expanded as candidates, likeliest first; ties
 * in drawing order. Leaves out tokens of probability 0. Returns the number of candidates. */
int esp_draft_candidates(struct esp_draft *draft, const int32_t *nodes, int count, int k,
                         struct esp_candidate *candidates);

/* Sorts by falling cumulative q; ties in drawing order. */
void esp_candidates_sort(struct esp_candidate *candidates, int count);

/* Adds candidates, sorted by falling cumulative q, so that the uncut nodes are the `budget`
 * likeliest of all offered so far. Candidates that do not fit are recorded as cut; nodes that
 * make room are cut. nodes[i] (nodes may be NULL) becomes the node, or -1 if it was cut.
 * Returns the number of uncut ones. */
int esp_draft_offer(struct esp_draft *draft, const struct esp_candidate *candidates, int count,
                    int budget, enum esp_reason reason, int32_t *nodes);

/* ------------------------------------------------------------------ the drafter */

struct esp_drafter_ops {
    const char *name, *summary, *source;
    const char *differs;            /* differences from the source and their reasons; or
                                       NULL */
    unsigned draws;                 /* of enum esp_draws: draws that it can produce */
    const char *verifier;           /* default if it is exact; NULL: the default for the
                                       draws */
    bool needs_model;               /* uses the draft model */
    bool weighs_costs;              /* uses the costs of passes */
    const struct esp_param *params; /* ended by a row without a name, or NULL */
    size_t state_size;

    /* It looks back: esp_look_back is filled after each iteration. */
    bool looks_back;
    /* 0: `draft_temp auto` is learned. Else it is the text's temperature, at least this one. */
    double least_draft_temp;
    /* Opens what it needs for a pair, a verifier and its parameters, after any of them was
     * chosen. On failure it writes a sentence and leaves the state unchanged. NULL: nothing to
     * open. */
    int (*bind)(void *state, const struct esp_params *params, const struct esp_engine *engine,
                const char *verifier, char *err, size_t errlen);
    /* A warning about this pair, or NULL. NULL: never. */
    const char *(*note)(const void *state);
    /* The shapes considered for the tree just drafted; returns their number. NULL: none. */
    int (*choices)(const void *state, struct esp_shape_choice choices[ESP_MAX_CHOICES]);

    /* Checks parameters against each other; NULL: nothing to check. */
    int (*check)(const struct esp_params *params, char *err, size_t errlen);
    /* Sets the state from the parameters, at the start (changed = -1) and after each change of
     * parameter `changed`. Resets only what depends on that parameter. NULL: no state. */
    void (*init)(void *state, const struct esp_params *params, int changed);
    /* The session leaves the drafter or ends: last chance to store what was learned. NULL:
     * nothing. */
    void (*close)(void *state);
    /* The draws it produces with these parameters; NULL: the single bit in `draws`. */
    unsigned (*draws_with)(const struct esp_params *params, bool greedy);
    /* Does no node ever get two children with these parameters? NULL: some may. */
    bool (*single_path)(const struct esp_params *params);
    /* Grows the tree. 0 or a negative status. */
    int (*draft)(struct esp_draft *draft);
    /* The generation has ended; NULL: nothing to do. */
    void (*finish)(void *state, const struct esp_params *params);
    /* Learns from the iteration; NULL: it does not learn. */
    void (*adapt)(void *state, const struct esp_params *params,
                  const struct esp_iteration *iteration);
    /* Writes the controller's values as `after`; returns how many. NULL: none. */
    int (*gauges)(const void *state, const struct esp_params *params, struct esp_gauge *gauges);
};

/* The end of `differs` for drafters with a source that uses the draft's probabilities
 * untempered. Here thresholds and draws use the tempered ones. */
#define ESP_DIFFERS_TEMPERED                                                                   \
    "the draft's logits are divided by draft_temp, which is learned unless given; the source " \
    "does not temper them (--draft-temp off)"

extern const struct esp_drafter_ops *const esp_drafters[]; /* NULL-terminated */
const struct esp_drafter_ops *esp_drafter_find(const char *name);

enum { ESP_PRUNE_CUT, ESP_PRUNE_STOP };

/* Parameter rows that several drafters share. */
#define ESP_PARAM_CACHE                                                                        \
    {"cache", ESP_CHOICE, 0, 1, 0, .choices = "keep|rebuild",                                  \
     .help = "keep accepted rows, or compute them again (the papers' literal form)"}
#define ESP_PARAM_DRAWS(sampled)                                                               \
    {"draws", ESP_CHOICE, 0, 2, 0, .choices = "auto|topk|" sampled,                            \
     .help = "children: likeliest tokens, or sampled; auto: sampled above temperature 0"}
#define ESP_PARAM_PRUNE                                                                        \
    {                                                                                          \
        "prune", ESP_CHOICE, 0, 1, ESP_PRUNE_CUT,                                              \
            .choices = "cut|stop",                                                             \
            .help =                                                                            \
                "paths below tau: cut (not verified), or stop (verified, not continued)"   \
    }
#define ESP_PARAM_ROOT                                                                         \
    {"root", ESP_CHOICE, 0, 1, 0, .choices = "committed|draft",                                \
     .help = "start the tree at the last committed token, or at the draft's first guess"}

/* Does a value of ESP_PARAM_DRAWS ask for sampled children? */
static inline bool esp_draws_sampled(double value, bool greedy)
{
    return value == 2 || (value == 0 && !greedy);
}

#endif
