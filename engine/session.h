/* session.h - the insides of esp_session, shared by session.c (settings, text) and loop.c
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

/* Plain decoding is timed once in so many iterations. */
enum { ESP_BASELINE_EVERY = 32 };

/* What the user can choose; copied, changed and checked as a whole before it takes effect. */
struct esp_settings {
    const struct esp_drafter_ops *drafter;
    const struct esp_verifier_ops *verifier;
    bool drafter_chosen;  /* by the user; otherwise it follows the temperature */
    bool verifier_chosen; /* by the user; otherwise it follows temperature and drafter */
    bool lossy; /* the rule is not exact with these settings, and the user allowed that */
    struct esp_params drafter_params, verifier_params;
    struct esp_session_values values;
    struct esp_sampling sampling; /* of the values, as kernels take it; temperature 0: greedy */
};

struct esp_session {
    struct esp_engine *engine;
    const struct esp_backend_ops *ops;
    struct esp_settings set;
    char drafter_spec[ESP_SPEC_TEXT], verifier_spec[ESP_SPEC_TEXT]; /* of `set`, as text */
    void *drafter_state;
    esp_observer *observer;
    void *user;
    double opened;
    bool repeatable; /* nothing learned about the draft is read or kept */

    int32_t *text; /* (text_room) tokens; the last one is the root, its target row not yet
                      computed */
    int text_room, length;
    int context;     /* tokens that the text may have */
    int allowed;     /* tokens this generation may still add */
    const char *end; /* why it ended, or "" */
    struct esp_conversation conversation;

    struct esp_kv_cache target, draft_cache;
    struct esp_features features; /* all zero unless the draft is a draft head */
    struct esp_rows *p, *q, *states;
    struct esp_rows *draft_states; /* (max_nodes + 2, hidden) of the draft; see drafter.h */
    struct esp_look_back back;     /* its rows belong to the session */
    struct esp_tree_builder tree;
    struct esp_draft draft;
    struct esp_verify verify;
    struct esp_rng draft_rng, verify_rng;
    int32_t *positions; /* (capacity + 1) of the rows of a verify pass */
    int32_t *tokens;    /* (capacity + 1) */
    int32_t *committed; /* (capacity + 1) */
    struct esp_iteration iteration;

    struct esp_stats stats;
    int64_t path_sum;
    struct esp_pace plain, pace; /* of plain decoding, of iterations: over the same stretch */
    struct esp_calibration calibration;
    struct esp_costs costs;
    double beta; /* of the iteration that runs: see calibration.h */
};

void esp_session_emit(struct esp_session *session, struct esp_event event);

/* Appends tokens to the text and runs the target over them; tokens [said, said_end) are what a
 * user said. `begin`: a new text gets the begin-of-text token first. */
int esp_session_append(struct esp_session *session, const int32_t *tokens, int count,
                       bool begin, int said, int said_end, char *err, size_t errlen);
/* What the settings say of a window; recent = 0: none. Returns 0 or an error. */
int esp_session_choose_window(const struct esp_session *session,
                              const struct esp_session_values *values,
                              struct esp_window *window, char *err, size_t errlen);
/* Opens the caches for it, and computes the text in them; does nothing if the ones that are
 * open are for the same. On failure the old ones stay. */
int esp_session_open_caches(struct esp_session *session, const struct esp_window *window,
                            char *err, size_t errlen);
/* How many tokens of a text of `length` its last one sees. */
int esp_session_seen(const struct esp_session *session, int length);
/* Makes room for a text of so many tokens; 0 or ESP_E_MEMORY. */
int esp_session_text_room(struct esp_session *session, int tokens);
/* Computes the rows of the text that are not in the caches. */
int esp_session_prefill(struct esp_session *session);
/* Makes the text its first `count` tokens; turns and events are the caller's. */
void esp_session_shorten(struct esp_session *session, int count);
/* Is a text, as long as need be, far more than the context holds? */
bool esp_session_is_far_too_long(const struct esp_session *session, const char *text,
                                 size_t length);

/* Slots of a backend's marks: 2i and 2i + 1 are the beginning and the end of stage i. */
enum { ESP_MARK_PREFILL = 2 * ESP_STAGES + 1, ESP_MARK_PREFILLED };

/* Is the draft a draft head? */
bool esp_session_has_head(const struct esp_session *session);

/* Does nothing where the host's clock can time the backend. */
void esp_session_mark(struct esp_session *session, int slot);

/* What to tell of a failed call: the device's own sentence if it has one. */
const char *esp_session_failure(const struct esp_session *session, int status);

/* The sampling that turns draft logits into q before it is tempered: at temperature 0 the
 * draft's own distribution. */
struct esp_sampling esp_draft_sampling(const struct esp_settings *settings);

/* What the draft's logits are multiplied with besides: see calibration.h. */
double esp_session_beta(const struct esp_session *session);

#endif
