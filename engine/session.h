/* session.h - the fields of esp_session, shared by session.c (settings, text) and loop.c
 * (iterations). */
#ifndef ESP_SESSION_H
#define ESP_SESSION_H

#include "engine/calibration.h"
#include "engine/conversation.h"
#include "engine/target_features.h"
#include "engine/kv_cache.h"
#include "engine/costs.h"
#include "engine/drafters/draft.h"
#include "engine/engine.h"
#include "engine/pace.h"
#include "engine/verifiers/verifier.h"

/* One plain decoding step is timed per this many iterations. */
enum { ESP_BASELINE_EVERY = 32 };

/* The user's settings. They are copied, changed and checked as a whole before they take effect.
 */
struct esp_settings {
    const struct esp_drafter_ops *drafter;
    const struct esp_verifier_ops *verifier;
    bool drafter_chosen;  /* by the user; otherwise it follows the temperature */
    bool verifier_chosen; /* by the user; otherwise it follows temperature and drafter */
    bool lossy; /* the verifier is not exact with these settings, and the user allowed that */
    struct esp_params drafter_params, verifier_params;
    struct esp_session_values values;
    struct esp_sampling sampling; /* from the values, in the form that kernels take;
                                     temperature 0: greedy */
};

struct esp_session {
    struct esp_engine *engine;
    const struct esp_backend_ops *ops;
    struct esp_settings set;
    char drafter_spec[ESP_SPEC_TEXT], verifier_spec[ESP_SPEC_TEXT]; /* of `set`, as text */
    esp_observer *observer;
    void *user;
    double opened;
    bool repeatable; /* nothing learned about the draft is loaded or saved */
    char pair[256];  /* names target and draft, for learned values; "": unknown */

    int32_t *text; /* (text_room) tokens; the last one is the root, not yet computed by the
                      target */
    int text_room, length;
    int context;     /* maximum length of the text */
    int allowed;     /* tokens this generation may still add */
    const char *end; /* why it ended, or "" */
    struct esp_conversation conversation;

    struct esp_kv_cache target, draft_cache;
    struct esp_features features; /* all zero unless the draft is a draft head */
    struct esp_rows *p, *q, *states;
    struct esp_tree_builder tree;
    struct esp_draft draft;
    struct esp_draft_context draft_context; /* for drafters that ask for it */
    bool rebuild;                           /* rows of accepted tokens are computed again */
    struct esp_verify verify;
    struct esp_rng draft_rng, verify_rng;
    struct esp_arrays arrays; /* of the next three */
    int32_t *positions;       /* (capacity + 1) of the rows of a verify pass */
    int32_t *tokens;          /* (capacity + 1) */
    int32_t *committed;       /* (capacity + 1) */
    struct esp_iteration iteration;
    struct esp_scores scores; /* zeroed until they are asked for */

    struct esp_stats stats;
    int64_t path_sum;
    struct esp_pace plain, pace; /* of plain decoding and of iterations, over the same period
                                  */
    struct esp_calibration calibration;
    struct esp_costs costs;
    double beta; /* of the running iteration, see calibration.h */
};

/* Does the drafter ask for what both models said before the root? */
static inline bool esp_session_keeps_past(const struct esp_session *session)
{
    return session->set.drafter->asks & ESP_ASK_PAST;
}

void esp_session_emit(struct esp_session *session, struct esp_event event);

/* Appends tokens to the text and runs the target over them. The user's message is tokens [said,
 * said_end). `begin`: a new text gets the begin-of-text token first. */
int esp_session_append(struct esp_session *session, const int32_t *tokens, int count,
                       bool begin, int said, int said_end, char *err, size_t errlen);
/* The window that the settings ask for; recent = 0: none. Returns 0 or an error. */
int esp_session_choose_window(const struct esp_session *session,
                              const struct esp_session_values *values,
                              struct esp_window *window, char *err, size_t errlen);
/* Opens caches for this window and computes the text in them. Does nothing if the open ones
 * have the same window. On failure the old ones stay. */
int esp_session_open_caches(struct esp_session *session, const struct esp_window *window,
                            char *err, size_t errlen);
/* Number of tokens that the last token of a text of `length` sees. */
int esp_session_seen(const struct esp_session *session, int length);
/* Allocates room for a text of this many tokens. Returns 0 or ESP_E_MEMORY. */
int esp_session_text_room(struct esp_session *session, int tokens);
/* Computes the tokens of the text that are not in the caches. */
int esp_session_prefill(struct esp_session *session);
/* Shortens the text to its first `count` tokens. The caller handles turns and events. */
void esp_session_shorten(struct esp_session *session, int count);
/* The same, but keeps the first `rows` rows of the caches: count - 1, or count if other tokens
 * follow. */
void esp_session_keep_rows(struct esp_session *session, int count, int rows);
/* Quick test before tokenizing: is the text far longer than the context? */
bool esp_session_is_far_too_long(const struct esp_session *session, const char *text,
                                 size_t length);

/* Indices of device time stamps: 2i and 2i + 1 are the beginning and the end of stage i. */
enum { ESP_MARK_PREFILL = 2 * ESP_STAGES + 1, ESP_MARK_PREFILLED };

/* Sets whether the verifier keeps the distribution at the end of a path, and where. */
void esp_session_choose_end(struct esp_session *session);
/* After the verifier: scores of the tokens that it chose, if they are asked for. */
int esp_session_score_path(struct esp_session *session);

/* Is the draft a draft head? */
bool esp_session_has_head(const struct esp_session *session);

/* Records a device time stamp. Does nothing if the host's clock can time the backend. */
void esp_session_mark(struct esp_session *session, int slot);

/* The error sentence of a failed call: the device's own if it has one. */
const char *esp_session_failure(const struct esp_session *session, int status);

/* Sampling that turns draft logits into q, before tempering. At temperature 0 it keeps the
 * draft's own distribution. */
struct esp_sampling esp_draft_sampling(const struct esp_settings *settings);

/* Further factor of the draft's logits, see calibration.h. */
double esp_session_beta(const struct esp_session *session);

#endif
