/* session_parts.h - declares the fields of esp_session, and the functions that the sources of a
 * session (session.c, session_caches.c, session_settings.c, loop.c and others) share. */
#ifndef ESP_SESSION_PARTS_H
#define ESP_SESSION_PARTS_H

#include "engine/calibration.h"
#include "engine/conversation.h"
#include "engine/target_features.h"
#include "kernels/clock.h"
#include "engine/kv_cache.h"
#include "engine/costs.h"
#include "engine/drafters/draft.h"
#include "engine/drafters/respell.h"
#include "engine/engine.h"
#include "engine/expectation.h"
#include "engine/pace.h"
#include "engine/recycling.h"
#include "engine/verifiers/verifier.h"

/* After the first iterations, one plain decoding step is timed every 32 iterations. */
enum { ESP_BASELINE_EVERY = 32 };

/* Holds the user's settings. Changes are made in a copy, and the whole copy is checked before
 * it takes effect. */
struct esp_settings {
    const struct esp_drafter_ops *drafter;
    const struct esp_verifier_ops *verifier;
    bool drafter_chosen;  /* the user chose the drafter; otherwise it depends on the
                             temperature */
    bool verifier_chosen; /* the user chose the verifier; else it depends on temperature and
                             drafter */
    bool lossy; /* true: the verifier is not exact with these settings; the user allowed this */
    struct esp_params drafter_params, verifier_params;
    struct esp_session_values values;
    struct esp_sampling sampling; /* the values of temperature, top_p and top_k, for kernels;
                                     temperature 0: greedy */
};

struct esp_session {
    struct esp_engine *engine;
    const struct esp_backend_ops *ops;
    struct esp_settings set;
    char drafter_spec[ESP_SPEC_TEXT], verifier_spec[ESP_SPEC_TEXT]; /* "name:k=v,..." */
    esp_observer *observer;
    void *user;
    double opened;
    bool repeatable; /* true: no values learned about the draft are loaded or saved */
    char pair[256];  /* key of learned values: names of target and draft; "" means unknown */

    int32_t *text; /* (text_room) tokens; the last one is the root, not yet computed by the
                      target */
    int text_room, length;
    int context;     /* maximum length of the text */
    int allowed;     /* number of tokens that this generation may still add */
    const char *end; /* why the generation ended, or "" */
    struct esp_conversation conversation;

    int rank_starts; /* value of esp_rank_times.starts when the caches were opened */
    struct esp_kv_cache target;
    struct esp_kv_cache draft_cache; /* if the draft is a quantised copy of the target, a view
                                        of `target` */
    struct esp_features features;    /* all zero unless the draft is a draft head */
    struct esp_rows *p, *q, *states;
    struct esp_tree_builder tree;
    struct esp_draft draft;
    struct esp_respelling respelling;       /* for a draft model that drafts text */
    struct esp_draft_context draft_context; /* for drafters that request it */
    bool rebuild;                           /* true if the accepted rows are computed again */
    struct esp_verify verify;
    struct esp_rng draft_rng, verify_rng;
    struct esp_arrays arrays; /* owns the next three arrays of tree.capacity + 1 entries */
    int32_t *positions;       /* scratch: positions of the rows of a pass */
    int32_t *tokens;          /* scratch: tokens of the rows of a pass, or row indices */
    int32_t *committed;       /* tokens that the iteration commits */
    struct esp_iteration iteration;
    struct esp_scores scores; /* all zero until scores are requested */

    struct esp_stats stats;
    int first_index; /* index of the first iteration; see esp_session_count_from() */
    int64_t path_sum;
    struct esp_pace plain, pace; /* times of plain decoding and of iterations */
    struct esp_calibration calibration;
    struct esp_costs costs;
    struct esp_recycling recycling;
    struct esp_expectation expectation;
    unsigned expected_serial; /* serial number of the last expected text */
    double beta;              /* beta in the running iteration; see calibration.h */
};

/* Returns whether the drafter reads the distributions and states of both models from the last
 * iteration. */
static inline bool esp_session_keeps_past(const struct esp_session *session)
{
    return session->set.drafter->asks & ESP_ASK_PAST;
}

/* Sends the event to the observer, if there is one. */
static inline void esp_session_emit(struct esp_session *s, struct esp_event event)
{
    event.time = esp_clock() - s->opened;
    if (s->observer)
        s->observer(s->user, &event);
}

