/* state.h - the state that is drawn: text, last iterations, statistics.
 *
 * Only snapshots change it. The screen is a function of this state and of the user's view
 * (ui.h), so a replay looks like the live session.
 */
#ifndef ESP_STATE_H
#define ESP_STATE_H

#include "sessions/branches.h"
#include "tui/model/trace.h"
#include "tui/model/snapshot.h"

/* A token of the text. Its bytes begin at `start` and end where the next token starts. */
struct esp_text_span {
    uint32_t start;
    int32_t token;
    int32_t iteration;            /* as in struct esp_written */
    uint8_t kind;                 /* enum esp_text_kind */
    struct esp_token_score score; /* count = 0: not known */
};

struct esp_state {
    struct esp_tokens tokens; /* source of token texts */

    int phase;
    char phase_text[512]; /* the file being loaded, or the loading error */
    double fraction;      /* fraction of the loading that is done */
    bool ready;
    struct esp_setup loaded;

    char *bytes; /* (byte_count) the text */
    size_t byte_count, byte_capacity;
    struct esp_text_span *spans; /* (span_count) its tokens */
    int span_count, span_capacity;

    struct esp_trace trace; /* its `since` begins at the last change of a setting
                                          or at the start of a comparison */
    /* All texts of a live session. A replay has only the recorded text. */
    bool has_branches;
    struct esp_branches branches;
    /* The text before each of the last iterations: begins[i % ESP_KEPT] for iteration i. */
    struct esp_begin {
        int iteration;
        struct esp_text_place place;
    } begins[ESP_KEPT];

    unsigned forks;                    /* increases with every switch to another text */
    struct esp_iteration_copy partial; /* the running iteration, in step mode */
    bool has_partial;
    int partial_stages; /* number of its finished stages */
    int partial_type;   /* ESP_EVENT_LAYER or ESP_EVENT_STAGE */

    struct esp_state *compared; /* the compared session (comparison.h): only iterations, totals
                                   and names. NULL means no comparison */

    double baseline;     /* seconds per token of plain decoding; 0 means not measured */
    char ended[64];      /* the reason that the last generation ended; "" while it runs */
    char recording[512]; /* path of the recording being written, or "" */
    char message[512];
    bool message_is_error;
    unsigned message_count; /* increases with every message */
};

/* A zero-initialised state is empty; set its `tokens` before use. */
void esp_state_free(struct esp_state *state);
/* Copies the parts that a page needs to an empty state: model names, tokens of the text (not
 * their bytes), kept iterations. Returns 0 or ESP_E_MEMORY. Free the copy in both cases. */
int esp_state_copy(struct esp_state *to, const struct esp_state *from);
/* Applies a snapshot. Returns 0 or ESP_E_MEMORY. */
int esp_state_apply(struct esp_state *state, const struct esp_snapshot *snapshot);

/* These return where the text after the last prompt starts: the index of its first token, and
 * that of its first byte. */
int esp_state_answer(const struct esp_state *state);
size_t esp_state_last_answer(const struct esp_state *state);

/* Returns the iteration that wrote a token of the text, and sets *index to the token's place
 * among those that it committed. Returns NULL if no iteration wrote the token, or if the
 * iteration is no longer kept. */
const struct esp_iteration *esp_state_writer(const struct esp_state *state, int token,
                                             int *index);
/* Sets *place to the text before an iteration. Returns false if that is unknown or there are no
 * branches. */
bool esp_state_began(const struct esp_state *state, const struct esp_iteration *it,
                     struct esp_text_place *place);
/* Returns the first token from `from` on that has no score but can have one, or -1. */
int esp_state_unscored(const struct esp_state *state, int from);

/* Returns the target's perplexity over the tokens that the models wrote: exp(mean of -ln p).
 * NaN: none has a score. */
double esp_state_perplexity(const struct esp_state *state);

/* The number of points in the trace after `iterations` iterations since the text was
 * cleared. */
int esp_state_shown(int iterations);

/* Returns whether a prompt is being processed or text is being generated. */
bool esp_state_is_busy(const struct esp_state *state);

/* Returns the iteration with this index, and sets *stages to the number of its finished stages.
 * If this iteration is not kept, or the index is -1, returns the running iteration in step
 * mode, or else the newest one. After the end of a text, returns the iteration before the
 * newest if only that one has drafted nodes. Returns NULL if there is no iteration. */
const struct esp_iteration *esp_state_iteration(const struct esp_state *state, int index,
                                                int *stages);
/* The iteration `back` iterations before the newest complete one, or NULL. */
const struct esp_iteration *esp_state_kept(const struct esp_state *state, int back);
/* The index of the previous (step -1) or next (1) kept iteration, or -1. */
int esp_state_neighbour(const struct esp_state *state, int index, int step);

/* Statistics over the last 32 iterations, or fewer if a setting has changed since then. During
 * a comparison, they cover all iterations since it began, like the table of the compare
 * pane. */
struct esp_figures {
    int iterations;
    double tokens_per_second; /* without pauses of the machine (engine/pace.h); 0: unknown */
    double tokens_per_iteration;
    double acceptance; /* accepted / drafted nodes; NaN means nothing was drafted */
    double path_share; /* accepted path length / deepest drafted depth; NaN means no draft */
    double speedup;    /* over plain decoding, without pauses; 0 means not measured */
    bool timed;        /* some iterations ran outside step mode, so there are times */
    double seconds[ESP_STAGES]; /* means over these iterations */
    double exchange;            /* the part of `seconds` that exchanges between ranks took */
};

struct esp_figures esp_state_figures(const struct esp_state *state);

/* Seconds per token of plain decoding: those of the session that decodes plainly, if there is
 * one. Otherwise those that were measured between iterations; 0 means not measured. */
double esp_state_baseline(const struct esp_state *state);

/* Returns whether speculation is at least as fast as plain decoding, rounded to the shown percent. */
bool esp_state_wins(const struct esp_figures *figures);
/* Writes what speculation gains, in three lengths: a sentence, a few words, two words.
 * `baseline` is the seconds per token of plain decoding. The speedup must be known. */
void esp_state_worth(const struct esp_figures *figures, double baseline, char texts[3][96]);

#endif
