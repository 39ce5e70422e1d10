/* engine.h - declares the fields of struct esp_engine, for the other files of the engine. */
#ifndef ESP_ENGINE_H
#define ESP_ENGINE_H

#include "engine/chat/chat.h"
#include "kernels/clock.h"
#include "kernels/kernels.h"
#include "engine/model/model.h"
#include "engine/model/tokenizer.h"
#include "engine/model/translation.h"

struct esp_engine {
    struct esp_backend *backend;
    struct esp_tokenizer *tokenizer;
    struct esp_model *target, *draft; /* draft may be NULL */
    /* Translates the target's tokens for a draft model with another vocabulary. Its member
     * `tokens` is 0 if there is no such draft. */
    struct esp_translation translation;
    /* The tokenizer of a draft model that drafts text (draft_match) instead of shared tokens;
     * otherwise NULL. */
    struct esp_tokenizer *draft_tokenizer;
    struct esp_chat chat; /* chat format of the target */
    struct esp_weights *target_weights, *draft_weights;
    int max_nodes, context; /* maximum nodes in a tree; maximum tokens in a text */
    double load_seconds;
    size_t device_free;   /* free bytes on the device before loading; 0: the backend
                             shares the host's memory */
    size_t process_bytes; /* bytes that the process used before it loaded anything */
    uint64_t pair;        /* hash of both models, stored in the pair's files; 0: no draft */
    uint64_t sources;     /* hash of both models; the same for all number formats and widths */
    int source_hidden;    /* the target's hidden size before it was made wider */
    char device[96];      /* the device, and how much of the target is in memory */
    char notice[300];     /* why a slower backend is used, or why the context is short; or "" */
};

/* Returns the target's tokenizer or, if `draft` is set, the draft model's tokenizer. The draft
 * model must have a separate tokenizer. */
struct esp_language esp_engine_language(const struct esp_engine *engine, bool draft);

#endif
