/* memory_plan.h - checks that models, session and trees fit on the device, or in the user's
 * limit. */
#ifndef ESP_MEMORY_PLAN_H
#define ESP_MEMORY_PLAN_H

#include "engine/engine.h"

/* Adds up the device memory that an engine with open models and one session needs, before
 * anything is loaded. If less memory is free, or if `limit` (0 if none) is smaller, limits the
 * target's weights. The layers that do not fit are then streamed. If even that is not enough,
 * returns ESP_E_MEMORY, and err says what would fit. */
int esp_memory_plan(struct esp_engine *engine, size_t limit, char *err, size_t errlen);

/* If the device (or `limit`, 0 if none) has no room for a session with the full context,
 * shortens the engine's context. Then a session and the whole models fit together. Does nothing
 * if less than a quarter of the context would be left. Call it before esp_memory_plan(), and
 * only if the user set no context. */
void esp_memory_fit_context(struct esp_engine *engine, size_t limit);

/* Limits the process to about `bytes` (0 means no limit). The memory of the program, the
 * tokenizer, the draft model and a session is subtracted from this limit. The remaining
 * bytes are the backend's limit for the target's weights. An older engine that is still open is
 * not counted, because it is closed when this engine replaces it. Call this function before the
 * weights are opened. Returns ESP_E_UNSUPPORTED if the backend has its own memory. */
int esp_memory_set_limit(struct esp_engine *engine, size_t bytes, char *err, size_t errlen);

#endif
