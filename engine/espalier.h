/* espalier.h - the public interface of libespalier.
 *
 * An esp_engine holds a target model, a draft model that shares its vocabulary, and the backend
 * that computes them. An esp_session is one text being written: tokens, KV caches, drafter (it
 * grows the tree), verifier (it accepts tokens of the tree), sampling settings and statistics.
 * Every call to esp_session_step() runs one iteration: draft a tree of tokens, verify it with
 * one target pass, commit the accepted path and one more token. Events report what happened; a
 * front end, a recording and an exporter get the same events.
 *
 * Functions return 0 or more on success and a negative enum esp_status on failure. Those that
 * take `err` write one sentence there that names the file or value at fault and how to mend it.
 * Nothing prints, nothing exits. An engine or a session may be used by one thread at a time;
 * different sessions of different engines are independent.
 */
#ifndef ESPALIER_H
#define ESPALIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/espalier_event.h"
#include "engine/espalier_options.h"
#include "engine/espalier_settings.h"
#include "kernels/status.h"
#include "kernels/streamed.h"
#include "kernels/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ engine */

struct esp_engine;

/* Loads the models and opens the device. The options (espalier_options.h; NULL: all defaults)
 * and the memory they point to are not used after the return. On failure *engine is NULL. */
int esp_engine_open(struct esp_engine **engine, const struct esp_engine_options *options,
                    char *err, size_t errlen);
/* The engine's sessions must be closed before. NULL is allowed. */
void esp_engine_close(struct esp_engine *engine);

struct esp_model_info {
    const char *path, *name, *architecture, *dtype;
    /* A draft head, of architecture "eagle" or "eagle3": its own tensors are counted below and
     * nothing of its target's. */
    bool head;
    int64_t parameters;
    int64_t active;                        /* of them, those that a token is computed with */
    size_t bytes;                          /* of weights */
    int experts, experts_used, expert_ffn; /* of a mixture: all, by a token; 0: none */
    const char *expert_dtype;              /* of their matrices, or NULL */
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context;
    int outputs; /* tokens of the vocabulary that can get a probability above 0 */
    /* How many tensors of the folder the model does not use, such as layers beyond the number
     * that config.json gives; and the name of one of them, or NULL. */
    int unused;
    const char *unused_name;
    int ignored; /* tensors of what is no text, such as a vision tower */
};

/* Return false if there is no such model. The text belongs to the engine. */
bool esp_engine_target(const struct esp_engine *engine, struct esp_model_info *info);
bool esp_engine_draft(const struct esp_engine *engine, struct esp_model_info *info);
const char *esp_engine_backend(const struct esp_engine *engine); /* e.g. "cpu" */
/* E.g. "AVX-512, 2 threads", or "AVX-512, 2 threads, 5 of 16 layers in memory". */
const char *esp_engine_device(const struct esp_engine *engine);
/* How much of the target is read again for every pass, and how fast that was so far. False: all
 * of it is in memory. */
bool esp_engine_streamed(const struct esp_engine *engine, struct esp_streamed *streamed);
/* With "auto": why a device that exists is not used; on a device with little memory: how long
 * texts may be; else "". */
const char *esp_engine_notice(const struct esp_engine *engine);
int esp_engine_context(const struct esp_engine *engine); /* tokens of a text at most */
double esp_engine_load_seconds(const struct esp_engine *engine);
/* Tokens that a text can have. */
int esp_engine_context(const struct esp_engine *engine);
/* The drafter specification that espalier.json of the target folder gives for this pair, for
 * greedy decoding or for sampling; NULL if there is none. */
const char *esp_engine_preset(const struct esp_engine *engine, bool sampling);
/* The chat format of the target's template (espalier list settings, chat); "" if it has no
 * template, as base models; NULL if it has one that is not known. */
const char *esp_engine_chat(const struct esp_engine *engine);

/* Encodes `length` bytes of text (any bytes) into at most `capacity` tokens. Returns how many
 * the text has, which may be more than capacity: call again with more room; or a negative
 * status. */
int esp_tokenize(const struct esp_engine *engine, const char *text, size_t length,
                 int32_t *tokens, int capacity);
/* The bytes of one token, not NUL-terminated; may be part of a UTF-8 sequence. Special tokens
 * give their name. NULL if there is no such token. */
const char *esp_token_bytes(const struct esp_engine *engine, int32_t token, size_t *length);
bool esp_token_is_end(const struct esp_engine *engine, int32_t token);
bool esp_token_is_special(const struct esp_engine *engine, int32_t token);

/* ------------------------------------------------------------------ session */

/* What passes cost, where a pass of the target over one row costs 1: n rows cost 1 + (n - 1) *
 * row, and a draft pass over n rows costs draft * (1 + (n - 1) * row). */
struct esp_nominal_costs {
    double row, draft; /* from 0 on */
};

