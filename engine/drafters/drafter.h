/* drafter.h - drafters: what one is, and what it can ask of the draft model.
 *
 * A drafter fills the session's tree. It lives in one file of drafters/, exports one
 * `const struct esp_drafter_ops esp_drafter_NAME` and has one X(NAME) line in drafters.def;
 * parsing, help, completion, lists and tests follow from that.
 *
 * Drafters draft layer by layer: esp_draft_expand() runs the draft model once over a whole
 * frontier, with tree attention, so an iteration costs as many draft passes as the tree is
 * deep. The draft model's key/value rows of accepted nodes are kept for the next iteration.
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
    int32_t parent, token, at; /* at: place in drawing order */
    float q, cumulative_log_q;
    bool taken;
};

struct esp_engine;
struct esp_kv_cache; /* a model's key/value rows; see kv_cache.h */
struct esp_features;    /* hidden states of the target: see target_features.h */
struct esp_calibration; /* how sure the draft may be: see calibration.h */
struct esp_costs;       /* what passes cost on this machine: see costs.h */

/* What the target says after the token before the root, kept from the last iteration for
 * drafters that look back. */
struct esp_look_back {
    int length;             /* of the text that it is about; another length: nothing is known */
    struct esp_rows *p;     /* (1, vocabulary) the target's distribution */
    struct esp_rows *state; /* (rows, hidden) its hidden states behind the final norm */
    int state_row;
    /* Row of q and of the draft's states where the draft said something there, or -1; to be read
     * before the next pass of the draft. */
    int draft_row;
};

enum { ESP_TIMED_PASSES = 64 };

struct esp_draft {
    struct esp_tree_builder *tree;
    const struct esp_params *params; /* of this drafter */
    void *state;                     /* (ops->state_size) of this drafter, zeroed before init */
    struct esp_rng *rng;
    struct esp_sampling sampling; /* how q is made, at the draft's temperature */
    double temperature;           /* of the text; 0: greedy */
    bool greedy;                  /* the text is generated at temperature 0 */
    int seen; /* tokens of the text that its last one sees: all, or those of a window */
    int max_depth;                /* no node may be deeper (context and length limits) */

    /* Tokens committed so far, root last. For drafters that look at the text. */
    const int32_t *text;
    int text_length;

    const struct esp_calibration *calibration;
    const struct esp_costs *costs;
    const struct esp_look_back *back;

    bool repeatable; /* nothing that other sessions learned is read, and nothing is kept */
    char pair[256];  /* names target and draft, for what is learned about them; empty: unknown */

    /* Results of the last esp_draft_expand(): (count, k) the k likeliest tokens of each
     * node. */
    int32_t *top_token;
    float *top_q;
    struct esp_candidate *candidates; /* (capacity * (ESP_MAX_TOP + 1)) for drafters */

    /* Below: the session's business. */
    struct esp_kv_cache *cache; /* NULL: there is no draft model */
    /* Only with a draft head: the target's hidden states, and the head's own after each expanded
     * node, (capacity, hidden), in the rows of q. */
    const struct esp_features *features;
    struct esp_rows *states;
    struct esp_rows *q; /* (capacity) draft probabilities after each expanded node */
    int32_t *q_row;     /* (record) row of q of a node: root 0, others as expanded; -1: not */
    int expanded;       /* nodes expanded, root included */
    int capacity;       /* nodes that can be expanded; q has one more row */
    /* (capacity + 1, hidden) hidden states after each expanded node (behind the final norm), in
     * the rows of q; NULL: the drafter does not look back. */
    struct esp_rows *own_states;
    int passes, rows;   /* of this iteration: passes, and the rows that they computed */
    /* Of the first passes: rows computed, and seconds from the start of a pass to that of the
     * next one (the last: to the end of the stage), without those of an observer. */
    int pass_rows[ESP_TIMED_PASSES];
    double pass_seconds[ESP_TIMED_PASSES], pass_began;
    double model_seconds; /* that the draft model's passes of this iteration took */
    double watched; /* seconds that the observer took while the draft ran */
    struct esp_draft_scratch *scratch;
    void (*layer)(void *user); /* called after each pass: a front end can watch the tree grow */
    void *user;
};

enum { ESP_MAX_TOP = 64 }; /* children of one node at most */

/* ------------------------------------------------------------------ passes and draws */

/* One draft pass over `count` nodes (the root, or nodes whose parents are expanded already):
 * computes their next-token distributions, sets their confidence and leaves the k
 * (1..ESP_MAX_TOP) likeliest tokens in top_token / top_q. With k = 0 draws below these nodes must
 * follow: one wait then serves both, and the confidence is known after them. Returns 0 or a
 * negative status. */
