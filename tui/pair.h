/* pair.h - the models that are loaded and the session that writes with them; and how others
 * take their place.
 *
 * Belongs to the engine's thread (worker.h). Another pair is opened beside the one that is
 * there, which stays if that fails. The text goes on: where the new models have the same tokens
 * it stays as it is, else it is tokenized anew.
 */
#ifndef ESP_PAIR_H
#define ESP_PAIR_H

#include "espalier.h"

struct esp_pair {
    struct esp_engine_options options; /* its strings are owned */
    struct esp_engine *engine;         /* NULL: nothing is loaded */
    struct esp_session *session;
    bool drafter_chosen, verifier_chosen; /* by the user, so other models should keep them */
};

/* Opens a pair; all strings are copied. On failure it is empty but for its options. */
int esp_pair_open(struct esp_pair *pair, const struct esp_engine_options *options,
                  const struct esp_session_options *session, char *err, size_t errlen);
void esp_pair_close(struct esp_pair *pair);

/* Makes `options` those of `pair` with one changed: "model" (text: the target, a NUL, the draft
 * or nothing), "backend" or "threads". The strings are those of the pair and of `text`. */
void esp_pair_options(struct esp_engine_options *options, const struct esp_pair *pair,
                      const char *key, const char *text);

/* Opens `next` with these options and the settings of `pair`'s session. Where the drafter or
 * the verifier that was chosen does not go with the new models, theirs are taken, and `note`
 * says so. */
int esp_pair_follow(struct esp_pair *next, const struct esp_pair *pair,
                    const struct esp_engine_options *options,
                    const struct esp_session_options *session, char *note, size_t size,
                    char *err, size_t errlen);

/* Do all tokens of `from`'s text mean the same to `to`'s models? */
bool esp_pair_shares_tokens(const struct esp_pair *from, const struct esp_pair *to);
/* Gives `from`'s text to `to`'s session. Returns 0 or a negative status; then it has no text.
 */
int esp_pair_hand_over(const struct esp_pair *from, struct esp_pair *to, char *err,
                       size_t errlen);

#endif
