/* espalier_event.h - defines plain data about what a session did: trees, iterations and events.
 *
 * Part of the public interface (espalier.h includes it). All code that shows, stores, replays
 * or exports a generation uses only these structs, so it shows what was really computed.
 */
#ifndef ESPALIER_EVENT_H
#define ESPALIER_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/rank_lap.h"

#ifdef __cplusplus
extern "C" {
#endif

enum esp_verdict {
    ESP_UNVISITED, /* computed by the target, but not tested by the verifier */
    ESP_ACCEPTED,
    ESP_REJECTED,
    ESP_CUT, /* cut by the drafter before verification: the target never saw it */
};

/* Says why a node was cut or, for a verified leaf, why it was not expanded. */
#define ESP_REASON(X)                                                                          \
    X(NONE, "")                                                                                \
    X(THRESHOLD, "path too unlikely")                                                          \
    X(DEPTH, "depth limit")                                                                    \
    X(BUDGET, "node budget")                                                                   \
    X(BEAM, "outside the beam")                                                                \
    X(RERANK, "not among the best")                                                            \
    X(GAIN, "low gain")                                                                        \
    X(CONFIDENCE, "low confidence")                                                            \
    X(PRICE, "not worth a row")                                                                \
    X(LAYER, "not worth a draft pass")                                                         \
    X(PLAIN, "drafting does not pay now")                                                      \
    X(RETRIEVED, "found without the draft model")

enum esp_reason {
#define X(name, text) ESP_REASON_##name,
    ESP_REASON(X)
#undef X
};

const char *esp_reason_text(int reason);

/* Describes where the token of a node comes from. X(name, word, text): `word` is for a table,
 * `text` for a sentence. */
#define ESP_SOURCE(X)                                                                          \
    X(DRAFT, "draft", "from the draft model")                                                  \
    X(COPIED, "copied", "copied from the text")                                                \
    X(EXPECTED, "expected", "copied from the expected text")                                   \
    X(RECYCLED, "recycled", "recycled from an earlier pass of the target")

enum esp_source {
#define X(name, word, text) ESP_SOURCE_##name,
    ESP_SOURCE(X)
#undef X
        ESP_SOURCES /* number of sources */
};

const char *esp_source_word(int source);
const char *esp_source_text(int source);

/* One drafted token. Probabilities are after temperature, top-k and top-p. */
struct esp_node {
    int32_t token;
    int32_t parent; /* index of the parent in esp_tree.nodes; -1 for the root */
    int32_t depth;  /* 0 for the root */
    int32_t rank;   /* index among its siblings, in drawing order */
    int32_t copies; /* how often an i.i.d. drafter drew it; otherwise 1 */
    int32_t copied; /* distance in tokens to the position it was copied from; 0 means not
                       copied */
    /* The draft probability given the parent. For a copied token, this is its relative
     * frequency in the text it was copied from. For a recycled token, this is the fraction of
     * such tokens that were correct. */
    float q;
    float cumulative_log_q; /* sum of log q along the path from the root; 0 for the root */
    float confidence;       /* highest q among all possible children; NaN if never expanded */
    float value;            /* the drafter's estimate (dyspec: v); NaN if it has none */
    float p;                /* target probability given its parent; NaN if not computed */
    float u;                /* the random number that decided the test; NaN if not tested */
    float acceptance;       /* probability of acceptance; NaN if not tested */
    /* Probabilities that the verifier's formulas give, before any random number is drawn. NaN
     * if they were not requested (esp_session_explain), or the verifier has no such
     * formulas. */
    float branching;       /* P(the verifier continues from the parent to this node) */
    float acceptance_rate; /* P(the verifier continues to a child), averaged over the draws */
    float ceiling;         /* alpha*: the largest acceptance rate of any lossless verifier */
    uint8_t verdict;       /* enum esp_verdict */
    uint8_t reason;        /* enum esp_reason */
    uint8_t source;        /* enum esp_source; in old recordings, also 0 for a copied token */
    bool drawn;            /* true if the node was not tested, but the verifier then drew its
                              token from the residual */
};

struct esp_tree {
    /* (count) in order of creation; nodes[0] is the root, the last committed token */
    struct esp_node *nodes;
    int count;
    /* (verified) nodes in flattened order, root first; parents before children */
    int32_t *order;
    int verified; /* number of rows that the target computed: the root and all nodes not cut */
};

enum esp_stage {
    ESP_STAGE_DRAFT,
    ESP_STAGE_FLATTEN,
    ESP_STAGE_VERIFY,
    ESP_STAGE_SELECT,
    ESP_STAGE_COMMIT,
    ESP_STAGE_ADAPT,
    ESP_STAGES,
};

const char *esp_stage_name(int stage);

/* A value of the adaptive controller, before and after this iteration. */
struct esp_gauge {
    const char *name; /* static text, e.g. "tauh" */
    double before, after;
    double minimum, maximum; /* the value is clipped to this range */
};

/* A tree shape that the drafter considered for this iteration: a path of `stem` tokens, then
 * `paths` paths of `branch` tokens. */
struct esp_shape_choice {
    int paths, stem, branch;
    double share;   /* probability of this shape in the drafter's policy */
    double tokens;  /* expected number of committed tokens */
    double seconds; /* expected time of the passes for this shape */
};

enum { ESP_LIKELY = 8 };

/* The score of a token of the text: the target's distribution at the position of the token,
 * after temperature, top-k and top-p. At temperature 0, the distribution at temperature 1 is
 * used. */
struct esp_token_score {
    float p;                    /* probability of the token */
    float entropy;              /* entropy of the distribution, in bits */
    int32_t rank;               /* rank of the token, from 1; 0 means not among `likely` */
    int32_t count;              /* number of entries in `likely`; 0: nothing was computed */
    int32_t likely[ESP_LIKELY]; /* (count) the likeliest tokens, descending */
    float likely_p[ESP_LIKELY]; /* (count) */
};

enum { ESP_MAX_GAUGES = 12, ESP_MAX_NODES = 2048, ESP_MAX_CHOICES = 4 };

struct esp_iteration {
    int index;    /* index of the iteration in the session */
    int position; /* number of tokens of the text before this iteration, root included */
    struct esp_tree tree;
    const int32_t *path; /* (path_length) accepted nodes, root not included */
    int path_length;
    int32_t bonus;            /* token sampled from the target itself */
    float bonus_u;            /* the random number that drew the bonus token; NaN if greedy */
    const int32_t *committed; /* (committed_count) tokens appended to the text */
    int committed_count;      /* path_length + 1, or less at the end of a generation */
    /* (committed_count) the score of each committed token; NULL if scores were not requested
     * (esp_session_score()) */
    const struct esp_token_score *scores;
    bool ends_turn; /* the last committed token ends an answer in the chat format */
    int deepest;    /* depth of the deepest verified node */
    int draft_passes, target_passes;
    int mask_blocks; /* non-empty 32x32 blocks of the tree attention mask */
    /* The size of the states of the target's recurrent layers, and how many bytes of states the
     * target's pass read and wrote. All are 0 if the target has no recurrent layers. */
    int64_t state_bytes, state_read, state_written;
    struct esp_gauge gauges[ESP_MAX_GAUGES];
    int gauge_count;
    struct esp_shape_choice choices[ESP_MAX_CHOICES]; /* the shape that was used, then the next
                                                         best shapes */
    int choice_count; /* 0 means the drafter does not choose among shapes */
    double seconds[ESP_STAGES];
    /* exchange_seconds: the part of `seconds` in which ranks waited for each other and copied
     * rows; 0 without ranks. laps: the times of the last target pass, with one entry for each
     * rank in each lap (see rank_lap.h). */
    double exchange_seconds;
    struct esp_rank_lap laps[ESP_RANK_LAPS];
    int lap_count;
    double baseline; /* measured seconds of one plain decoding step; 0 if not measured */
    const char *drafter, *verifier;
    bool lossy; /* drafter and verifier may change the output distribution; the user allowed
                   it */
};

enum esp_event_type {
    ESP_EVENT_PROMPT,    /* tokens were appended by the user and prefilled */
    ESP_EVENT_LAYER,     /* one draft pass ended; the tree so far is in `iteration` */
    ESP_EVENT_STAGE,     /* `stage` ended; `iteration` has the results up to this stage */
    ESP_EVENT_ITERATION, /* all six stages ended */
    ESP_EVENT_SETTING,   /* a setting changed; it takes effect in the next iteration */
    ESP_EVENT_END,       /* the generation ended; `text` says why */
    ESP_EVENT_REWIND,    /* the text was shortened to its first `token_count` tokens */
    ESP_EVENT_DROP,      /* `token_count` tokens from `token_start` on were removed */
    ESP_EVENT_NOTE,      /* something happened that a user should know: `text` */
};

/* All pointers belong to the session and are valid only during the callback. */
struct esp_event {
    int type;
    double time; /* seconds since the session was opened */
    int stage;
    const struct esp_iteration *iteration;
    const int32_t *tokens; /* for a prompt: the appended tokens */
    int token_count;
    int token_start; /* for a drop: index of the first removed token */
    /* for a prompt: number of the chat format's tokens before and after the user's message */
    int marks, marks_after;
    const char *key, *text; /* for a setting: its name and its new value */
    bool lossy;             /* for a setting: the output distribution can now change */
};

typedef void esp_observer(void *user, const struct esp_event *event);

/* The bytes of a token (not NUL-terminated), from an engine or a recording; NULL if unknown. */
typedef const char *esp_token_text(void *user, int32_t token, size_t *length);

struct esp_tokens {
    esp_token_text *text;
    void *user;
};

#ifdef __cplusplus
}
#endif
#endif
