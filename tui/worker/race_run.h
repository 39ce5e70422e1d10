/* race_run.h - decodes both sides of a race (tui/model/race.h), one after the other. */
#ifndef ESP_RACE_RUN_H
#define ESP_RACE_RUN_H

#include "tui/model/race.h"

/* What races. Strings are needed only during the call that takes it. */
struct esp_race_choice {
    struct esp_engine_options engine;
    double pass; /* make the target so large that a pass takes so many seconds; 0: as it is */
    struct esp_session_options
        session; /* of both sides: its drafter and verifier are not used */
    const char *drafter[2], *verifier[2]; /* left and right; drafter NULL: ar, the pair's */
    const char
        *prompt; /* NULL: one of those that come with the program, by the session's seed */
    int tokens;  /* 0: 64; of a prompt of the program's, up to the end of a sentence */
};

/* Runs the race, with `engine` if it is to be as it is, else with one that it opens. What goes
 * wrong is said in the race. Returns whether both sides came to their ends. */
bool esp_race_run(struct esp_race *race, const struct esp_race_choice *choice,
                  struct esp_engine *engine);

#endif
