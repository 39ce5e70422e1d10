/* models.h - the loaded models and their session, and how to replace them.
 *
 * The models belong to the engine thread (worker.h). A new pair is opened while the old one is
 * still open; if that fails, the old pair stays. The text is kept. If the new models have
 * other tokens, the text is tokenized again.
 */
#ifndef ESP_MODELS_H
#define ESP_MODELS_H

#include "engine/espalier.h"

struct esp_models {
    struct esp_engine_options options; /* the pair owns the strings */
    struct esp_engine *engine;         /* NULL means no models */
    struct esp_session *session;
};

/* Opens a pair; all strings are copied. After a failure, `pair` has only its options. */
int esp_models_open(struct esp_models *pair, const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *err, size_t errlen);
void esp_models_close(struct esp_models *pair);

/* Sets `options` to those of `pair`, except for the option named `key` (espalier_options.h),
 * which gets `value`. If the key is "target", the draft becomes `draft`. `options` borrows the
 * strings of the pair and of the caller. Returns 0, or a negative status with a message if
 * there is no such option or the value is not valid. */
int esp_models_options(struct esp_engine_options *options, const struct esp_models *pair,
                       const char *key, const char *value, const char *draft, char *err,
                       size_t errlen);

/* Opens `next` with these options and the settings of `pair`'s session. If its drafter or
 * verifier does not work with the new models, both are reset to the defaults, and `note` says
 * so. */
int esp_models_follow(struct esp_models *next, const struct esp_models *pair,
                      const struct esp_engine_options *options,
                      const struct esp_session_options *session, char *note, size_t size,
                      char *err, size_t errlen);

/* Returns whether all tokens of `from`'s text stand for the same bytes in `to`'s models. */
bool esp_models_shares_tokens(const struct esp_models *from, const struct esp_models *to);
/* Moves `from`'s text to `to`'s session. Returns 0, or a negative status with a message; then
 * `to` has no text. */
int esp_models_hand_over(const struct esp_models *from, struct esp_models *to, char *err,
                         size_t errlen);

#endif
