/* compare.h - a second choice of drafter and verifier, run over the text of a first one.
 *
 * Two sessions of one engine share a text: the first writes it, the second drafts and verifies
 * along it, each with caches, a controller and random numbers of its own. They go in lock step:
 * whichever has come less far runs its next iteration, and where both stand at the same place,
 * the first runs, then the second. So the last iterations of the two always lie side by side in
 * the text, and an iteration of the second always starts from text that the first has written.
 *
 * At temperature 0 both commit the same tokens, and the totals of either are those of a run by
 * itself. Above it the second would go another way: what it commits only counts how far it
 * comes, and before it goes on, its context becomes the text again. The text is always that of
 * the first alone.
 */
#ifndef ESP_COMPARE_H
#define ESP_COMPARE_H

#include "espalier.h"

struct esp_compare {
    struct esp_session *first, *second;
    int limit;      /* length that the text may reach in this generation */
    int checked;    /* tokens of the second that were held against the text */
    int difference; /* place of the first token where the second differed; -1: none so far */
};

/* Opens the second session. Of its options, drafter, verifier, observer and user are taken; all
 * others are those of the first, whose text so far it reads. */
int esp_compare_open(struct esp_compare *compare, struct esp_session *first,
                     const struct esp_session_options *second, char *err, size_t errlen);
/* Closes the second session; a zeroed struct is allowed. */
void esp_compare_close(struct esp_compare *compare);

/* Once the first has got its prompt and its allowance: both start from the same context. */
int esp_compare_begin(struct esp_compare *compare, char *err, size_t errlen);
/* Is it the second's turn? If not, it is the first's, unless that has ended. Holds what is new
 * in the two texts against each other. */
bool esp_compare_turn(struct esp_compare *compare);
/* Runs one iteration of the second, from the context that the first had there. Returns the
 * number of tokens committed or a negative status. */
int esp_compare_step(struct esp_compare *compare, char *err, size_t errlen);

#endif
