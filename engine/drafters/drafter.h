/* drafter.h - the interface of drafters, and the operations of the draft model that
 * drafters call.
 *
 * A drafter fills the session's tree. It consists of one file in drafters/, which exports one
 * `const struct esp_drafter_ops esp_drafter_NAME`, and one X(NAME) line in drafters.def.
 * Parsing, help, completion, lists and tests use this struct, so they need no change for a new
 * drafter.
 *
 * Drafters draft layer by layer: esp_draft_expand() runs the draft model once over a whole
 * frontier, with tree attention. An iteration therefore takes one draft pass per layer of the
 * tree. The draft model's key/value rows of accepted nodes are kept for the next iteration.
 */
#ifndef ESP_DRAFTER_H
#define ESP_DRAFTER_H

#include "kernels/kernels.h"
#include "engine/support/params.h"
#include "engine/support/rng.h"
#include "engine/tree.h"

/* Says how a drafter draws children. A verifier is lossless only with some of these draws. */
enum esp_draws {
    ESP_DRAW_TOPK = 1, /* the likeliest tokens, deterministic */
    ESP_DRAW_IID = 2,  /* independent samples; duplicates are counted in `copies` */
    ESP_DRAW_SWOR = 4, /* sampled without replacement, in order */
};

/* Describes a child that a drafter could add to the tree. */
struct esp_candidate {
    int32_t parent, token, at; /* at: index in drawing order */
    float q, cumulative_log_q;
    bool taken; /* chosen for the tree */
};

struct esp_calibration; /* draft temperature and acceptance rates: see calibration.h */
struct esp_costs;       /* measured time of passes: see costs.h */
struct esp_draft_work;  /* data of draft passes that only the session uses: see draft.h */
struct esp_engine;
struct esp_expected;   /* a text that the answer is expected to resemble: see follow.h */
struct esp_respelling; /* two vocabularies: see respell.h */
struct esp_recycled; /* tokens that the target found likely after each token: see recycled.h */

/* Holds the last iteration's results of both models for the token before the root. The draft's
 * rows are in the order of expansion. If a pass computed the token before the root separately,
 * row `capacity` belongs to this token. */
struct esp_look_back {
    int length;                    /* the results are for a text of this many tokens */
    struct esp_rows *p;            /* (1, vocabulary) the target's distribution */
    struct esp_rows *state;        /* (rows, hidden) the target's states after the final norm */
    int state_row;                 /* the row of `state` for that token */
    struct esp_rows *q;            /* (capacity + 1, vocabulary) the draft's distributions */
    struct esp_rows *draft_states; /* (capacity + 1, hidden) the draft's states after the final
                                      norm */
    /* Row of q and draft_states for the token before the root; -1 if there is none. The draft's
     * next pass overwrites these rows. */
    int draft_row;
};

/* Flags of a drafter's member `asks`. A drafter gets the data of a flag only if the flag is
 * set. */
enum esp_asks {
    ESP_ASK_COSTS = 1,     /* calibration and costs */
    ESP_ASK_PAIR = 2,      /* a name for this pair of models, under which the drafter stores
                              what it learns */
    ESP_ASK_PAST = 4,      /* both models' results for the token before the root */
    ESP_ASK_EXPECTED = 8,  /* the expected text */
    ESP_ASK_RECYCLED = 16, /* recycled tokens */
    ESP_ASK_TEXT = 32,     /* both vocabularies, if few tokens are shared: see respell.c */
};

struct esp_draft_context {
    const struct esp_calibration *calibration;
    const struct esp_costs *costs;
    const char *pair; /* names of target and draft; "" means unknown, or that nothing may be
                         stored */
    struct esp_look_back back;
    const struct esp_expected *expected;     /* NULL if there is no expected text */
    const struct esp_recycled *recycled;     /* NULL means that no tokens are recycled */
    const struct esp_respelling *respelling; /* NULL: the draft predicts the target's tokens */
};

/* Holds the data of a session that drafters read and write. */
struct esp_draft {
    /* The following members are set when the settings change. */
    struct esp_tree_builder *tree;
    const struct esp_params *params;   /* this drafter's parameters */
    void *state;                       /* (ops->state_size) state of this drafter, zeroed before
                                        init */
    unsigned draws;                    /* how this drafter draws children now: a value of
                                      * enum esp_draws */
    double temperature;                /* the output's sampling temperature */
    bool greedy;                       /* the temperature is 0 */
    struct esp_draft_context *context; /* NULL if the drafter requests no data */