int esp_draft_expand(struct esp_draft *draft, const int32_t *nodes, int count, int k);

/* As esp_draft_expand() of the root, for drafters that look back. With `before` the pass also
 * covers the token before the root, and row `capacity` of q and of own_states are about it. The
 * text has at least two tokens. Where this pass was made, esp_draft_paths() makes no other over
 * the root. */
int esp_draft_expand_root(struct esp_draft *draft, bool before);

/* Draws one child below each of `count` expanded nodes. ESP_DRAW_IID: a parent may be named
 * several times, and a token drawn again is counted as a copy. ESP_DRAW_SWOR: each parent is
 * named once, and its earlier children are left out. children[i] becomes the node, or -1 where
 * nothing is left to draw from (or, which a drafter must prevent by counting draws, where the
 * tree is full). */
int esp_draft_draw(struct esp_draft *draft, const int32_t *parents, int count,
                   enum esp_draws how, int32_t *children);

/* R of dyspec, the probability with which the last child drawn below a parent was drawn: its q
 * over what its earlier siblings left, at most 1. */
double esp_draft_share(const struct esp_draft *draft, int32_t child);

/* Tokens that the root's pass computes: the root, and those in front of it that the draft model
 * has not seen yet. */
int esp_draft_behind(const struct esp_draft *draft);

/* To be called when the children found by a pass are in the tree: a front end watches. */
void esp_draft_layer_done(struct esp_draft *draft);

/* ------------------------------------------------------------------ rules of one shape */

/* What distinguishes the layer-by-layer drafters with likeliest-token children. */
struct esp_layer_rule {
    const void *drafter; /* handed to the functions below */
    /* May this node be expanded? If not, it sets the reason. */
    bool (*expand)(const void *drafter, const struct esp_node *node, enum esp_reason *reason);
    /* How many children does it get, 1..most? Its confidence is known. */
    int (*breadth)(const void *drafter, const struct esp_node *node);
    int most;          /* children of one node at most */
    int budget;        /* nodes in the tree at most */
    double log_least;  /* nodes with a lower cumulative log q are not expanded; -INFINITY: all
                          are */
    bool cut;          /* nor are they verified, but for the draft's first guess (below) */
    bool sampled;      /* children are drawn without replacement, and none is cut */
    bool draft_root;   /* the root gets a single child (the papers' literal form) */
};

/* Grows the tree by a rule: one draft pass per layer; where a layer does not fit the budget,
 * the nodes of highest cumulative q are taken. (dynatree, sec. 3.3, and dynatree-fixed-tree,
 * sec. 3.3, take the first ones, whatever their q.) Sampled children are drawn in rounds of one
 * below each node that gets another; where a round does not fit, it is the nodes of highest
 * cumulative q that get theirs, whatever would have come out. Each node must get at least one.
 */
int esp_draft_grow(struct esp_draft *draft, const struct esp_layer_rule *rule);

/* What distinguishes the drafters that draw independent paths: at depth i every path splits
 * into width[i], and each part draws its own token. Paths that drew the same tokens share
 * nodes. */
struct esp_path_rule {
    const int *width; /* (levels) */
    int levels;
    double least_q; /* a path ends behind a token with a lower q; 0: never */
};

/* Draws such paths, one pass per depth. Where they do not fit the tree, the last draws are left
 * out; every draw counts as a node for that, so that it never depends on the tokens that came
 * out. */
int esp_draft_paths(struct esp_draft *draft, const struct esp_path_rule *rule);

/* A single chain of at most `length` tokens, sampled or likeliest ones. It ends behind a token
 * with a q below least_q (0: never). */
int esp_draft_chain(struct esp_draft *draft, int length, double least_q, bool sampled);

/* What distinguishes the drafters that look for the likeliest nodes anywhere in the tree. */
struct esp_best_rule {
    int budget;       /* N nodes */
    int batch;        /* B nodes expanded by one pass */
    double threshold; /* th: stop when the next B nodes together are less likely */
};

/* SALF (salf-talf, alg. 2); with threshold 0 the N likeliest nodes, as SpecExec finds them. */
int esp_draft_best(struct esp_draft *draft, const struct esp_best_rule *rule);

/* Lists the k children of the `count` nodes just expanded as candidates, likeliest first; equal
 * ones in drawing order. Returns how many there are: tokens without probability are left
 * out. */
int esp_draft_candidates(struct esp_draft *draft, const int32_t *nodes, int count, int k,
                         struct esp_candidate *candidates);

