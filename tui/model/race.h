/* race.h - two drafters decode the same text, shown side by side at true speed.
 *
 * The two must not compete for the processors. So the right side decodes first, before the race
 * is shown, and the left side decodes while the user watches. Each side is shown at the times
 * of its own clock (run.h). Two recordings are shown at their recorded times.
 *
 * The race is reference-counted: the decoding thread and the drawing thread share it.
 */
#ifndef ESP_RACE_H
#define ESP_RACE_H

#include <stdatomic.h>

#include "tui/model/run.h"

enum esp_race_phase {
    ESP_RACE_PREPARES, /* loads, warms up, decodes the right side; see `doing` */
    ESP_RACE_RUNS,     /* the clock runs */
    ESP_RACE_OVER,     /* both sides have finished */
    ESP_RACE_FAILED,   /* `doing` gives the reason */
};

/* The configuration of a race. */
struct esp_race_options {
    struct esp_engine_options engine;
    double pass; /* enlarge the target until a pass takes this many seconds; 0 means leave it */
    struct esp_session_options session; /* for both sides, except drafter and verifier */
    /* Drafter and verifier of the left side, [0], and of the right side, [1]. Drafter NULL: ar
     * on the left, the pair's default on the right. */
    const char *drafter[2], *verifier[2];
    const char *prompt; /* NULL means a bundled one, chosen by the session's seed */
    int tokens;         /* 0 means 64 or, with a bundled prompt, up to the end of a sentence */
};

struct esp_race {
    struct esp_race_options options; /* zero for recordings */
    char drafter[2][ESP_SPEC_TEXT];  /* strings to which the options point */
    struct esp_run side[2];          /* left, right */
    atomic_bool stopped;             /* the page was closed */
    atomic_int holders;
    bool drawn; /* the drawing is final until a key is pressed; only for the drawing thread */

    pthread_mutex_t lock; /* protects everything below; locked before the locks of the sides */
    int phase;
    bool recorded;   /* both sides come from recordings */
    char pair[200];  /* the models and the time per target pass, as text */
    char doing[512]; /* what is being done now, or the error */
    double share;    /* progress of this phase, 0 to 1 */
    double begun;    /* start of the clock, by esp_clock() */
};

/* Makes a race with one reference; for recordings, `options` is NULL. Copies the names of the
 * drafters; other strings must outlive the race. Returns NULL if there is no memory. */
struct esp_race *esp_race_new(const struct esp_race_options *options);
void esp_race_hold(struct esp_race *race);
void esp_race_release(struct esp_race *race);
/* Reads both sides from recordings and starts the clock. Returns 0 or a negative status with a
 * message. */
int esp_race_read(struct esp_race *race, const char *const paths[2], char *err, size_t errlen);

/* Reports progress from the decoding thread. */
__attribute__((format(printf, 4, 5))) void esp_race_say(struct esp_race *race, int phase,
                                                        double share, const char *format, ...);
/* Starts the clock or, after the end, starts it again. */
void esp_race_begin(struct esp_race *race);

/* Returns the seconds on the clock. Sets the phase to OVER when both sides have finished. */
double esp_race_clock(struct esp_race *race);

/* Updates the phase by the clock, and returns it. */
int esp_race_now(struct esp_race *race);

/* Compares the texts of both sides. *compared gets the number of tokens that agree before any
 * difference, *differs the number of the first token that differs, counted from 1; 0 if none
 * does. Returns false if the prompts differ. */
bool esp_race_check(struct esp_race *race, int *compared, int *differs);
/* Tokens per second of the right side divided by those of the left; 0 if there are no
 * times. */
double esp_race_times_as_fast(const struct esp_race *race);
/* Writes the result: "identical, 2.78 times as fast", or the difference. Returns false if the
 * texts differ at temperature 0, which is an error. */
bool esp_race_verdict(struct esp_race *race, char *text, size_t size);

#endif
