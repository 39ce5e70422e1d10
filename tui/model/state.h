/* state.h - what there is to show: the text, the last iterations, the figures.
 *
 * Changed only by applying snapshots; everything on the screen is a function of it and of what
 * the user looks at (ui.h). So a recording drawn again looks as the live session did.
 */
#ifndef ESP_STATE_H
#define ESP_STATE_H

#include "tui/model/snapshot.h"
#include "viz/tree_view.h"

enum { ESP_SUMMARIES = 512, ESP_KEPT = 256 };

/* A token of the text: its bytes start at `start` and end where the next one's start. */
struct esp_text_span {
    uint32_t start;
    int32_t token;
    uint8_t kind; /* enum esp_text_kind */
};

/* What charts need of an iteration. */
struct esp_iteration_summary {
    int index, committed, path, deepest, drafted, cut, passes;
    double seconds[ESP_STAGES];
    bool stepped; /* in step mode, where times mean nothing */
    int gauge_count;
    float gauges[ESP_MAX_GAUGES];    /* after the iteration */
    uint8_t courses[ESP_MAX_GAUGES]; /* which of the state's courses each is of */
};

/* The values that a controller has had, over changes of the drafter. */
enum { ESP_COURSES = 64, ESP_NO_COURSE = 255 };
struct esp_course_key {
    char owner[24], symbol[24]; /* see esp_gauge_owner() */
};

struct esp_state {
    struct esp_tokens tokens; /* where token texts come from */

    int phase;
    char phase_text[512]; /* what is loaded, or why loading failed */
    double fraction;      /* of the load */
    bool ready;
    struct esp_setup loaded;

    char *bytes; /* (byte_count) the text */
    size_t byte_count, byte_capacity;
    struct esp_text_span *spans; /* (span_count) its tokens */
    int span_count, span_capacity;

    struct esp_totals since; /* since a setting changed or a comparison began */
    struct esp_totals timed; /* the part of `since` that ran outside of step mode */
    struct esp_iteration_summary summaries[ESP_SUMMARIES]; /* (summary_count) oldest first */
    int summary_count;
    struct esp_course_key courses[ESP_COURSES]; /* (course_count) */
    int course_count;
    int since_setting;                        /* summaries since the last change of a setting */
    struct esp_iteration_copy kept[ESP_KEPT]; /* a ring; see esp_state_iteration */
    int kept_count, kept_next;
    struct esp_iteration_copy partial; /* the iteration that runs, in step mode */
    bool has_partial;
    int partial_stages; /* of it that have ended */
    int partial_type;   /* ESP_EVENT_LAYER or ESP_EVENT_STAGE */

    struct esp_state *compared; /* the session that is compared with (comparison.h), or NULL;
                                 of it only iterations, sums and names are kept */

    double baseline;     /* seconds of one plain decoding step; 0 if not measured */
    char ended[64];      /* why the last generation ended, "" while it runs */
    char recording[512]; /* path of the file that is written, or "" */
    char message[512];
    bool message_is_error;
    unsigned message_count; /* goes up with every message */
};

/* A zeroed state is empty; set `tokens`. */
void esp_state_free(struct esp_state *state);
/* Copies to an empty state what a page of it is made of: its models' names, the tokens of the
 * text (not their bytes) and the iterations that are kept. Returns 0 or ESP_E_MEMORY; the copy
 * is freed in both cases. */
int esp_state_copy(struct esp_state *to, const struct esp_state *from);
/* Returns 0 or ESP_E_MEMORY. */
int esp_state_apply(struct esp_state *state, const struct esp_snapshot *snapshot);

/* The token where what was written after the last prompt starts; and its byte. */
int esp_state_answer(const struct esp_state *state);
size_t esp_state_last_answer(const struct esp_state *state);

/* What a value was after each iteration of the summaries (summary_count), oldest first; NaN
 * where it was not there. */
void esp_state_course(const struct esp_state *state, const struct esp_iteration *it,
                      const char *symbol, float values[ESP_SUMMARIES]);

/* How many summaries there are after so many iterations since the text was cleared. */
int esp_state_shown(int iterations);

/* Whether a text is being written, or its prompt read. */
bool esp_state_is_busy(const struct esp_state *state);

/* The iteration with this index. If it is not kept, or the index is -1: the one that runs now
 * in step mode, else the newest; once a text has ended, the newer of the last two for which
 * anything was drafted. Sets how many of its stages have ended. NULL if there is none at all.
 */
const struct esp_iteration *esp_state_iteration(const struct esp_state *state, int index,
                                                int *stages);
/* The iteration `back` before the newest complete one, or NULL. */
const struct esp_iteration *esp_state_kept(const struct esp_state *state, int back);
/* The index of the iteration before (step -1) or after (1) `index` that is still there; -1:
 * none. */
int esp_state_neighbour(const struct esp_state *state, int index, int step);

/* Figures over the iterations since a setting changed (the last 32, so that they follow); in a
 * comparison over all since it began, as its table has them. */
struct esp_figures {
    int iterations;
    double tokens_per_second; /* pauses of the machine left out (engine/pace.h); 0: not known */
    double tokens_per_iteration;
    double acceptance; /* accepted / drafted nodes; NaN if nothing was drafted */
    double path_share; /* accepted path length / deepest drafted depth; NaN if nothing was
                          drafted */
    double speedup;    /* over plain decoding, likewise; 0 if that was not measured */
    bool timed;        /* some of them ran outside of step mode, whose times mean nothing */
    double seconds[ESP_STAGES]; /* mean per iteration of those */
};

struct esp_figures esp_state_figures(const struct esp_state *state);

/* Seconds per token over the last `count` summaries, those of step mode left out, as plain
 * decoding is timed (engine/pace.h); 0 if there is none. */
double esp_state_pace(const struct esp_state *state, int count);

/* Seconds of a plain decoding step: of the side that decodes plainly, if one does, else as it
 * was measured in between; 0 if it was not. */
double esp_state_baseline(const struct esp_state *state);

/* Whether speculation is at least as fast as plain decoding, to the percent that is shown. */
bool esp_state_wins(const struct esp_figures *figures);
/* Says what speculation is worth, given the seconds of a plain decoding step: in a sentence, in
 * a few words, in two words. The speedup must be known. */
void esp_state_worth(const struct esp_figures *figures, double baseline, char texts[3][96]);

#endif
