/* race_run.h - decodes both sides of a race (tui/model/race.h), one after the other. */
#ifndef ESP_RACE_RUN_H
#define ESP_RACE_RUN_H

#include "tui/model/race.h"

/* Runs the race with `engine`. If the target is enlarged, opens another engine. Reports errors
 * with esp_race_say(). Returns whether both sides have finished. */
bool esp_race_run(struct esp_race *race, struct esp_engine *engine);

#endif
