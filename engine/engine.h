/* engine.h - the fields of struct esp_engine, for the other files of the engine. */
#ifndef ESP_ENGINE_H
#define ESP_ENGINE_H

#include "engine/chat/chat.h"
#include "kernels/clock.h"
#include "kernels/kernels.h"
#include "engine/model/model.h"
#include "engine/model/tokenizer.h"

struct esp_engine {
    struct esp_backend *backend;
    struct esp_tokenizer *tokenizer;
    struct esp_model *target, *draft; /* draft may be NULL */
    struct esp_chat chat;             /* of the target */
    struct esp_weights *target_weights, *draft_weights;
    int max_nodes, context; /* nodes of a tree, tokens of a text: the most of a session */
    double load_seconds;
    size_t device_free; /* bytes that were free on the device before anything was loaded; 0: the
                           backend has no memory of its own */
    size_t process_bytes; /* of memory that the process had before */
    uint64_t pair;     /* of both models' numbers, for files that go with them; 0: no draft */
    uint64_t sources;  /* the same whatever the models' number format and the target's width */
    int source_hidden; /* the target's hidden size before it was made wider */
    char device[96];   /* what computes, and how much of the target is in memory */
    char notice[300];  /* why a faster backend is not used, or the context is short; or "" */
};

#endif
