/* comparison.c - pairs iterations of two sessions; see comparison.h.
 *
 * After a rewind, the iterations that generated the removed text are still in memory. They are
 * recognised by their positions. The text of an iteration was removed if a newer iteration
 * starts at the same position or at an earlier one.
 */
#include "tui/model/comparison.h"

#include <limits.h>

/* Returns the next older iteration with a text that was not removed, or NULL. `back` and
 * `before` store how far the caller has gone. Before the first call, the caller must set them
 * to 0 and INT_MAX. */
static const struct esp_iteration *next_kept(const struct esp_state *state, int *back,
                                             int *before)
{
    const struct esp_iteration *it;
    while ((it = esp_state_kept(state, (*back)++)))
        if (it->position < *before) {
            *before = it->position;
            return it;
        }
    return NULL;
}

const struct esp_iteration *esp_iteration_covering(const struct esp_state *state, int place)
{
    const struct esp_iteration *it;
    int back = 0, before = INT_MAX;
    if (state->has_partial && place >= state->partial.it.position)
        return &state->partial.it;
    while ((it = next_kept(state, &back, &before)) && it->position > place)
        continue;
    return it && place < it->position + it->committed_count ? it : NULL;
}

static bool starts_at(const struct esp_iteration *it, int place)
{
    return it && it->position == place;
}

struct esp_comparison esp_comparison_at(const struct esp_state *state, int place)
{
    struct esp_comparison both = {.place = place};
    both.it[0] = esp_iteration_covering(state, place);
    if (state->compared)
        both.it[1] = esp_iteration_covering(state->compared, place);
    both.same = starts_at(both.it[0], place) && starts_at(both.it[1], place);
    return both;
}

static bool has_drafted(const struct esp_comparison *both)
{
    return both->it[0]->tree.count > 1 || both->it[1]->tree.count > 1;
}

struct esp_comparison esp_comparison_newest(const struct esp_state *state)
{
    enum { BACK = 8 }; /* largest number of common starts at which a tree is looked for */
    const struct esp_iteration *newest = esp_state_kept(state, 0);
    struct esp_comparison found = {.place = INT_MAX}, both;
    if (state->has_partial)
        return esp_comparison_at(state, state->partial.it.position);
    for (int i = 0, place = INT_MAX; i < BACK; i++) {
        place = esp_comparison_step(state, place, -1, true);
        if (place < 0)
            break;
        both = esp_comparison_at(state, place);
        if (i == 0 || has_drafted(&both))
            found = both;
        if (has_drafted(&both))
            break;
    }
    if (found.place == INT_MAX)
        found = esp_comparison_at(state, newest ? newest->position : -1);
    return found;
}

/* Returns whether `a` is in the direction `step` from `place`, and nearer to `place` than
 * `b`. */
static bool nearer(int a, int b, int place, int step)
{
    if (step < 0)
        return a < place && a > b;
    return a > place && (b < 0 || a < b);
}

int esp_comparison_step(const struct esp_state *state, int place, int step, bool both)
{
    int found = -1;
    for (int side = 0; side < 2; side++) {
        const struct esp_state *from = side ? state->compared : state;
        const struct esp_iteration *it;
        int back = 0, before = INT_MAX;
        while (from && (it = next_kept(from, &back, &before))) {
            if (!nearer(it->position, found, place, step))
                continue;
            struct esp_comparison at = esp_comparison_at(state, it->position);
            if (both ? at.same : at.it[0] != NULL)
                found = it->position;
        }
    }
    return found;
}
