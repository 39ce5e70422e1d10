/* comparison.h - which iterations of two sessions on one text belong beside each other.
 *
 * Both go over the same text in lock step (engine/compare.h), each in iterations of its own
 * length. A place is a number of tokens; an iteration starts at the place where its context
 * ends and covers the tokens it commits. Two iterations belong together if they cover the same
 * place; those that start there have the same context, and their trees can be compared.
 */
#ifndef ESP_COMPARISON_H
#define ESP_COMPARISON_H

#include "tui/model/state.h"

struct esp_comparison {
    const struct esp_iteration *it[2]; /* of the first and of the second; NULL: not there */
    int place;                         /* -1: there is nothing at all */
    bool same;                         /* both start there */
};

/* The iteration that covers a place; the newest, if it was written more than once. NULL: it is
 * not there any more, or not yet. */
const struct esp_iteration *esp_iteration_covering(const struct esp_state *state, int place);

/* The two that cover a place. */
struct esp_comparison esp_comparison_at(const struct esp_state *state, int place);
/* The newest place where both start, or one shortly before it where one of them drafted
 * something, as nothing is drafted for the last token of a text. If there is no such place, or
 * if an iteration is stopped in step mode: the place where the newest of the first starts. */
struct esp_comparison esp_comparison_newest(const struct esp_state *state);
/* The place before (step -1) or after (1) `place` where one of the two starts, with `both`
 * where both do; the first must cover it. -1: none. */
int esp_comparison_step(const struct esp_state *state, int place, int step, bool both);

#endif
