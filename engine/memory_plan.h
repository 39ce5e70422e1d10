/* memory_plan.h - will the models, a session and its trees fit on the device? */
#ifndef ESP_MEMORY_PLAN_H
#define ESP_MEMORY_PLAN_H

#include "engine.h"

/* Adds up what an engine with open models will take with one session, before anything is
 * loaded. If the backend knows how much is free and it is less, fails with ESP_E_MEMORY and a
 * sentence that says what would fit. */
int esp_memory_plan(const struct esp_engine *engine, char *err, size_t errlen);

#endif
