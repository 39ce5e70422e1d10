/* memory_plan.h - checks that the models, a session and its trees fit on the device, or in a
 * limit that the user gave. */
#ifndef ESP_MEMORY_PLAN_H
#define ESP_MEMORY_PLAN_H

#include "engine/engine.h"

/* Adds up the memory of the device that an engine with open models and one session will take,
 * before anything is loaded. If less is free, or `limit` (0: none) allows less, the target's
 * limit is set, so that layers that do not fit are streamed. If even that is too much:
 * ESP_E_MEMORY and a sentence that says what would fit. */
int esp_memory_plan(struct esp_engine *engine, size_t limit, char *err, size_t errlen);

/* For a user who asked for no context, and a device whose memory (or `limit`, 0: none) has no
 * room for a session of the model's: shortens the engine's context to what fits beside whole
 * models, unless less than a quarter of it is left. To be called before esp_memory_plan(). */
void esp_memory_fit_context(struct esp_engine *engine, size_t limit);

/* Bytes of memory that this process has now; 0 where the system does not tell. */
size_t esp_process_bytes(void);

/* Tells the backend that the process is to take about `bytes` (0: any number), of which the
 * program, the tokenizer, the draft model and a session have their share. An older engine that
 * is still open is not counted: it is closed when this one has taken its place. To be called
 * before the weights are opened. ESP_E_UNSUPPORTED if the backend has a memory of its own. */
int esp_memory_set_limit(struct esp_engine *engine, size_t bytes, char *err, size_t errlen);

#endif
