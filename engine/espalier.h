/* espalier.h - declares the public interface of libespalier.
 *
 * An esp_engine has a target model, a draft model, and the backend that computes them. An
 * esp_session is one text that is being generated. It has tokens, KV caches, a drafter that
 * grows the tree, a verifier that accepts tokens of the tree, sampling settings and statistics.
 * Every call to esp_session_step() runs one iteration: draft a tree of tokens, verify it with
 * one target pass, commit the accepted path and one more token. Events report what happened;
 * front ends, recordings and exporters all receive the same events.
 *
 * Functions return 0 or more on success and a negative enum esp_status on failure. Functions
 * with an `err` argument write a sentence to it. The sentence names the file or value at fault
 * and says how to fix the problem. No function prints anything or ends the process. Only one
 * thread at a time may use an engine or its sessions; sessions of different engines are
 * independent.
 */
#ifndef ESPALIER_H
#define ESPALIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/espalier_event.h"
#include "engine/espalier_info.h"
#include "engine/espalier_lists.h"
#include "engine/espalier_options.h"
#include "engine/espalier_settings.h"
#include "engine/espalier_stats.h"
#include "engine/text_token.h"
#include "kernels/status.h"
#include "kernels/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ engine */

struct esp_engine;

/* Loads the models and opens the device. The options (espalier_options.h; NULL means all
 * defaults) and the memory they point to are not used after the call returns. On failure
 * *engine is NULL. */
int esp_engine_open(struct esp_engine **engine, const struct esp_engine_options *options,
                    char *err, size_t errlen);
/* Closes an engine. Close its sessions first. NULL is allowed. */
void esp_engine_close(struct esp_engine *engine);

double esp_engine_load_seconds(const struct esp_engine *engine);
/* Returns the maximum number of tokens of a text. */
int esp_engine_context(const struct esp_engine *engine);
/* Returns the drafter specification for this pair, from espalier.json in the target's folder,
 * for greedy decoding or for sampling. NULL means that the file names no drafter. */
const char *esp_engine_preset(const struct esp_engine *engine, bool sampling);
/* Returns the name of the chat format that the target's chat template uses (ESP_CHAT_FORMATS).
 * "" means the target has no chat template, like base models. NULL means its chat template is
 * unknown. */
const char *esp_engine_chat(const struct esp_engine *engine);

/* Encodes `length` bytes of text (any bytes) into at most `capacity` tokens. Returns the number
 * of tokens in the text, which may exceed capacity (then call again with a larger array), or a
 * negative status. */
int esp_tokenize(const struct esp_engine *engine, const char *text, size_t length,
                 int32_t *tokens, int capacity);
/* Returns the bytes of one token, not NUL-terminated; they may end inside a UTF-8 sequence.
 * The bytes of a special token are its name. Returns NULL if there is no such token. */
const char *esp_token_bytes(const struct esp_engine *engine, int32_t token, size_t *length);
bool esp_token_is_end(const struct esp_engine *engine, int32_t token);
bool esp_token_is_special(const struct esp_engine *engine, int32_t token);

/* ------------------------------------------------------------------ session */

/* Costs of passes, in units of a target pass over one row: a target pass over n rows costs 1 +
 * (n - 1) * row, and a draft pass over n rows costs draft * (1 + (n - 1) * row). */
struct esp_nominal_costs {
    double row, draft; /* 0 or more */
};

struct esp_session_options {
    const char *drafter;  /* "name:k=v,..."; NULL and "auto" mean the pair's preset or,
                             without one, the default for its kind of pair */
    const char *verifier; /* NULL: greedy at temperature 0, else the best lossless verifier */
    struct esp_session_values values; /* zeros: all defaults; see espalier_settings.h */
    /* True: the session ignores what earlier sessions learned about the draft's probabilities,
     * and saves nothing, so that the same seed gives the same text again. Drafters then use the
     * costs in `nominal` (copied) instead of measured costs. If `nominal` is NULL, row is 1/16,
     * and draft is the number of the draft's parameters divided by the target's. */
    bool repeatable;
    const struct esp_nominal_costs *nominal;
    esp_observer *observer;
    void *user;
};