struct esp_session_options {
    const char *drafter;  /* "name:k=v,..."; NULL, "auto": the pair's preset, else dynatree */
    const char *verifier; /* NULL: greedy at temperature 0, else the best lossless one */
    struct esp_session_values values; /* zeros: all defaults; see espalier_settings.h */
    /* Start from nothing that earlier sessions have learned about the draft's probabilities,
     * and leave nothing to later ones, so that a seed gives the same text again. Drafter
     * goodput then reckons with nominal costs of passes instead of measured ones: with these
     * (copied), or, if this is NULL, with a sixteenth for a row and the draft's share of the
     * target's parameters for a draft pass. */
    bool repeatable;
    const struct esp_nominal_costs *nominal;
    esp_observer *observer;
    void *user;
};

enum { ESP_SPEC_TEXT = 1024 }; /* bytes of "name:k=v,..." at most, NUL included */

struct esp_session;

/* Allocates the caches. The options (NULL: all defaults) are copied; the observer is called in
 * the thread that calls the session. On failure *session is NULL. */
int esp_session_open(struct esp_session **session, struct esp_engine *engine,
                     const struct esp_session_options *options, char *err, size_t errlen);
void esp_session_close(struct esp_session *session);

/* Appends tokens to the text and runs the target over them (prefill). A new text gets the
 * tokenizer's begin-of-text token first, if it has one. */
int esp_session_prompt(struct esp_session *session, const int32_t *tokens, int count, char *err,
                       size_t errlen);
/* Tokenizes `length` bytes of text and appends the first `most` tokens of it (0: all of them),
 * as esp_session_prompt() does. */
int esp_session_prompt_text(struct esp_session *session, const char *text, size_t length,
                            int most, char *err, size_t errlen);
/* Adds what a user says: in the chat format of the session's settings as the next turn of the
 * conversation, else as esp_session_prompt_text(). A turn adds text behind what is there and
 * changes none, so only that is computed. If there is no room, the oldest turns are dropped. */
int esp_session_say(struct esp_session *session, const char *text, size_t length, char *err,
                    size_t errlen);
/* The name of that format; "" if text is raw. */
const char *esp_session_chat(const struct esp_session *session);
/* Does this token end an answer or a text? */
bool esp_session_is_end(const struct esp_session *session, int32_t token);
/* Drops the oldest turns if there is no room for `tokens` more (and, in a conversation, for an
 * answer); 0: for what the last turn is continued by. Returns how many, or a negative status;
 * 0 also where that does not help. */
int esp_session_make_room(struct esp_session *session, int tokens, char *err, size_t errlen);
/* Gives the text of `from` to `to`, which has none: as it is, where both models have the same
 * tokens; or turn by turn, in the chat format of `to`. */
int esp_session_continue(struct esp_session *to, const struct esp_session *from, char *err,
                         size_t errlen);
int esp_session_retell(struct esp_session *to, const struct esp_session *from, char *err,
                       size_t errlen);
/* Where the parts of a turn are in the text, in tokens. */
struct esp_turn_places {
    int before; /* tokens of the text in front of the turn */
    int said;   /* where what the user said begins, and where it ends: [said, said_end) */
    int said_end;
    int answer; /* where the answer begins */
};

/* Turn `index` of the text, from the oldest on; false past the last. */
bool esp_session_turn(const struct esp_session *session, int index,
                      struct esp_turn_places *turn);
/* Allows `tokens` more tokens before the generation ends; a session starts with 0 allowed. */
void esp_session_allow(struct esp_session *session, int tokens);
/* Runs one iteration. Returns the number of tokens committed, 0 when the generation has ended
 * (end of text, nothing allowed any more, context full), or a negative status. */
int esp_session_step(struct esp_session *session, char *err, size_t errlen);
/* Why the last generation ended: "end of text", "end of turn", "length", "context full"; ""
 * while it runs. */
const char *esp_session_end(const struct esp_session *session);
/* Changes a setting: drafter, verifier, one of espalier_settings.h, or a parameter of
 * the current drafter by its name. Takes effect at the next iteration; on failure nothing
 * changes.
 */
int esp_session_set(struct esp_session *session, const char *key, const char *value, char *err,
                    size_t errlen);
/* Writes the current value; returns 0, or ESP_E_ARGUMENT if there is no such setting. Two more
 * keys can be read: "lossy", yes or no, and "notice", a sentence about a setting that could not
 * be followed because there is no room, or "". */
int esp_session_get(const struct esp_session *session, const char *key, char *value,
                    size_t size);
/* May the settings as they are, drafter and verifier or a window, change what the model says?
 */
bool esp_session_is_lossy(const struct esp_session *session);
/* May drafter and verifier alone, against plain decoding with the same window? */
bool esp_session_rule_is_lossy(const struct esp_session *session);
/* What settings mean in a context of so many tokens: the recent tokens that a token sees,
 * itself among them, and the first ones of the text besides; recent = 0: it sees all. */
void esp_window_of(const struct esp_session_values *values, int context, int *recent,
                   int *sinks);
/* Tokens that the text can have: those of the engine's context, or with a window any number. */
int esp_session_context(const struct esp_session *session);
/* The options with which another session would begin with the settings that this one has now:
 * drafter and verifier only if they were chosen, not where they follow the models and the
 * temperature; neither observer nor user. The strings belong to the session and are valid until
 * a setting changes. */