    /* The following members are set for each iteration. */
    struct esp_sampling sampling; /* how logits become q, at the draft's temperature */
    int seen;                     /* number of tokens to which the root attends: all, or a
                                   * window */
    int max_depth;                /* maximum depth of a node, limited by context and output
                                     length */
    const int32_t *text;          /* (text_length) committed tokens, root last */
    int text_length;

    /* Passes set the following members. */
    /* (count, k): the likeliest tokens after each node of the last esp_draft_expand(), and
     * their q. */
    int32_t *top_token;
    float *top_q;
    int32_t *q_row; /* (record) row of q for each node, in order of expansion. The root has row
                       0; -1 means not expanded. */
    int expanded;   /* nodes expanded, root included */
    int capacity;   /* nodes that can be expanded; q has one more row */
    int passes;     /* passes in this iteration */

    struct esp_candidate *candidates; /* (capacity * (ESP_MAX_TOP + 1)) scratch for drafters */
    struct esp_draft_work *work;
};

enum { ESP_MAX_TOP = 64 }; /* maximum children of a node */

/* ------------------------------------------------------------------ passes and draws */

/* Runs one draft pass over `count` nodes (the root, or nodes with expanded parents). Computes
 * their next-token distributions, sets their confidence and writes the k (1..ESP_MAX_TOP)
 * likeliest tokens to top_token and top_q. With k = 0, the caller must draw children of these
 * nodes next. The pass and the draws then wait for the device only once, and the draws set the
 * confidence. Returns 0 or a negative status. */
int esp_draft_expand(struct esp_draft *draft, const int32_t *nodes, int count, int k);

/* Expands the root as esp_draft_expand() does, for drafters with ESP_ASK_PAST. If `before` is
 * set, the pass also computes the token before the root, into row `capacity` of q and of
 * draft_states. The text must then have at least two tokens. esp_draft_paths() reuses this pass
 * for the root. */
int esp_draft_expand_root(struct esp_draft *draft, bool before);

/* Lets the draft model continue the text by up to `most` tokens of its own vocabulary. Each
 * token is the likeliest next token. The model stops after a token that ends a text. Writes the
 * tokens and their probabilities. Returns the number of tokens, or a negative status. */
int esp_draft_own(struct esp_draft *draft, const struct esp_respelling *respelling, int most,
                  int32_t *tokens, float *q);

/* Draws one child below each of `count` expanded nodes. ESP_DRAW_IID: a parent may occur
 * several times; a token drawn again is counted as a copy. ESP_DRAW_SWOR: each parent occurs
 * once, and its earlier children are excluded. Sets children[i] to the new node, or to -1 if no
 * token is left to draw. It is also -1 if the tree is full, which a drafter must prevent by
 * counting draws. */
int esp_draft_draw(struct esp_draft *draft, const int32_t *parents, int count,
                   enum esp_draws how, int32_t *children);

/* Returns the probability with which `child` was drawn (R in the DySpec paper). The child must
 * be the last child of its parent. The result is the child's q, divided by 1 minus the summed q
 * of its earlier siblings; at most 1. */
double esp_draft_share(const struct esp_draft *draft, int32_t child);

/* Returns how many tokens the pass over the root computes: the root, and the earlier tokens
 * that the draft model has not computed yet. */
int esp_draft_behind(const struct esp_draft *draft);

/* Call this when the children of a pass are in the tree, so that a front end can show them. */
void esp_draft_layer_done(struct esp_draft *draft);

/* ------------------------------------------------------------------ shared growth rules */

/* Describes how a drafter grows its tree layer by layer. If draft->draws is ESP_DRAW_SWOR,
 * children are drawn without replacement and none is cut; otherwise they are the likeliest
 * tokens. */
struct esp_layer_rule {
    const void *drafter; /* passed to the functions below */
    /* Returns whether to expand the node. If not, sets *reason. */
    bool (*expand)(const void *drafter, const struct esp_node *node, enum esp_reason *reason);
    /* Returns how many children the node gets, 1..most. Its confidence is already known. */
    int (*breadth)(const void *drafter, const struct esp_node *node);
    int most;         /* maximum children of a node */
    int budget;       /* maximum nodes in the tree */
    double log_least; /* nodes with a lower cumulative log q are not expanded; -INFINITY: no
                         limit */
    bool cut;         /* such nodes are also cut, except the draft's first guess (draft_root) */
    bool draft_root;  /* the root gets a single child, as the papers literally say */
};