enum { ESP_SPEC_TEXT = 1024 }; /* maximum size of "name:k=v,...", NUL included */

struct esp_session;

/* Opens a session and allocates its memory. The options (NULL means all defaults) are copied.
 * The observer is called in the thread that calls the session's functions. On failure *session
 * is NULL. */
int esp_session_open(struct esp_session **session, struct esp_engine *engine,
                     const struct esp_session_options *options, char *err, size_t errlen);
void esp_session_close(struct esp_session *session);

/* Appends tokens to the text and runs the target over them (prefill). A new text gets the
 * tokenizer's begin-of-text token first, if the tokenizer has one. */
int esp_session_prompt(struct esp_session *session, const int32_t *tokens, int count, char *err,
                       size_t errlen);
/* Tokenizes `length` bytes of text and appends its first `most` tokens, as esp_session_prompt()
 * does. most = 0 means all of them. */
int esp_session_prompt_text(struct esp_session *session, const char *text, size_t length,
                            int most, char *err, size_t errlen);
/* Adds a user's message as the next turn of the conversation, in the session's chat
 * format. If the session has no chat format, this works like esp_session_prompt_text(). A
 * turn only appends text, so no token is computed twice. If there is no room, the oldest turns
 * are dropped. */
int esp_session_say(struct esp_session *session, const char *text, size_t length, char *err,
                    size_t errlen);
/* Returns the name of the session's chat format; "" if its text is raw. */
const char *esp_session_chat(const struct esp_session *session);
/* Returns whether this token ends an answer or a text. */
bool esp_session_is_end(const struct esp_session *session, int32_t token);
/* Drops the oldest turns if there is no room for `tokens` more tokens (and, in a conversation,
 * for an answer). tokens = 0 makes room to continue the last turn. Returns the number of turns
 * dropped, or a negative status. The number is also 0 if dropping turns does not help. */
int esp_session_make_room(struct esp_session *session, int tokens, char *err, size_t errlen);
/* These two functions copy the text of `from` to `to`. The text of `to` must be empty.
 * esp_session_continue() copies the tokens, so both models must have the same vocabulary.
 * esp_session_retell() copies turn by turn, in the chat format of `to`. */
int esp_session_continue(struct esp_session *to, const struct esp_session *from, char *err,
                         size_t errlen);
int esp_session_retell(struct esp_session *to, const struct esp_session *from, char *err,
                       size_t errlen);
/* Positions of the parts of a turn, in tokens. */
struct esp_turn_places {
    int before; /* number of tokens before the turn */
    int said;   /* the user's message is [said, said_end) */
    int said_end;
    int answer; /* where the answer begins */
};

/* Writes the positions of turn `index` of the text to *turn. Index 0 is the oldest turn.
 * Returns false if there is no such turn. */
bool esp_session_turn(const struct esp_session *session, int index,
                      struct esp_turn_places *turn);
/* Allows `tokens` more tokens before the generation ends; a new session allows 0 tokens. */
void esp_session_allow(struct esp_session *session, int tokens);
/* Runs one iteration. Returns the number of tokens committed, or a negative status. Returns 0
 * when the generation has ended: end of text, the allowed number of tokens reached, or context
 * full. */
int esp_session_step(struct esp_session *session, char *err, size_t errlen);
/* Returns why the last generation ended: "end of text", "end of turn", "length", "context
 * full"; "" while it runs. */
const char *esp_session_end(const struct esp_session *session);
/* Changes a setting. `key` is "drafter", "verifier", a name from espalier_settings.h, or a
 * parameter of the current drafter. The change takes effect at the next iteration; on failure
 * nothing changes. */
int esp_session_set(struct esp_session *session, const char *key, const char *value, char *err,
                    size_t errlen);
/* Writes the current value of a setting. Returns 0, or ESP_E_ARGUMENT if there is no such
 * setting. Two more keys can be read: "lossy" (yes or no), and "notice", which is "" or a
 * sentence about a drafter setting that has no effect. */
int esp_session_get(const struct esp_session *session, const char *key, char *value,
                    size_t size);
/* Returns whether the current settings (drafter and verifier, or a window) can change the
 * output distribution. */
bool esp_session_is_lossy(const struct esp_session *session);
/* Returns whether drafter and verifier can change the output distribution, compared with plain
 * decoding in the same window. */
