/* models.h - opens a pair of models and their session, and replaces them by another pair.
 *
 * The models belong to the engine thread (worker.h). A new pair is opened while the old one is
 * still open. If opening fails, the old pair stays. Otherwise the text is moved to the new
 * pair. If the new models have different tokens, the text is tokenized again.
 */
#ifndef ESP_MODELS_H
#define ESP_MODELS_H

#include "engine/espalier.h"

struct esp_models {
    struct esp_engine_options options; /* their strings belong to this struct */
    struct esp_engine *engine;         /* NULL: no models are loaded */
    struct esp_session *session;
};

/* Opens a pair. Copies all strings. After a failure, `pair` has only its options. */
int esp_models_open(struct esp_models *pair, const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *err, size_t errlen);
void esp_models_close(struct esp_models *pair);

/* Sets `options` to the options of `pair`. Then sets the option named `key`
 * (espalier_options.h) to `value`. If the key is "target", sets the draft to `draft`. `options`
 * points to strings of the pair and of the caller. Returns 0, or a negative status with a
 * message if there is no such option or the value is not valid. */
int esp_models_options(struct esp_engine_options *options, const struct esp_models *pair,
                       const char *key, const char *value, const char *draft, char *err,
                       size_t errlen);

/* Opens `next` with these options and the settings of `pair`'s session. If the drafter or the
 * verifier of this session does not work with the new models, resets both to the defaults, and
 * says so in `note`. */
int esp_models_follow(struct esp_models *next, const struct esp_models *pair,
                      const struct esp_engine_options *options,
                      const struct esp_session_options *session, char *note, size_t size,
                      char *err, size_t errlen);

/* Returns whether all tokens of the text of `from` have the same bytes in the models of
 * `to`. */
bool esp_models_shares_tokens(const struct esp_models *from, const struct esp_models *to);
/* Moves the text of `from` to the session of `to`. Returns 0, or a negative status with a
 * message. After an error, `to` has no text. */
int esp_models_hand_over(const struct esp_models *from, struct esp_models *to, char *err,
                         size_t errlen);

#endif
