/* race.h - two ways to decode the same text, side by side at their true speed.
 *
 * Both would share the processors if they ran at once, so they do not: the right side decodes
 * alone first, then the left side decodes alone while it is watched, and each is shown by its
 * own clock (run.h). Recordings are shown by the clocks that they recorded.
 *
 * Two threads hold a race, the one that decodes and the one that draws; the last one that lets
 * go frees it.
 */
#ifndef ESP_RACE_H
#define ESP_RACE_H

#include <stdatomic.h>

#include "tui/model/run.h"

enum esp_race_phase {
    ESP_RACE_PREPARES, /* loads, practises, decodes the right side: `doing` says what */
    ESP_RACE_RUNS,     /* the clock runs */
    ESP_RACE_OVER,     /* both sides have come to their ends */
    ESP_RACE_FAILED,   /* `doing` says why */
};

struct esp_race {
    struct esp_run side[2]; /* left, right */
    atomic_bool stopped;    /* nobody watches any more */
    atomic_int holders;

    pthread_mutex_t lock; /* of everything below; taken before those of the sides */
    int phase;
    bool recorded;  /* both sides come from recordings */
    uint64_t seed;  /* of both, where they do not; set before anything is decoded */
    char pair[200]; /* the models, and how long a pass of the target takes */
    char doing[512];
    double share; /* of what is done in this phase, 0 to 1 */
    double begun; /* when the clock started, by esp_clock() */
};

/* A race that one thread holds. NULL: no memory. */
struct esp_race *esp_race_new(void);
void esp_race_hold(struct esp_race *race);
void esp_race_release(struct esp_race *race);
/* Both sides from recordings; the clock starts now. */
int esp_race_read(struct esp_race *race, const char *const paths[2], char *err, size_t errlen);

/* What the thread that decodes says. */
__attribute__((format(printf, 4, 5))) void esp_race_say(struct esp_race *race, int phase,
                                                        double share, const char *format, ...);
/* Starts the clock, also again after the end. */
void esp_race_begin(struct esp_race *race);

/* Seconds on the clock. Makes a race that has come to its end one that is over. */
double esp_race_clock(struct esp_race *race);

/* The phase, with the clock as it is now. */
int esp_race_now(struct esp_race *race);

/* Do both sides hold the same text? `compared`: tokens that both wrote; `differs`: the first
 * one, counted from 1, that is another; 0: none. False where their prompts differ. */
bool esp_race_check(struct esp_race *race, int *compared, int *differs);
/* Tokens per second of the right side over those of the left one; 0: no time was measured. */
double esp_race_times_as_fast(const struct esp_race *race);
/* The sentence at the end: "identical, 2.78 times as fast", or what differs. Returns whether
 * that is as it should be: at temperature 0 a difference is a fault. */
bool esp_race_verdict(struct esp_race *race, char *text, size_t size);

#endif
