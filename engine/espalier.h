/* espalier.h - the public interface of libespalier.
 *
 * An esp_engine holds a target model, a draft model that shares its vocabulary, and the backend
 * that computes them. An esp_session is one text being written: prompt, key/value caches, tree
 * policy ("drafter"), acceptance rule ("verifier"), sampling settings and statistics. Every
 * call to esp_session_step() runs one iteration: draft a tree of tokens, verify it with one
 * target pass, commit the accepted path and one more token. What happened is reported as
 * events; a front end, a recording and an exporter all see the same ones.
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

#include "espalier_event.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESP_VERSION "0.1.0"

#define ESP_STATUS(X)                                                                          \
    X(ARGUMENT, "a value is not allowed")                                                      \
    X(FILE, "a file could not be read or written")                                             \
    X(FORMAT, "a file does not hold what its format asks for")                                 \
    X(UNSUPPORTED, "this model or feature is not supported")                                   \
    X(MISMATCH, "the draft model does not fit the target model")                               \
    X(MEMORY, "not enough memory")                                                             \
    X(DEVICE, "the device failed")                                                             \
    X(NUMERIC, "the model produced a value that is not a number")                              \
    X(CONTEXT, "the context is full")                                                          \
    X(CANCELLED, "cancelled")

enum esp_status {
    ESP_OK = 0,
    ESP_STATUS_BEFORE_FIRST = -100, /* failures count up from here: -99, -98, ... */
#define X(name, message) ESP_E_##name,
    ESP_STATUS(X)
#undef X
};

/* A short description of a negative status; never NULL. */
const char *esp_status_message(int status);

/* ------------------------------------------------------------------ engine */

/* Called while weights load; done and total in bytes. Return false to cancel. */
typedef bool esp_progress(void *user, const char *what, size_t done, size_t total);

struct esp_engine_options {
    const char *target; /* model folder; NULL: the built-in pair */
    const char *draft;  /* likewise; NULL: the built-in one if target is NULL, or none */
    const char *backend; /* "auto" (NULL), "cpu" or "cuda" */
    int threads;         /* 0: one per core */
    bool exact; /* the same bits for any size of tree, on every backend; may be slower */
    int max_nodes;       /* largest tree, 1..ESP_MAX_NODES; 0: 256 */
    int context;         /* tokens; 0: what the target allows */
    esp_progress *progress;
    void *user;
};

struct esp_engine;

/* Loads the models and opens the device. The options (NULL: all defaults) and what they point
 * to are needed only until it returns. On failure *engine is NULL. */
int esp_engine_open(struct esp_engine **engine, const struct esp_engine_options *options,
                    char *err, size_t errlen);
/* Its sessions must be closed before. NULL: nothing. */
void esp_engine_close(struct esp_engine *engine);

struct esp_model_info {
    const char *path, *name, *architecture, *dtype;
    int64_t parameters;
    size_t bytes; /* of weights */
    int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context;
    /* Tensors of the folder that the model does without, as layers beyond those that
     * config.json counts, and the name of one of them, or NULL. */
    int unused;
    const char *unused_name;
};

/* Return false if there is no such model. The text belongs to the engine. */
bool esp_engine_target(const struct esp_engine *engine, struct esp_model_info *info);
bool esp_engine_draft(const struct esp_engine *engine, struct esp_model_info *info);
const char *esp_engine_backend(const struct esp_engine *engine); /* e.g. "cpu" */
const char *esp_engine_device(const struct esp_engine *engine);  /* e.g. "AVX-512, 2 threads" */
/* With "auto": why a device that is there is not used; else "". */
const char *esp_engine_notice(const struct esp_engine *engine);
int esp_engine_context(const struct esp_engine *engine); /* tokens */
double esp_engine_load_seconds(const struct esp_engine *engine);
/* Drafter specification preferred for this pair (espalier.json of the target folder), greedy or
 * sampling; or NULL. */
const char *esp_engine_preset(const struct esp_engine *engine, bool sampling);

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

struct esp_session_options {
    const char *drafter;  /* "name:k=v,..."; NULL, "auto": the pair's preset, else dynatree */
    const char *verifier; /* NULL: greedy at temperature 0, else the best lossless one */
    const char *order;    /* "bfs" (NULL), "dfs" or "hpd" */
    double temperature;   /* 0: greedy */
    double top_p;         /* 0 or 1: off */
    int top_k;            /* 0: off */
    uint64_t seed;
    bool baseline; /* measure plain decoding now and then, for comparison */
    esp_observer *observer;
    void *user;
};

struct esp_session;

/* Allocates the caches. The options (NULL: all defaults) are copied; the observer is called in
 * the thread that calls the session. On failure *session is NULL. */
int esp_session_open(struct esp_session **session, struct esp_engine *engine,
                     const struct esp_session_options *options, char *err, size_t errlen);
void esp_session_close(struct esp_session *session);

