/* race_run.h - decodes both sides of a race (tui/model/race.h), one after the other. */
#ifndef ESP_RACE_RUN_H
#define ESP_RACE_RUN_H

#include "tui/model/race.h"

/* Runs the race with `engine`, or with its own if the target is enlarged. Errors are reported
 * in the race. Returns whether both sides finished. */
bool esp_race_run(struct esp_race *race, struct esp_engine *engine);

#endif
