/* compare.h - a second pair of drafter and verifier, run over the text of a first pair.
 *
 * Two sessions of one engine share a text. The first writes it; the second drafts and verifies
 * along it. Each has KV caches, a controller and random numbers of its own. They run in lock
 * step: the session with the shorter text runs its next iteration; if both are equally long,
 * the first runs, then the second. So the last iterations of the two are always at neighbouring
 * places of the text, and an iteration of the second always starts from text of the first.
 *
 * Each has its own clock, too. The other one's iteration has just taken the processor's caches,
 * so where iterations are short, passes that nobody counts go before a timed one: it takes as
 * long as in a run by itself, and a drafter that weighs costs learns those of such a run.
 *
 * At temperature 0 both commit the same tokens, and the totals of each are those of a run by
 * itself. Above temperature 0 the second would write another text. So only the number of tokens
 * it commits is used, and before its next iteration its tokens are replaced by those of the
 * text. The text is always that of the first session.
 */
#ifndef ESP_COMPARE_H
#define ESP_COMPARE_H

#include "engine/espalier.h"

struct esp_compare {
    struct esp_session *first, *second;
    int limit;      /* length that the text may reach in this generation */
    int checked;    /* tokens of the second that were compared with the text */
    int difference; /* index of the first token in which the second differed; -1: none so far */
};

/* Opens the second session with the drafter, verifier, observer and user of its options. All
 * other settings are those of the first session, whose text so far it reads. */
int esp_compare_open(struct esp_compare *compare, struct esp_session *first,
                     const struct esp_session_options *second, char *err, size_t errlen);
/* A setting of the first was changed: one that is neither of its drafter nor of its verifier
 * becomes the second's too, but for baseline, which the first measures for both. Returns
 * whether something changed, or a negative status. */
int esp_compare_set(struct esp_compare *compare, const char *key, const char *value, char *err,
                    size_t errlen);
/* Closes the second session; a zeroed struct is allowed. */
void esp_compare_close(struct esp_compare *compare);

/* Starts a generation; to be called after the first session got its prompt and allowance. Both
 * then start from the same text. */
int esp_compare_begin(struct esp_compare *compare, char *err, size_t errlen);
/* Compares the new tokens of the two sessions. Returns true if the second runs next; if false,
 * the first does, unless it has ended. */
bool esp_compare_turn(struct esp_compare *compare);
/* Runs one iteration of the first session, as esp_session_step() does. */
int esp_compare_step_first(struct esp_compare *compare, char *err, size_t errlen);
/* Runs one iteration of the second session, from the text that the first had at that place.
 * Returns the number of tokens committed or a negative status. */
int esp_compare_step(struct esp_compare *compare, char *err, size_t errlen);

#endif