/* Grows the tree by a rule, one draft pass per layer. If a layer exceeds the budget, the nodes
 * with the highest cumulative q are used. (dynatree, sec. 3.3, and dynatree-fixed-tree, sec.
 * 3.3, take the first nodes, whatever their q.) Sampled children are drawn in rounds: in each
 * round, every node that still lacks children gets one child. If a round does not fit, the
 * parents with the highest cumulative q get a child; this choice does not depend on the drawn
 * tokens. Each node must get at least one child. */
int esp_draft_grow(struct esp_draft *draft, const struct esp_layer_rule *rule);

/* Describes a tree with a fixed number of children per depth. If children are sampled,
 * every path splits into width[i] paths at depth i, and each of these paths draws its own
 * token. Paths with the same tokens share nodes. Otherwise a node at depth i gets its width[i]
 * likeliest children. */
struct esp_path_rule {
    const int *width; /* (levels) */
    int levels;       /* at most ESP_MAX_LEVELS */
    double least_q;   /* a path ends after a token with a lower q; 0 means never */
};

enum { ESP_MAX_LEVELS = 128 };

/* Sets the widths of a chain: one child per depth. Returns `levels`. */
static inline int esp_chain_widths(int width[ESP_MAX_LEVELS], int levels)
{
    for (int i = 0; i < levels; i++)
        width[i] = 1;
    return levels;
}

/* Grows the tree by a path rule, one pass per depth; draft->draws says how children are drawn.
 * If sampled paths do not fit in the tree, the last draws are left out. Every draw counts as a
 * node for this limit, so the limit never depends on which tokens are drawn. */
int esp_draft_paths(struct esp_draft *draft, const struct esp_path_rule *rule);

/* Grows the tree by SALF (salf-talf, alg. 2): expands the likeliest nodes anywhere in the
 * tree, `batch` per pass. Stops at `budget` nodes, or when the next `batch` nodes together are
 * less likely than `threshold`. With threshold 0, the tree has the `budget` likeliest nodes, as
 * in SpecExec. */
int esp_draft_best(struct esp_draft *draft, int budget, int batch, double threshold);

/* Appends children of a node that was just expanded to draft->candidates, which has `count`
 * entries: the `most` likeliest tokens, which begin at index `from` of top_token. Leaves out
 * tokens of probability 0. Returns the new count. */
int esp_draft_list(struct esp_draft *draft, int32_t node, int from, int most, int count);

/* Sorts candidates by falling cumulative q. Candidates with equal q stay in drawing order. */
void esp_candidates_sort(struct esp_candidate *candidates, int count);

/* Offers candidates to the tree. They must be sorted by falling cumulative q. Afterwards the
 * uncut nodes are the `budget` likeliest of all candidates offered so far. Candidates that do
 * not fit are recorded as cut, and nodes are cut to make room for likelier nodes. nodes[i]
 * becomes the node of candidate i, or -1 if it was cut; nodes may be NULL. Returns the number
 * of uncut candidates. */
int esp_draft_offer(struct esp_draft *draft, const struct esp_candidate *candidates, int count,
                    int budget, enum esp_reason reason, int32_t *nodes);

/* ------------------------------------------------------------------ the drafter */

/* Operations of a drafter that chooses the shape of each tree. The drafter reads a file that
 * was trained for this pair of target and draft model. */
struct esp_chooser_ops {
    /* With such a drafter and `draft_temp auto`, the draft temperature is not learned. It is
     * the output's temperature, or `least_draft_temp` if that is higher. */
    double least_draft_temp;
    /* Loads the data that the drafter needs for this engine's models, this verifier and these
     * parameters. The session calls this function whenever one of them has changed. On failure,
     * the function writes a message to `err` and leaves the state unchanged. */
    int (*bind)(void *state, const struct esp_params *params, const struct esp_engine *engine,
                const char *verifier, char *err, size_t errlen);
    /* Returns a warning about this pair, or NULL. */
    const char *(*note)(const void *state);
    /* Writes the shapes that were considered for the last tree; returns their number. */
    int (*choices)(const void *state, struct esp_shape_choice choices[ESP_MAX_CHOICES]);
};