bool esp_session_rule_is_lossy(const struct esp_session *session);
/* Computes the attention window that the settings give in a context of `context` tokens: a
 * token attends to the last `recent` tokens, itself included, and to the first `sinks` tokens
 * of the text. recent = 0: it attends to all tokens. */
void esp_window_of(const struct esp_session_values *values, int context, int *recent,
                   int *sinks);
/* Returns the maximum number of tokens of the text. Without a window, this is the engine's
 * context; with a window, it can be larger. */
int esp_session_context(const struct esp_session *session);
/* Fills in the options for opening another session with the current settings of this session.
 * Drafter and verifier are set only if the user chose them, not if espalier chose them from the
 * models and the temperature. Observer and user are not set. The strings belong to the session
 * and are valid until a setting changes. */
void esp_session_current(const struct esp_session *session,
                         struct esp_session_options *options);
/* Shortens the text to its first `count` tokens and ends the generation. Settings, learned
 * state, random numbers and statistics do not change. Returns 0, or ESP_E_ARGUMENT if the text
 * has fewer tokens. */
int esp_session_rewind(struct esp_session *session, int count);
/* Replaces the session's text by the `count` tokens of `text`: for example a branch of the
 * current text, or an earlier text. The common prefix of both texts is not computed again. The
 * kinds of the tokens show where the turns of the conversation begin. Emits a rewind event and
 * prompt events. Ends the generation; learned state and random numbers continue. Returns the
 * length of the common prefix, or a negative status; after a failure, the text is that
 * prefix. */
int esp_session_fork(struct esp_session *session, const struct esp_text_token *text, int count,
                     char *err, size_t errlen);
/* From the next iteration on, evaluates the verifier's formulas at the nodes of every tree
 * (branching, acceptance_rate and ceiling of struct esp_node). A front end that shows details
 * of a node needs them. The evaluation copies whole rows, with one value per token of the
 * vocabulary, to the host. This may take longer than a fast iteration, so it is off by default.
 * Its time is not included in any stage. The observer may call this function. */
void esp_session_explain(struct esp_session *session, bool on);
/* From the next iteration on, iterations have `scores`. They give for each committed token: the
 * target's likeliest tokens at that position, the token's rank among them, and the entropy. The
 * time for this is not included in any stage. The observer may call this function. Returns 0 or
 * a negative status; after a failure there are no scores. */
int esp_session_score(struct esp_session *session, bool on, char *err, size_t errlen);
/* Computes the scores of `count` tokens of the text, such as the user's tokens. `first` (at
 * least 1) is the index of the first of them. The position after the text's last token may be
 * included; its score has no rank. The function runs passes of the target, but does not change
 * the session. Returns ESP_E_UNSUPPORTED if a window has dropped KV cache rows that these
 * passes need. */
int esp_session_score_text(struct esp_session *session, int first, int count,
                           struct esp_token_score *scores, char *err, size_t errlen);
/* Runs passes of both models without changing the session. After a pause the processor's caches
 * are cold and the backend's threads are asleep. After these passes, the next iteration takes
 * as long as it would without the pause. The observer may call this function between iterations
 * (ESP_EVENT_ITERATION). */
void esp_session_warm(struct esp_session *session);
/* The state of the random number generator. A session with the same text, settings, learned
 * state and generator writes the same tokens. */
struct esp_generator {
    uint64_t draft, verify; /* index of the next draw in each stream */
};
void esp_session_generator(const struct esp_session *session, struct esp_generator *generator);
void esp_session_set_generator(struct esp_session *session,
                               const struct esp_generator *generator);
/* Numbers the iterations from `first` instead of 0, until the text is cleared. Call this for a
 * session that continues a session from an earlier run of the program. */
void esp_session_count_from(struct esp_session *session, int first);
/* Removes the text, but keeps settings and learned state. */
void esp_session_clear(struct esp_session *session);
/* Returns the text so far, prompt included; valid until the next call that changes it. */
const int32_t *esp_session_tokens(const struct esp_session *session, int *count);

/* Writes the statistics since the session was opened or cleared. */
void esp_session_stats(const struct esp_session *session, struct esp_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
