/* espalier.h - the public interface of libespalier.
 *
 * An esp_engine holds a target model, a draft model that shares its vocabulary, and the backend
 * that computes them. An esp_session is one text being written: tokens, KV caches, drafter (it
 * grows the tree), verifier (it accepts tokens of the tree), sampling settings and statistics.
 * Every call to esp_session_step() runs one iteration: draft a tree of tokens, verify it with
 * one target pass, commit the accepted path and one more token. Events report what happened. A
 * front end, a recording and an exporter get the same events.
 *
 * Functions return 0 or more on success and a negative enum esp_status on failure. Those with
 * `err` write one sentence there that names the file or value at fault and how to fix it.
 * Nothing prints, nothing exits. Only one thread at a time may use an engine or its sessions;
 * sessions of different engines are independent.
 */
#ifndef ESPALIER_H
#define ESPALIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/espalier_event.h"
#include "engine/espalier_settings.h"
#include "kernels/status.h"
#include "kernels/streamed.h"
#include "kernels/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ engine */

struct esp_engine_options {
    const char *target;  /* model folder; NULL: the built-in pair */
    const char *draft;   /* likewise; NULL: the built-in one if target is NULL, or none */
    const char *backend; /* "auto" (NULL), "cpu" or "cuda" */
    int threads;         /* 0: one per core, which is also the most */
    int device;          /* which GPU, numbered from 0 */
    /* The same bits for any size of tree, which the CPU always gives; and activations of 16
     * bits beside weights of fewer than 8, where the CPU takes 8. Slower. */
    bool exact;
    int max_nodes; /* largest tree, 1..ESP_MAX_NODES; 0: 256 */
    int context;   /* most tokens of a text; 0: as many as the target allows */
    /* 0, or about how many bytes the process may take with one session: layers of the target
     * that do not fit are read from its files for every pass (CPU only). The files must stay as
     * they are. ESP_E_MEMORY if it is too little, and the sentence says what is enough. */
    size_t memory;
    /* 0, or about how many bytes of a GPU's memory models and one session may take. Layers of
     * the target that do not fit, in this or in what is free there, are kept in the computer's
     * memory and copied to the GPU for every pass. ESP_E_MEMORY as above. */
    size_t gpu_memory;
    /* Make the target larger in memory, as esp_model_inflate() does: it says the same and costs
     * as much as a model of its size. 0: as it is. */
    int width, layers;
    esp_progress *progress;
    void *user;
};

struct esp_engine;

/* Loads the models and opens the device. The options (NULL: all defaults) and the memory they
 * point to are not used after the return. On failure *engine is NULL. */
int esp_engine_open(struct esp_engine **engine, const struct esp_engine_options *options,
                    char *err, size_t errlen);
/* The engine's sessions must be closed before. NULL is allowed. */
void esp_engine_close(struct esp_engine *engine);

struct esp_model_info {
    const char *path, *name, *architecture, *dtype;
    /* A draft head, architecture "eagle" or "eagle3". The fields below count its own tensors
     * only, not its target's. */
    bool head;
    int64_t parameters;
    int64_t active;                        /* parameters used per token */
    size_t bytes;                          /* of weights */
    int experts, experts_used, expert_ffn; /* of a mixture: all, per token; 0: none */
    const char *expert_dtype;              /* of the experts' matrices, or NULL */
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context;
    int outputs; /* tokens of the vocabulary that can get a probability above 0 */
    /* Tensors of the folder that the model does not use, such as layers beyond the number in
     * config.json; and the name of one of them, or NULL. */
    int unused;
    const char *unused_name;
    int ignored; /* tensors of other modalities, such as a vision tower */
};

/* Return false if there is no such model. The text belongs to the engine. */
bool esp_engine_target(const struct esp_engine *engine, struct esp_model_info *info);
bool esp_engine_draft(const struct esp_engine *engine, struct esp_model_info *info);
const char *esp_engine_backend(const struct esp_engine *engine); /* e.g. "cpu" */
/* E.g. "AVX-512, 2 threads", or "AVX-512, 2 threads, 5 of 16 layers in memory". */
const char *esp_engine_device(const struct esp_engine *engine);
/* How much of the target is read from disk on every pass, and how fast that was so far. False:
 * all of it is in memory. */
bool esp_engine_streamed(const struct esp_engine *engine, struct esp_streamed *streamed);
/* With "auto": why an existing device is not used. On a device with little memory: the maximum
 * length of texts. Else "". */
const char *esp_engine_notice(const struct esp_engine *engine);