struct esp_drafter_ops {
    const char *name, *summary, *source;
    const char *differs; /* differences from the source and their reasons; or NULL */
    /* The draws that the drafter can produce (flags of enum esp_draws). If it can both take the
     * likeliest tokens and draw samples of one kind, parameter `draws` (ESP_PARAM_DRAWS)
     * decides which. Without this parameter, the temperature decides. */
    unsigned draws;
    /* The default verifier of this drafter. If it is NULL, or is not exact for the current
     * draws, the default verifier for these draws is used. */
    const char *verifier;
    bool without_model;             /* the drafter does not use the draft model */
    unsigned asks;                  /* what the drafter needs: flags of enum esp_asks */
    const struct esp_param *params; /* the last entry has no name; NULL: no parameters */
    size_t state_size;
    const struct esp_chooser_ops *chooser; /* NULL means that the drafter chooses no shapes */

    /* Checks parameters against each other; NULL means nothing to check. */
    int (*check)(const struct esp_params *params, char *err, size_t errlen);
    /* Sets the state from the parameters, at the start (changed = -1) and after each change of
     * parameter `changed`. Resets only what depends on that parameter. NULL means that there is
     * no state. */
    void (*init)(void *state, const struct esp_params *params, int changed);
    /* Called when the session ends or changes to another drafter, to store what was learned
     * and to free memory. NULL means nothing to do. */
    void (*close)(void *state);
    /* Writes the maximum number of children per depth with these parameters; returns the number
     * of depths. NULL means that the trees have no fixed shape. */
    int (*widths)(const struct esp_params *params, int width[ESP_MAX_LEVELS]);
    /* Grows the tree. Returns 0 or a negative status. NULL means esp_draft_paths() with
     * `widths`.
     */
    int (*draft)(struct esp_draft *draft);
    /* Called when a generation has ended. NULL means nothing to do. */
    void (*finish)(struct esp_draft *draft);
    /* Learns from the iteration; NULL means it does not learn. */
    void (*adapt)(struct esp_draft *draft, const struct esp_iteration *iteration);
    /* Writes the controller's current values to member `after` of the gauges. Returns the
     * number of gauges. NULL means there are none. */
    int (*gauges)(const struct esp_draft *draft, struct esp_gauge *gauges);
};

/* The last sentences of `differs`, for drafters from papers that do not divide the draft's
 * logits by a temperature. In this program, thresholds and draws use the probabilities after
 * this division. */
#define ESP_DIFFERS_TEMPERED                                                                   \
    "The draft's logits are divided by draft_temp, which is learned unless you set it. "       \
    "With --draft-temp off, the logits are not divided, as in the source"

extern const struct esp_drafter_ops *const esp_drafters[]; /* NULL-terminated */
const struct esp_drafter_ops *esp_drafter_find(const char *name);

enum { ESP_PRUNE_CUT, ESP_PRUNE_STOP };

/* Parameters that several drafters share. */
#define ESP_PARAM_CACHE                                                                        \
    {                                                                                          \
        "cache", ESP_CHOICE, 0, 1, 0,                                                          \
            .choices = "keep|rebuild",                                                         \
            .help = "keep: keep accepted KV rows; rebuild: recompute them, as the papers do"   \
    }
#define ESP_PARAM_DRAWS(sampled)                                                               \
    {                                                                                          \
        "draws", ESP_CHOICE, 0, 2, 0,                                                          \
            .choices = "auto|topk|" sampled,                                                   \
            .help =                                                                            \
                "children: likeliest tokens, or sampled; auto: sampled above temperature 0"    \
    }
#define ESP_PARAM_PRUNE                                                                        \
    {                                                                                          \
        "prune", ESP_CHOICE, 0, 1, ESP_PRUNE_CUT,                                              \
            .choices = "cut|stop",                                                             \
            .help = "paths below tau: cut (not verified), or stop (verified, not continued)"   \
    }
#define ESP_PARAM_ROOT                                                                         \
    {                                                                                          \
        "root", ESP_CHOICE, 0, 1, 0,                                                           \
            .choices = "committed|draft",                                                      \
            .help =                                                                            \
                "start the tree at the last committed token, or at the draft's first guess"    \
    }

#endif
