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

/* Opens a pair; all strings are copied. After a failure it holds only its options. */
int esp_models_open(struct esp_models *pair, const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *err, size_t errlen);
void esp_models_close(struct esp_models *pair);

/* Sets `options` to those of `pair` with one changed, by its name (espalier_options.h), as text.
 * With "target", `draft` is the other model. It borrows the strings of the pair and of the
 * caller. Returns 0, or a negative status if there is no such option or value. */
int esp_models_options(struct esp_engine_options *options, const struct esp_models *pair,
                       const char *key, const char *value, const char *draft, char *err,
                       size_t errlen);

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
