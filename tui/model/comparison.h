/* comparison.h - pairs the iterations of two sessions that decode the same text.
 *
 * Both sessions run in lock step (engine/compare.h), but their iterations commit different
 * numbers of tokens. A place is a position in the text, in tokens. An iteration starts where
 * its context ends and covers the tokens that it commits. Two iterations are a pair if they
 * cover the same place. If both start there, they have the same context, and their trees can be
 * compared.
 */
#ifndef ESP_COMPARISON_H
#define ESP_COMPARISON_H

#include "tui/model/state.h"

struct esp_comparison {
    const struct esp_iteration *it[2]; /* one of each session; NULL: none at `place` */
    int place;                         /* -1 if there is no iteration at all */
    bool same;                         /* both iterations start at `place` */
};

/* Returns the newest iteration in memory that covers a place, or NULL. */
const struct esp_iteration *esp_iteration_covering(const struct esp_state *state, int place);

/* Returns the two iterations that cover a place. */
struct esp_comparison esp_comparison_at(const struct esp_state *state, int place);
/* Returns the newest place where both sessions start an iteration. If no session drafted
 * anything there (for example, at the last token of a text), prefers a place shortly before it
 * where a session drafted something. If the sessions never start at the same place, or if
 * step mode has stopped within an iteration, returns the start of the first session's newest
 * iteration. */
struct esp_comparison esp_comparison_newest(const struct esp_state *state);
/* Returns the previous (step -1) or next (1) place where a session starts an iteration. If
 * `both` is true, both sessions must start an iteration at the place. An iteration of the first
 * session must cover the place. Returns -1 if there is no such place. */
int esp_comparison_step(const struct esp_state *state, int place, int step, bool both);

#endif
