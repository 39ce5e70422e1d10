/* state.h - the state that is drawn. It has the text, the last iterations and the statistics.
 *
 * Only snapshots change this state. The screen depends only on this state and on the user's
 * view (ui.h). Therefore a replay looks like the live session.
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
    struct esp_token_score score; /* if score.count is 0, it is unknown */
};

struct esp_state {
    struct esp_tokens tokens; /* the texts of all tokens of the vocabulary */

    int phase;
    char phase_text[512]; /* the file that is being loaded, or the error */
    double fraction;      /* how much is loaded, from 0 to 1 */
    bool ready;
    struct esp_setup loaded;

    char *bytes; /* (byte_count) the text */
    size_t byte_count, byte_capacity;
    struct esp_text_span *spans; /* (span_count) the tokens of the text */
    int span_count, span_capacity;

    struct esp_trace trace; /* its `since` begins at the last change of a setting
                               or at the start of a comparison */
    /* `branches` has all texts of a live session. A replay has only the recorded text. */
    bool has_branches;
    struct esp_branches branches;
    /* The place in the tree of branches where each of the last iterations begins. Iteration i
     * has the entry begins[i % ESP_KEPT]. */
    struct esp_begin {
        int iteration;
        struct esp_text_place place;
    } begins[ESP_KEPT];

    unsigned forks;                    /* number of switches to another text */
    struct esp_iteration_copy partial; /* the running iteration, in step mode */
    bool has_partial;
    int partial_stages; /* number of finished stages of `partial` */
    int partial_type;   /* ESP_EVENT_LAYER or ESP_EVENT_STAGE */

    struct esp_state *compared; /* the compared session (comparison.h): only iterations, totals
                                   and names. NULL means no comparison */

    double baseline;     /* seconds per token of plain decoding; 0: not measured */
    char ended[64];      /* why the last generation ended; "" while it runs */
    char recording[512]; /* path of the recording being written, or "" */
    char message[512];
    bool message_is_error;
    unsigned message_count; /* number of messages so far */
};

/* A zero-initialised state is empty. Its `tokens` must be set before it is used. */
void esp_state_free(struct esp_state *state);
/* Copies what a page needs to an empty state. These are the names of the models, the tokens of
 * the text (not their bytes) and the iterations. Returns 0 or ESP_E_MEMORY. The copy must be
 * freed in both cases. */
int esp_state_copy(struct esp_state *to, const struct esp_state *from);
/* Applies a snapshot. Returns 0 or ESP_E_MEMORY. */
int esp_state_apply(struct esp_state *state, const struct esp_snapshot *snapshot);

/* These functions return where the text after the last prompt starts. The first function
 * returns the index of a token, and the second the index of a byte. */
int esp_state_answer(const struct esp_state *state);
size_t esp_state_last_answer(const struct esp_state *state);

/* Returns the iteration that generated a token of the text. Sets *index to the token's index
 * among the tokens that this iteration committed. Returns NULL if no iteration generated the
 * token, or if the iteration is no longer in memory. */
const struct esp_iteration *esp_state_writer(const struct esp_state *state, int token,
                                             int *index);
/* Sets *place to the place in the tree of branches where an iteration begins. Returns false if
 * this place is unknown, or if there are no branches. */
bool esp_state_began(const struct esp_state *state, const struct esp_iteration *it,
                     struct esp_text_place *place);
/* Returns the first token at or after `from` that has no score but can have one, or -1. */
int esp_state_unscored(const struct esp_state *state, int from);

/* Returns the target's perplexity over the tokens that the models generated, exp(mean of -ln
 * p). Returns NaN if none of them has a score. */
double esp_state_perplexity(const struct esp_state *state);

/* Returns the number of points that the trace has after `iterations` iterations since the text
 * was cleared. */
int esp_state_shown(int iterations);

/* Returns whether a prompt is being processed or text is being generated. */
bool esp_state_is_busy(const struct esp_state *state);

/* Returns the iteration with this index, and sets *stages to the number of its finished stages.
 * If the index is -1 or this iteration is no longer in memory, returns the running iteration in
 * step mode. If none is running, returns the newest iteration. If that iteration ends a text
 * and drafted nothing, returns the iteration before it if the earlier iteration drafted
 * something. Returns NULL if there is no iteration. */
const struct esp_iteration *esp_state_iteration(const struct esp_state *state, int index,
                                                int *stages);
/* Returns the iteration that is `back` iterations before the newest complete one, or NULL. */
const struct esp_iteration *esp_state_kept(const struct esp_state *state, int back);
/* Returns the index of the previous (step -1) or next (step 1) iteration in memory. Returns -1
 * if there is none. */
int esp_state_neighbour(const struct esp_state *state, int index, int step);

/* Statistics over the last 32 iterations, or over fewer if a setting has changed since then.
 * During a comparison, they include all iterations since the comparison began, like the table
 * in the compare pane. */
struct esp_figures {
    int iterations;
    double tokens_per_second; /* without pauses of the machine (engine/pace.h); 0: unknown */
    double tokens_per_iteration;
    double acceptance; /* accepted / drafted nodes; NaN if nothing was drafted */
    double path_share; /* accepted path length / deepest drafted depth; NaN: nothing drafted */
    double speedup;    /* over plain decoding, not counting pauses; 0: not measured */
    bool timed;        /* some iterations ran outside step mode, so there are times */
    double seconds[ESP_STAGES]; /* means over these iterations */
    double exchange;            /* seconds of exchanges between ranks, included in `seconds` */
};

struct esp_figures esp_state_figures(const struct esp_state *state);

/* Returns the seconds per token of plain decoding. If one of the compared sessions is plain
 * decoding, this is the time of that session. Otherwise it was measured between iterations.
 * Returns 0 if it was not measured. */
double esp_state_baseline(const struct esp_state *state);

/* Returns whether speculation is at least as fast as plain decoding, rounded to the
 * percentage that is shown. */
bool esp_state_wins(const struct esp_figures *figures);
/* Writes what speculation gains in three lengths: a sentence, a few words, and two words.
 * `baseline` is the number of seconds per token of plain decoding. The speedup must be
 * known. */
void esp_state_worth(const struct esp_figures *figures, double baseline, char texts[3][96]);

#endif