/* Describes a matrix to open. If `rows` is 0, no matrix is opened. */
struct esp_wanted_rows {
    struct esp_rows **to;
    int rows, width;
};
/* Opens the matrices that are not open yet. Returns 0 or a negative status. */
int esp_session_open_rows(const struct esp_session *session,
                          const struct esp_wanted_rows *wanted, int count, char *err,
                          size_t errlen);

/* Applies the settings in `options` to a session that has no settings yet. Returns 0, or a
 * negative status if the settings do not fit together. */
int esp_session_first_settings(struct esp_session *session,
                               const struct esp_session_options *options, char *err,
                               size_t errlen);
/* Copies the texts of `values` into the session and frees the session's old texts. Returns 0 or
 * ESP_E_MEMORY. */
int esp_session_keep_texts(struct esp_session *session, struct esp_session_values *values,
                           char *err, size_t errlen);
/* Frees the state of the drafter. */
void esp_session_close_drafter(struct esp_session *session);
/* Restarts the random numbers, as in a new session with the same seed. */
void esp_session_restart_random(struct esp_session *session);

/* Appends tokens to the text and runs the target over them. The user's message is tokens
 * [said, said_end). If `begin` is true, a new text gets the begin-of-text token first. */
int esp_session_append(struct esp_session *session, const int32_t *tokens, int count,
                       bool begin, int said, int said_end, char *err, size_t errlen);
/* Computes the attention window for these settings; recent = 0 means no window. Returns 0, or a
 * negative status if this model or backend does not support the window. */
int esp_session_choose_window(const struct esp_session *session,
                              const struct esp_session_values *values,
                              struct esp_window *window, char *err, size_t errlen);
/* Opens caches for this window and fills them with the text. Does nothing if the open caches
 * have the same window. On failure the old caches stay. */
int esp_session_open_caches(struct esp_session *session, const struct esp_window *window,
                            char *err, size_t errlen);
/* Call this with the status of a pass that failed. If ranks have ended or hang, and the text
 * can be computed again within half a minute, starts them again and recomputes the text.
 * Returns 0 if this succeeded, so that the failed pass can be repeated. Otherwise, returns the
 * status. */
int esp_session_recover(struct esp_session *session, int status);
/* Returns how many tokens the last token of a text of `length` tokens attends to. */
int esp_session_seen(const struct esp_session *session, int length);
/* Allocates memory for a text of this many tokens. Returns 0 or ESP_E_MEMORY. */
int esp_session_text_room(struct esp_session *session, int tokens);
/* Runs the models over the tokens of the text that are not in the caches yet. */
int esp_session_prefill(struct esp_session *session);
/* Shortens the text to its first `count` tokens. The caller handles turns and events. */
void esp_session_shorten(struct esp_session *session, int count);
/* Works like esp_session_shorten(), but the caches keep their first `rows` rows. `rows` must be
 * count - 1, or count if other tokens are appended next. */
void esp_session_keep_rows(struct esp_session *session, int count, int rows);
/* Returns whether a text is far longer than the context, without tokenizing all of it. */
bool esp_session_is_far_too_long(const struct esp_session *session, const char *text,
                                 size_t length);

/* These are indices of device time stamps. Stage i begins at index 2i and ends at 2i + 1. */
enum { ESP_MARK_PREFILL = 2 * ESP_STAGES + 1, ESP_MARK_PREFILLED };

/* Sets whether the verifier stores the distribution at the end of a path, and in which row. */
void esp_session_choose_end(struct esp_session *session);
/* Call this after the verifier. Computes the scores of the tokens that it chose, if they were
 * requested. */
int esp_session_score_path(struct esp_session *session);

/* The first function returns whether the draft is a draft head. The second function returns
 * whether the draft is a quantised copy of the target (`--draft self`). */
bool esp_session_has_head(const struct esp_session *session);
bool esp_session_has_copy(const struct esp_session *session);
/* Returns whether the draft is an MTP layer. */
bool esp_session_has_mtp(const struct esp_session *session);

/* Records a device time stamp. Does nothing if the host's clock can time the backend. */
void esp_session_mark(struct esp_session *session, int slot);

/* Returns the error message of a failed call: the device's own message, if it has one. */
const char *esp_session_failure(const struct esp_session *session, int status);

/* Returns the sampling settings that turn draft logits into q, before tempering. At
 * temperature 0 they keep the draft's own distribution. */
struct esp_sampling esp_draft_sampling(const struct esp_settings *settings);

/* Returns beta (calibration.h). The draft's logits are divided by the text's temperature and
 * multiplied by beta. */
double esp_session_beta(const struct esp_session *session);

#endif
