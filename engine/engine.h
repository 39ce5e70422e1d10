/* engine.h - the insides of esp_engine, for session.c and loop.c. */
#ifndef ESP_ENGINE_H
#define ESP_ENGINE_H

#include "kernels.h"
#include "model/model.h"
#include "model/tokenizer.h"

struct esp_engine {
    struct esp_backend *backend;
    struct esp_tokenizer *tokenizer;
    struct esp_model *target, *draft; /* draft may be NULL */
    struct esp_weights *target_weights, *draft_weights;
    int max_nodes, context;
    double load_seconds;
    char notice[300]; /* why a faster backend is not used, or "" */
};

double esp_now(void); /* monotonic seconds */

#endif