double esp_engine_load_seconds(const struct esp_engine *engine);
/* Maximum number of tokens of a text. */
int esp_engine_context(const struct esp_engine *engine);
/* The drafter specification for this pair in espalier.json of the target folder, for greedy
 * decoding or for sampling; NULL: none. */
const char *esp_engine_preset(const struct esp_engine *engine, bool sampling);
/* The chat format of the target's template (espalier list settings, chat). "": it has no
 * template, like base models. NULL: its template is unknown. */
const char *esp_engine_chat(const struct esp_engine *engine);

/* Encodes `length` bytes of text (any bytes) into at most `capacity` tokens. Returns the number
 * of tokens in the text, which may exceed capacity (then call again with more room), or a
 * negative status. */
int esp_tokenize(const struct esp_engine *engine, const char *text, size_t length,
                 int32_t *tokens, int capacity);
/* The bytes of one token, not NUL-terminated; may be part of a UTF-8 sequence. Special tokens
 * give their name. NULL if there is no such token. */
const char *esp_token_bytes(const struct esp_engine *engine, int32_t token, size_t *length);
bool esp_token_is_end(const struct esp_engine *engine, int32_t token);
bool esp_token_is_special(const struct esp_engine *engine, int32_t token);

/* ------------------------------------------------------------------ session */

struct esp_session_options {
    const char *drafter;  /* "name:k=v,..."; NULL, "auto": the pair's preset, else dynatree */
    const char *verifier; /* NULL: greedy at temperature 0, else the best lossless one */
    /* System text of conversations. NULL, "auto": the default of the model's template. */
    const char *system;
    struct esp_session_values values; /* zeros: all defaults; see espalier_settings.h */
    /* Start without what earlier sessions learned about the draft's probabilities, and save
     * nothing, so that a seed gives the same text again. Drafter goodput then uses nominal
     * costs of passes, not measured ones. */
    bool repeatable;
    esp_observer *observer;
    void *user;
};

enum { ESP_SPEC_TEXT = 1024 }; /* maximum size of "name:k=v,...", NUL included */

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
/* Adds a user's message: as the next turn of the conversation, in the chat format of the
 * settings, or as esp_session_prompt_text() if there is none. A turn only appends text, so
 * nothing is computed twice. If there is no room, the oldest turns are dropped. */
int esp_session_say(struct esp_session *session, const char *text, size_t length, char *err,
                    size_t errlen);
/* The name of the chat format; "" if text is raw. */
const char *esp_session_chat(const struct esp_session *session);
/* Does this token end an answer or a text? */
bool esp_session_is_end(const struct esp_session *session, int32_t token);
/* Drops the oldest turns if there is no room for `tokens` more (and, in a conversation, for an
 * answer). tokens = 0: room to continue the last turn. Returns the number of turns dropped,
 * also 0 if dropping does not help, or a negative status. */
int esp_session_make_room(struct esp_session *session, int tokens, char *err, size_t errlen);
/* Copies the text of `from` to `to`, which must be empty. _continue copies the tokens: both
 * models must have the same vocabulary. _retell copies turn by turn, in the chat format of
 * `to`. */
int esp_session_continue(struct esp_session *to, const struct esp_session *from, char *err,
                         size_t errlen);
int esp_session_retell(struct esp_session *to, const struct esp_session *from, char *err,
                       size_t errlen);
/* Positions of the parts of a turn, in tokens. */
struct esp_turn_places {
    int before; /* tokens of the text in front of the turn */
    int said;   /* the user's message is [said, said_end) */
    int said_end;
    int answer; /* where the answer begins */
};

/* Turn `index` of the text, oldest first; false beyond the last. */
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
/* Changes a setting: drafter, verifier, system, one of espalier_settings.h, or a parameter of
 * the current drafter by its name. Takes effect at the next iteration; on failure nothing
 * changes.
 */
int esp_session_set(struct esp_session *session, const char *key, const char *value, char *err,
                    size_t errlen);
/* Writes the current value. Returns 0, or ESP_E_ARGUMENT if there is no such setting. Two more
 * keys can be read: "lossy", yes or no, and "notice", a sentence about a setting that was not
 * followed for lack of room, or "". */
int esp_session_get(const struct esp_session *session, const char *key, char *value,
                    size_t size);
/* Can the current settings (drafter and verifier, or a window) change the output distribution?
 */
bool esp_session_is_lossy(const struct esp_session *session);
/* Can drafter and verifier change it, compared with plain decoding in the same window? */
bool esp_session_rule_is_lossy(const struct esp_session *session);
/* The attention window that the settings give in a context of this many tokens: a token sees
 * the `recent` last tokens, itself included, and the `sinks` first ones. recent = 0: it sees
 * all. */
