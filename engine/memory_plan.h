/* memory_plan.h - checks that the models, a session and its trees fit on the device, or in a
 * limit that the user gave. */
#ifndef ESP_MEMORY_PLAN_H
#define ESP_MEMORY_PLAN_H

#include "engine/engine.h"

/* Adds up the memory that an engine with open models and one session will take, before anything
 * is loaded. If the backend reports that less is free: ESP_E_MEMORY and a sentence that says
 * what would fit. */
int esp_memory_plan(const struct esp_engine *engine, char *err, size_t errlen);

/* Tells the backend that the process is to take about `bytes` (0: any number), of which the
 * draft model, a session and what the process holds already have their share. To be called
 * before the weights are opened. ESP_E_UNSUPPORTED if the backend knows no limits. */
int esp_memory_limit(struct esp_engine *engine, size_t bytes, char *err, size_t errlen);

#endif
