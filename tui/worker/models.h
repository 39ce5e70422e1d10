/* models.h - the loaded models and their session, and how to replace them.
 *
 * Belongs to the engine thread (worker.h). A new pair is opened beside the old one; if that
 * fails, the old pair stays. The text is kept. If the new models have other tokens, it is
 * tokenized again.
 */
#ifndef ESP_MODELS_H
#define ESP_MODELS_H

#include "engine/espalier.h"

struct esp_models {
    struct esp_engine_options options; /* its strings are owned */
    struct esp_engine *engine;         /* NULL: no models */
    struct esp_session *session;
};

/* One change of the engine options. Strings are needed only during the call. */
struct esp_models_change {
    enum esp_models_part {
        ESP_CHANGE_MODELS,
        ESP_CHANGE_BACKEND,
        ESP_CHANGE_DEVICE,
        ESP_CHANGE_THREADS,
        ESP_CHANGE_MEMORY,
        ESP_CHANGE_GPU_MEMORY,
    } part;
    const char *target, *draft; /* MODELS: folders; NULL: as in struct esp_engine_options */
    const char *backend;
    int device, threads;
    size_t memory;
};

/* Opens a pair; all strings are copied. After a failure it holds only its options. */
int esp_models_open(struct esp_models *pair, const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *err, size_t errlen);
void esp_models_close(struct esp_models *pair);

/* Sets `options` to those of `pair` with one part changed. It borrows the strings of the pair
 * and of the change. */
void esp_models_options(struct esp_engine_options *options, const struct esp_models *pair,
                        const struct esp_models_change *change);

/* Opens `next` with these options and the settings of `pair`'s session. A drafter or verifier
 * that does not work with the new models is replaced by their default, and `note` says so. */
int esp_models_follow(struct esp_models *next, const struct esp_models *pair,
                      const struct esp_engine_options *options,
                      const struct esp_session_options *session, char *note, size_t size,
                      char *err, size_t errlen);

/* Whether all tokens of `from`'s text are the same tokens in `to`'s models. */
bool esp_models_shares_tokens(const struct esp_models *from, const struct esp_models *to);
/* Moves `from`'s text to `to`'s session. Returns 0, or a negative status; then `to` has no
 * text. */
int esp_models_hand_over(const struct esp_models *from, struct esp_models *to, char *err,
                         size_t errlen);

#endif