void esp_session_current(const struct esp_session *session,
                         struct esp_session_options *options);
/* Shortens the text to its first `count` tokens and ends the generation. Settings, learned
 * state, random numbers and statistics do not change. ESP_E_ARGUMENT if the text is shorter. */
int esp_session_rewind(struct esp_session *session, int count);
/* From the next iteration on, evaluates the verifier's formulas at the nodes of every tree:
 * branching, acceptance_rate and ceiling of struct esp_node, for a front end that shows single
 * nodes. This copies rows of the vocabulary to the host and may take longer than a fast
 * iteration, so it is off at first. Its time counts for no stage. May be called by the
 * observer. */
void esp_session_explain(struct esp_session *session, bool on);
/* Runs passes of both models that change nothing. After a pause the processor's caches are cold
 * and threads sleep; with these passes the next iteration takes as long as without a pause. May
 * be called by the observer between iterations (ESP_EVENT_ITERATION). */
void esp_session_warm(struct esp_session *session);
/* Removes the text; settings and learned state stay. */
void esp_session_clear(struct esp_session *session);
/* The text so far, prompt included; valid until the next call that changes it. */
const int32_t *esp_session_tokens(const struct esp_session *session, int *count);

struct esp_stats {
    int prompt_tokens, generated_tokens, iterations;
    int64_t drafted_nodes, accepted_nodes; /* verified by the target; accepted among them */
    int64_t draft_passes, target_passes;
    int64_t draft_rows; /* that the draft passes computed */
    double mean_path_length;
    double tokens_per_iteration;
    double acceptance_rate; /* accepted / drafted, 0 if nothing was drafted */
    int64_t prefill_rows;   /* that the target computed of prompts */
    double prefill_seconds, decode_seconds;
    double first_token_seconds; /* prefill and the first iteration */
    double stage_seconds[ESP_STAGES];
    /* Of the draft stage: the draft model's passes. The rest of the stage builds the tree. On a
     * device that works behind the host a pass may still run when the next part begins. */
    double draft_pass_seconds;
    double baseline; /* seconds of one plain decoding step; 0 if not measured */
    /* Seconds per token of the last iterations, measured like `baseline`, without interruptions
     * by other programs: baseline / token_seconds is the speed-up by speculation. */
    double token_seconds;
    double draft_temp; /* the draft's logits are divided by this; 0: there is no draft model */
    /* Expected calibration error of the draft's probabilities for drafted tokens against the
     * target's, over the last iterations: untempered, and at draft_temp. NaN: not known.
     */
    double calibration_error_raw, calibration_error;
    size_t peak_bytes;   /* of the whole process on the host */
    size_t device_bytes; /* taken on the device since the engine was opened; 0: it has no memory
                            of its own */
};

/* Since the session was opened or cleared. */
void esp_session_stats(const struct esp_session *session, struct esp_stats *stats);

/* ------------------------------------------------------------------ lists and parameters */

enum esp_list { ESP_DRAFTERS, ESP_VERIFIERS, ESP_BACKENDS };

struct esp_item {
    const char *name, *summary, *source;
    const char *differs; /* how it differs from the source, and why; or "" */
    /* Drafters: how they draw children ("topk", "iid, topk", ...). Verifiers: the draws with
     * which they are lossless. */
    const char *draws;
    bool weighs_costs; /* drafters: its trees depend on what passes cost */
    /* Verifiers: how a node is tested, e.g. "min(1, p/q)"; the same with numbers filled in, or
     * NULL; what its letters mean, or NULL. In the last two a letter after '$' stands for a
     * number of the node, see viz/formula.h. NULL for the other lists. */
    const char *formula, *numbers, *where;
};

/* Entry `index` of a list; false past its end. */
bool esp_item(enum esp_list list, int index, struct esp_item *item);

/* Whether a session at this temperature takes a drafter and a verifier ("name:k=v,...";
 * verifier NULL: the best that goes with it), with or without a draft model. ESP_E_ARGUMENT:
 * no, and the sentence says why. */
int esp_choice_check(const char *drafter, const char *verifier, double temperature,
                     bool has_draft, char *err, size_t errlen);

/* Opens and closes a backend on one of its devices, numbered from 0. `text` becomes the device
 * ("AVX-512, 2 threads", "NVIDIA H100, 85 GB, driver 580.65"); or, with a negative status, the
 * reason why it cannot be used here. */
int esp_backend_probe(const char *name, int device, char *text, size_t size);

struct esp_param_info {
    const char *name, *type, *help; /* type: "int", "real", "flag", "choice", "text" */
    const char *choices;            /* "a|b|c" for a choice, else NULL */
    const char *text;               /* default of a text */
    double minimum, maximum, value; /* range and default; of a choice its index */
};

/* Parameter `index` of a drafter or verifier; false past the end or if there is no such name.
 */
bool esp_item_param(enum esp_list list, const char *name, int index,
                    struct esp_param_info *info);

#ifdef __cplusplus
}
#endif
#endif
