/* race_run.h - decodes both sides of a race (tui/model/race.h), one after the other. */
#ifndef ESP_RACE_RUN_H
#define ESP_RACE_RUN_H

#include "tui/model/race.h"

/* The configuration of a race. Strings are needed only during the call. */
struct esp_race_choice {
    struct esp_engine_options engine;
    double pass; /* enlarge the target until a pass takes this many seconds; 0: leave it */
    struct esp_session_options
        session; /* for both sides; its drafter and verifier are unused */
    const char *drafter[2],
        *verifier[2];   /* left, right; drafter NULL: ar, the pair's default */
    const char *prompt; /* NULL: a bundled one, chosen by the session's seed */
    int tokens;         /* 0: 64; with a bundled prompt up to the end of a sentence */
};

/* Runs the race with `engine`, or with its own if the target is enlarged. Errors are reported
 * in the race. Returns whether both sides finished. */
bool esp_race_run(struct esp_race *race, const struct esp_race_choice *choice,
                  struct esp_engine *engine);

#endif