/* Appends tokens to the context and runs the target over them (prefill). A new text gets the
 * tokenizer's begin-of-text token first, if it has one. */
int esp_session_prompt(struct esp_session *session, const int32_t *tokens, int count, char *err,
                       size_t errlen);
/* Allows `tokens` more tokens before the generation ends; a session starts with 0 allowed. */
void esp_session_allow(struct esp_session *session, int tokens);
/* Runs one iteration. Returns the number of tokens committed, 0 when the generation has ended
 * (end of text, nothing allowed any more, context full), or a negative status. */
int esp_session_step(struct esp_session *session, char *err, size_t errlen);
/* Why the last generation ended: "end of text", "length", "context full"; "" while it runs. */
const char *esp_session_end(const struct esp_session *session);
/* Changes a setting: drafter, verifier, order, temp, top_p, top_k, seed, baseline, or a
 * parameter of the current drafter by its name. Takes effect at the next iteration; on failure
 * nothing changes. */
int esp_session_set(struct esp_session *session, const char *key, const char *value, char *err,
                    size_t errlen);
/* Writes the current value; returns 0, or ESP_E_ARGUMENT if there is no such setting. */
int esp_session_get(const struct esp_session *session, const char *key, char *value,
                    size_t size);
/* Takes the text back to its first `count` tokens and ends the generation. Settings, learned
 * state, random numbers and statistics stay. ESP_E_ARGUMENT if the text is shorter. */
int esp_session_rewind(struct esp_session *session, int count);
/* From the next iteration on, evaluates the rule's formulas at the nodes of every tree:
 * branching, acceptance_rate and ceiling of struct esp_node, for a front end in which somebody
 * looks at single nodes. It copies rows of the vocabulary to the host, which takes longer than
 * a fast iteration itself (its time is no stage's), so it is off until asked for. May be called
 * by the observer. */
void esp_session_explain(struct esp_session *session, bool on);
/* Runs passes of both models that change nothing. After a pause, when caches are cold and
 * threads asleep, the next iteration then takes as long as if there had been none. May be called
 * by the observer between iterations (ESP_EVENT_ITERATION). */
void esp_session_warm(struct esp_session *session);
/* Forgets the text; settings and learned state stay. */
void esp_session_clear(struct esp_session *session);
/* The context so far, prompt included; valid until the next call that changes it. */
const int32_t *esp_session_tokens(const struct esp_session *session, int *count);

struct esp_stats {
    int prompt_tokens, generated_tokens, iterations;
    int64_t drafted_nodes, accepted_nodes; /* verified by the target; accepted among them */
    int64_t draft_passes, target_passes;
    double mean_path_length;
    double tokens_per_iteration;
    double acceptance_rate; /* accepted / drafted, 0 if nothing was drafted */
    double prefill_seconds, decode_seconds;
    double first_token_seconds; /* prefill and the first iteration */
    double stage_seconds[ESP_STAGES];
    double baseline; /* seconds of one plain decoding step; 0 if not measured */
    /* Seconds per token of the last iterations, told as `baseline` is, without hiccups of the
     * machine: baseline / token_seconds is what speculation is worth. */
    double token_seconds;
    size_t peak_bytes;
};

/* Since the session was opened or cleared. */
void esp_session_stats(const struct esp_session *session, struct esp_stats *stats);

/* ------------------------------------------------------------------ what there is to choose
 * from */

enum esp_list { ESP_DRAFTERS, ESP_VERIFIERS, ESP_BACKENDS };

struct esp_item {
    const char *name, *summary, *source;
    const char *differs; /* from the source, and why; "" where it does not */
    /* drafters: "topk", "iid, topk", ...; verifiers: what they are lossless with */
    const char *draws;
    /* Verifiers: how a node is tested, e.g. "min(1, p/q)"; the same with numbers filled in, or
     * NULL; what its letters mean, or NULL. In the last two a letter after '$' stands for a
     * number of the node, see viz/formula.h. NULL for the other lists. */
    const char *formula, *numbers, *where;
};

/* Entry `index` of a list; false past its end. */
bool esp_item(enum esp_list list, int index, struct esp_item *item);

/* Tries a backend: 0 and its device ("AVX-512, 2 threads"), or a negative status and why it
 * cannot be used here. */
int esp_backend_probe(const char *name, char *text, size_t size);

struct esp_param_info {
    const char *name, *type, *help; /* type: "int", "real", "flag", "choice", "text" */
    const char *choices;            /* "a|b|c" for a choice, else NULL */
    const char *text;               /* default of a choice or text */
    double minimum, maximum, value; /* range and default of a number or flag */
};

/* Parameter `index` of a drafter or verifier; false past the end or if there is no such name.
 */
bool esp_item_param(enum esp_list list, const char *name, int index,
                    struct esp_param_info *info);

#ifdef __cplusplus
}
#endif
#endif