void esp_window_of(const struct esp_session_values *values, int context, int *recent,
                   int *sinks);
/* Maximum number of tokens of the text: the engine's context, or any number with a window. */
int esp_session_context(const struct esp_session *session);
/* The options that open another session with this one's current settings. Drafter and verifier
 * are set only if the user chose them, not if they follow from the models and the temperature.
 * Observer and user are not set. The strings belong to the session and are valid until a
 * setting changes. */
void esp_session_current(const struct esp_session *session,
                         struct esp_session_options *options);
/* Shortens the text to its first `count` tokens and ends the generation. Settings, learned
 * state, random numbers and statistics stay. ESP_E_ARGUMENT if the text is shorter. */
int esp_session_rewind(struct esp_session *session, int count);
/* From the next iteration on, evaluates the verifier's formulas at the nodes of every tree
 * (branching, acceptance_rate and ceiling of struct esp_node), for a front end that shows
 * single nodes. This copies rows of the vocabulary to the host and may take longer than a fast
 * iteration, so it is off by default. Its time is charged to no stage. The observer may call
 * it. */
void esp_session_explain(struct esp_session *session, bool on);
/* Runs passes of both models that change nothing. After a pause the processor's caches are cold
 * and threads sleep; after these passes the next iteration takes as long as without a pause.
 * The observer may call it between iterations (ESP_EVENT_ITERATION). */
void esp_session_warm(struct esp_session *session);
/* Removes the text; settings and learned state stay. */
void esp_session_clear(struct esp_session *session);
/* The text so far, prompt included; valid until the next call that changes it. */
const int32_t *esp_session_tokens(const struct esp_session *session, int *count);

struct esp_stats {
    int prompt_tokens, generated_tokens, iterations;
    int64_t drafted_nodes, accepted_nodes; /* verified by the target; accepted among them */
    int64_t draft_passes, target_passes;
    double mean_path_length;
    double tokens_per_iteration;
    double acceptance_rate; /* accepted / drafted, 0 if nothing was drafted */
    int64_t prefill_rows;   /* rows of prompts that the target computed */
    double prefill_seconds, decode_seconds;
    double first_token_seconds; /* prefill and the first iteration */
    double stage_seconds[ESP_STAGES];
    /* Draft model passes within the draft stage; the rest of the stage builds the tree. On an
     * asynchronous device a pass may still run when the next part begins. */
    double draft_pass_seconds;
    double baseline; /* seconds of one plain decoding step; 0 if not measured */
    /* Seconds per token over the last iterations, measured like `baseline`, without
     * interruptions by other programs. The speed-up is baseline / token_seconds. */
    double token_seconds;
    double draft_temp; /* the draft's logits are divided by this; 0: there is no draft model */
    /* Expected calibration error of draft probabilities against the target's, for the tokens
     * drafted in the last iterations: untempered, and at draft_temp. NaN: not known. */
    double calibration_error_raw, calibration_error;
    size_t peak_bytes;   /* of the whole process on the host */
    size_t device_bytes; /* taken on the device since the engine was opened; 0: the backend has
                            no memory of its own */
};

/* Since the session was opened or cleared. */
void esp_session_stats(const struct esp_session *session, struct esp_stats *stats);

/* ------------------------------------------------------------------ lists and parameters */

enum esp_list { ESP_DRAFTERS, ESP_VERIFIERS, ESP_BACKENDS };

struct esp_item {
    const char *name, *summary, *source;
    const char *differs; /* differences from the source and their reasons; or "" */
    /* Drafters: how they draw children ("topk", "iid, topk", ...). Verifiers: the draws for
     * which they are lossless. */
    const char *draws;
    /* Verifiers: the test of a node, e.g. "min(1, p/q)"; the same with numbers filled in, or
     * NULL; what its letters mean, or NULL. In the last two a letter after '$' stands for a
     * number of the node (viz/formula.h). NULL in the other lists. */
    const char *formula, *numbers, *where;
};

/* Entry `index` of a list; false past its end. */
bool esp_item(enum esp_list list, int index, struct esp_item *item);

/* Can a session at this temperature use this drafter and verifier ("name:k=v,..."; verifier
 * NULL: the best one for the drafter), with or without a draft model? ESP_E_ARGUMENT: no, and
 * err says why. */
int esp_choice_check(const char *drafter, const char *verifier, double temperature,
                     bool has_draft, char *err, size_t errlen);

/* Opens and closes a backend on one of its devices, numbered from 0. Writes the device to
 * `text` ("AVX-512, 2 threads", "NVIDIA H100, 85 GB, driver 580.65"), or, with a negative
 * status, why it cannot be used here. */
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