/* Sorts by falling cumulative q, equal ones in drawing order. */
void esp_candidates_sort(struct esp_candidate *candidates, int count);

/* Adds candidates, which fall in cumulative q, so that the nodes not cut are the `budget`
 * likeliest of all offered so far: those that do not fit are recorded as cut, and so are nodes
 * that have to make room. nodes[i] (nodes may be NULL) becomes the node if it was not cut, else
 * -1. Returns how many were not cut. */
int esp_draft_offer(struct esp_draft *draft, const struct esp_candidate *candidates, int count,
                    int budget, enum esp_reason reason, int32_t *nodes);

/* ------------------------------------------------------------------ the drafter */

struct esp_drafter_ops {
    const char *name, *summary, *source;
    const char *differs;            /* where it differs from the source, and why; or NULL */
    unsigned draws;                 /* of enum esp_draws: those it can produce */
    const char *verifier;           /* the default where it is exact; NULL: that of the draws */
    bool needs_model;               /* asks the draft model */
    bool weighs_costs;              /* asks what passes cost */
    const struct esp_param *params; /* ended by a row without a name, or NULL */
    size_t state_size;

    /* It looks back: esp_look_back is filled after each iteration. */
    bool looks_back;
    /* 0: `draft_temp auto` is learned. Else it is the text's temperature, at least this one. */
    double least_draft_temp;
    /* Opens what it needs for a pair, a verifier and its parameters, when one of them was
     * chosen. On failure, with a sentence, the state is as before. NULL: needs nothing. */
    int (*bind)(void *state, const struct esp_params *params, const struct esp_engine *engine,
                const char *verifier, char *err, size_t errlen);
    /* A sentence about what is not as it should be with this pair, or NULL. NULL: never. */
    const char *(*note)(const void *state);
    /* The shapes that it considered for the tree just drafted; returns how many. NULL: none. */
    int (*choices)(const void *state, struct esp_shape_choice choices[ESP_MAX_CHOICES]);

    /* Checks parameters against each other; NULL: nothing to check. */
    int (*check)(const struct esp_params *params, char *err, size_t errlen);
    /* Sets the state from the parameters, at the start and after each change of parameter
     * `changed` (-1: the start): only what depends on that parameter is reset. NULL: no
     * state. */
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
    /* Learns from the iteration; NULL: does not. */
    void (*adapt)(void *state, const struct esp_params *params,
                  const struct esp_iteration *iteration);
    /* Writes the controller's values as `after`; returns how many. NULL: none. */
    int (*gauges)(const void *state, const struct esp_params *params, struct esp_gauge *gauges);
};

/* The end of `differs` of every drafter whose source takes the draft's probabilities as they
 * come. Thresholds and draws act on the tempered ones here. */
#define ESP_DIFFERS_TEMPERED                                                                   \
    "the draft's logits are divided by draft_temp, which is learned unless given, where the "  \
    "source takes them unchanged (--draft-temp off)"

extern const struct esp_drafter_ops *const esp_drafters[]; /* NULL-terminated */
const struct esp_drafter_ops *esp_drafter_find(const char *name);

enum { ESP_PRUNE_CUT, ESP_PRUNE_STOP };

/* Parameter rows that several drafters share. */
#define ESP_PARAM_CACHE                                                                        \
    {"cache", ESP_CHOICE, 0, 1, 0, .choices = "keep|rebuild",                                  \
     .help = "accepted rows are kept in place, or computed again (the papers' literal form)"}
#define ESP_PARAM_DRAWS(sampled)                                                               \
    {"draws", ESP_CHOICE, 0, 2, 0, .choices = "auto|topk|" sampled,                            \
     .help = "the likeliest tokens, or sampled ones; auto: sampled above temperature 0"}
#define ESP_PARAM_PRUNE                                                                        \
    {                                                                                          \
        "prune", ESP_CHOICE, 0, 1, ESP_PRUNE_CUT,                                              \
            .choices = "cut|stop",                                                             \
            .help =                                                                            \
                "paths less likely than tau are not verified, or verified but not continued"   \
    }
#define ESP_PARAM_ROOT                                                                         \
    {"root", ESP_CHOICE, 0, 1, 0, .choices = "committed|draft",                                \
     .help = "the tree starts at the last committed token, or at the draft's first guess"}

/* Does a value of ESP_PARAM_DRAWS ask for sampled children? */
static inline bool esp_draws_sampled(double value, bool greedy)
{
    return value == 2 || (value == 0 && !greedy);
}

#endif
