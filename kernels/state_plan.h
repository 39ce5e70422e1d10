/* state_plan.h - which rows a pass over recurrent layers visits, and in which order; shared by
 * the backends.
 *
 * A pass walks over the rows of the text that the states do not include yet, then over its own
 * text rows; both change the states in place. The other rows follow, and only their inputs are
 * kept (struct esp_cache). The input of row r is in slot (r + dropped) % ring, which does not
 * change when a window drops rows.
 */
#ifndef ESP_STATE_PLAN_H
#define ESP_STATE_PLAN_H

#include "kernels/kernels.h"
#include "kernels/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row of a walk. */
struct esp_state_entry {
    int32_t slot; /* slot of the row's input */
    int32_t row;  /* row of the batch; -1 means an earlier row */
};

struct esp_state_plan {
    int room;    /* number of rows after the states whose inputs are kept; entries of a walk */
    int ring;    /* number of slots, at least `room` */
    int dropped; /* rows that the window has dropped, as of the last pass */

    /* Of the current pass. */
    int folded;  /* the cache's `folded` afterwards */
    bool begins; /* the pass begins a text, so it must set the states to zero first */
    struct esp_state_walk walk;
    struct esp_state_entry *entry; /* (room) */
    int32_t *batch_slot;           /* (room) slot of each row of the batch */
    /* (room) for each row, counted from the prefix: the row before it in its path, and its
     * entry. */
    int32_t *before, *known;
};

/* esp_state_plan_bytes() returns the size of a plan's arrays for walks of at most `room`
 * entries. esp_state_plan_lay_out() puts the arrays into `memory`, which the caller owns. */
size_t esp_state_plan_bytes(int room);
void esp_state_plan_lay_out(struct esp_state_plan *plan, void *memory);

/* Plans the walk of a batch, which begins after the cache's first `folded` tokens. The batch may
 * have no rows. Returns false if the states are past the batch's prefix, or if inputs that they
 * lack are no longer kept. */
bool esp_state_plan_make(struct esp_state_plan *plan, const struct esp_cache *cache,
                         const struct esp_batch *batch);
/* Returns whether esp_state_plan_make() would succeed. Changes nothing. */
bool esp_state_plan_fits(const struct esp_state_plan *plan, const struct esp_cache *cache,
                         const struct esp_batch *batch);

/* Returns whether keep() moves the input of token `from` to that of token `to`, both counted in
 * the whole text. */
static inline bool esp_state_plan_moves(int64_t from, int64_t to, int folded, int room)
{
    return from != to && to >= folded && from < (int64_t)folded + room;
}

#ifdef __cplusplus
}
#endif
#endif
