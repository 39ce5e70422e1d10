/* compare.h - runs a second pair of drafter and verifier over the text that a first pair
 * writes.
 *
 * Two sessions of one engine share a text. The first session writes the text; the second drafts
 * and verifies the same tokens. Each has its own KV caches, controller and random numbers. They
 * run in lock step: the session with the shorter text runs its next iteration. At equal length
 * the first session runs, then the second. Both are therefore always near the same position,
 * and the second session always continues a text of the first session.
 *
 * The time of each session is measured separately. An iteration of one session evicts the data
 * of the other session from the processor's caches. If iterations are short, untimed passes
 * therefore run before a timed pass. The timed pass then takes as long as if the session ran
 * alone. So a drafter that adapts its trees to measured costs learns realistic costs.
 *
 * At temperature 0 both commit the same tokens, and each has the same totals as if it ran
 * alone. Above temperature 0 the second session would write a different text. Only the number
 * of tokens that the second session commits is used. Before its next iteration, its tokens are
 * replaced with the tokens of the first session's text.
 */
#ifndef ESP_COMPARE_H
#define ESP_COMPARE_H

#include "engine/espalier.h"

struct esp_compare {
    struct esp_session *first, *second;
    int limit;      /* maximum length of the text in this generation */
    int checked;    /* number of the second session's tokens that were compared so far */
    int difference; /* index of the first token that differed; -1 if none so far */
};

/* Opens the second session with the drafter, verifier, observer and user of its options. All
 * other settings, and the text so far, are copied from the first session. */
int esp_compare_open(struct esp_compare *compare, struct esp_session *first,
                     const struct esp_session_options *second, char *err, size_t errlen);
/* Call this after a setting of the first session changed. The second session gets the same
 * value. This does not apply to the settings of the drafter and the verifier, nor to
 * `baseline`, which the first session measures for both. Returns 1 if the second session
 * changed, 0 if not, or a negative status. */
int esp_compare_set(struct esp_compare *compare, const char *key, const char *value, char *err,
                    size_t errlen);
/* Closes the second session. A zero-initialised struct is allowed. */
void esp_compare_close(struct esp_compare *compare);

/* Starts a generation from the text of the first session. Call this after you have called
 * esp_session_prompt() and esp_session_allow() for the first session. */
int esp_compare_begin(struct esp_compare *compare, char *err, size_t errlen);
/* Compares the new tokens of the two sessions. Returns true if the second session runs next.
 * Otherwise the first session runs next, unless it has ended. */
bool esp_compare_turn(struct esp_compare *compare);
/* Runs one iteration of the first session, as esp_session_step() does. */
int esp_compare_step_first(struct esp_compare *compare, char *err, size_t errlen);
/* Runs one iteration of the second session, starting from the first session's text up to the
 * same position. Returns the number of tokens committed or a negative status. */
int esp_compare_step(struct esp_compare *compare, char *err, size_t errlen);

#endif
