/* models.h - the models that are loaded and the session that writes with them; and how others
 * take their place.
 *
 * Belongs to the engine's thread (worker.h). Another pair is opened beside the one that is
 * there, which stays if that fails. The text goes on: where the new models have the same tokens
 * it stays as it is, else it is tokenized anew.
 */
#ifndef ESP_MODELS_H
#define ESP_MODELS_H

#include "engine/espalier.h"

struct esp_models {
    struct esp_engine_options options; /* its strings are owned */
    struct esp_engine *engine;         /* NULL: nothing is loaded */
    struct esp_session *session;
};

/* An option that is to be another (espalier_options.h), as text. Strings are needed only during
 * the call that takes it. */
struct esp_models_change {
    const char *key, *value;
    const char *draft; /* with "target": the draft, as in struct esp_engine_options */
};

/* Opens a pair; all strings are copied. On failure it is empty but for its options. */
int esp_models_open(struct esp_models *pair, const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *err, size_t errlen);
void esp_models_close(struct esp_models *pair);

/* Makes `options` those of `pair` with one changed. The strings are those of the pair and of
 * the change. Returns 0, or a negative status if there is no such option or value. */
int esp_models_options(struct esp_engine_options *options, const struct esp_models *pair,
                       const struct esp_models_change *change, char *err, size_t errlen);

/* Opens `next` with these options and the settings of `pair`'s session. Where the drafter or
 * the verifier that was chosen does not go with the new models, theirs are taken, and `note`
 * says so. */
int esp_models_follow(struct esp_models *next, const struct esp_models *pair,
                      const struct esp_engine_options *options,
                      const struct esp_session_options *session, char *note, size_t size,
                      char *err, size_t errlen);

/* Do all tokens of `from`'s text mean the same to `to`'s models? */
bool esp_models_shares_tokens(const struct esp_models *from, const struct esp_models *to);
/* Gives `from`'s text to `to`'s session. Returns 0 or a negative status; then it has no text.
 */
int esp_models_hand_over(const struct esp_models *from, struct esp_models *to, char *err,
                         size_t errlen);

#endif
