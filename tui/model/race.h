/* race.h - a race: two drafters decode the same text, and both are shown side by side at their
 * measured speed.
 *
 * The two sides must not compete for the processors. Therefore the right side decodes first,
 * before the race is shown, and the left side decodes while the user watches. Each side is
 * shown at the times of its own clock (run.h). Two recordings are shown at their recorded
 * times.
 *
 * The race is reference-counted: the decoding thread and the drawing thread share it.
 */
#ifndef ESP_RACE_H
#define ESP_RACE_H

#include <stdatomic.h>

#include "tui/model/run.h"

enum esp_race_phase {
    ESP_RACE_PREPARES, /* `doing` names the work: loading, warming up or decoding */
    ESP_RACE_RUNS,     /* the clock runs and the sides are shown */
    ESP_RACE_OVER,     /* both sides have finished */
    ESP_RACE_FAILED,   /* `doing` gives the reason */
};

/* The options of a race. */
struct esp_race_options {
    struct esp_engine_options engine;
    double pass; /* target is enlarged until a pass takes this many seconds; 0: no change */
    struct esp_session_options session; /* for both sides; drafter and verifier are ignored */
    /* Drafters and verifiers. [0] is the left side and [1] is the right side. NULL means
     * ar (plain decoding) for the left drafter, and the models' default for the right one. */
    const char *drafter[2], *verifier[2];
    const char *prompt; /* NULL: a bundled prompt that depends on the session's seed */
    int tokens;         /* 0: 64 tokens; after a bundled prompt, up to the end of a sentence */
};

struct esp_race {
    struct esp_race_options options; /* all zero for recordings */
    char drafter[2][ESP_SPEC_TEXT];  /* `options` points to these strings */
    struct esp_run side[2];          /* left, right */
    atomic_bool stopped;             /* the page was closed */
    atomic_int holders;
    bool drawn; /* for the drawing thread: no redraw is needed until a key is pressed */

    pthread_mutex_t lock; /* protects all members below; locked before the sides' locks */
    int phase;
    bool recorded;   /* both sides are from recordings */
    char pair[200];  /* the models and the time per target pass, as text */
    char doing[512]; /* the work in progress as text, or the error */
    double share;    /* progress of this phase, from 0 to 1 */
    double begun;    /* time of esp_clock() at which the clock was started */
};

/* Makes a race. At first, the caller has the only reference to it. For recordings, `options` is
 * NULL. Copies the names of the drafters. All other strings must exist while the race exists.
 * Returns NULL if there is no memory. */
struct esp_race *esp_race_new(const struct esp_race_options *options);
void esp_race_hold(struct esp_race *race);
void esp_race_release(struct esp_race *race);
/* Reads both sides from recordings and starts the clock. Returns 0 or a negative status with a
 * message. */
int esp_race_read(struct esp_race *race, const char *const paths[2], char *err, size_t errlen);

/* The decoding thread calls this to report its progress. */
__attribute__((format(printf, 4, 5))) void esp_race_say(struct esp_race *race, int phase,
                                                        double share, const char *format, ...);
/* Starts the clock. After the end of the race, starts it again from 0. */
void esp_race_begin(struct esp_race *race);

/* Returns the seconds on the clock. Sets the phase to OVER when both sides have finished. */
double esp_race_clock(struct esp_race *race);

/* Updates the phase according to the time on the clock, and returns the phase. */
int esp_race_now(struct esp_race *race);

/* Compares the texts of both sides. Sets *compared to the number of tokens that agree before
 * the first difference. Sets *differs to the number of the first token that differs, counted
 * from 1, or to 0 if there is none. Returns false if the prompts differ. */
bool esp_race_check(struct esp_race *race, int *compared, int *differs);
/* Returns the speed of the right side (tokens per second) divided by the speed of the left
 * side. Returns 0 if there are no times. */
double esp_race_times_as_fast(const struct esp_race *race);
/* Writes the result, such as "identical, 2.78 times as fast", or describes the difference.
 * Returns false if the texts differ at temperature 0, which is an error. */
bool esp_race_verdict(struct esp_race *race, char *text, size_t size);

#endif
