/* state_plan.h - decides which rows of a pass read which state of a recurrent layer. All
 * backends use it.
 *
 * A text is cut into chunks of ESP_STATE_CHUNK tokens. A state is computed only for the start
 * of a chunk. A row multiplies the state after its own token by its query. The product is
 * computed from two things: the state before the row's chunk, and the stored updates of the
 * row's ancestors in the chunk. This is the chunk form of Yang et al., "Gated Delta Networks",
 * 2024, section 3, on a path of a tree. So no state has to be stored for each row of a tree.
 * Chunks depend on positions alone, so the same operations compute a row's numbers, no matter
 * which other rows are in its pass.
 *
 * Rows that read the same state are a group. Group 0 reads the state in memory. Every other
 * group begins with the state after a complete chunk: the state of an earlier group to which
 * the updates of the chunk have been added. If the chunk belongs to the committed text, the new
 * state replaces the state in memory. If it belongs to a path of a tree, the new state is put
 * on a small stack (walk.h).
 *
 * The input and the update of row r are stored in slot (r + dropped) % ring. The slot does not
 * change when a window drops rows.
 */
#ifndef ESP_STATE_PLAN_H
#define ESP_STATE_PLAN_H

#include "kernels/kernels.h"
#include "kernels/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row whose update has not been added to the states yet. It belongs to the committed text, to
 * an earlier pass over the same tree, or to the batch. */
struct esp_state_entry {
    int32_t slot;   /* slot of the row's input and update */
    int32_t parent; /* the previous entry in its path; -1 means the state in memory */
    int32_t place;  /* number of its ancestors in the same chunk */
    int32_t group;
};

struct esp_state_group {
    int32_t last;         /* entry that completes the chunk before this group; -1 for group 0 */
    int32_t first, count; /* the group's rows of the batch: member[first..first+count-1] */
};

struct esp_state_plan {
    int room;    /* largest number of entries */
    int ring;    /* number of slots, at least `room` */
    int dropped; /* number of rows that the window had dropped at the last pass */
    /* The cache that stores the states, if it is not the plan's own cache; otherwise NULL.
     * Passes over the plan's own cache do not change the owner's states, except that a pass
     * that begins a text sets them to zero. */
    struct esp_cache *owner;

    /* The following members describe the current pass. */
    int start;           /* value of the cache's `folded` before the pass */
    int folded;          /* value of the cache's `folded` after the pass */
    bool begins;         /* the pass begins a text, so it must set the states to zero first */
    int entries, groups; /* the last entries belong to the rows of the batch */
    int rows;            /* number of rows of the batch */
    struct esp_state_walk walk;    /* order of the groups; its entry i is group i + 1 */
    struct esp_state_entry *entry; /* (room) */
    struct esp_state_group *group; /* (room + 1) */
    int32_t *member;               /* (room) rows of the batch, sorted by group and index */
    int32_t *batch_slot;           /* (room) slot of each row of the batch */
    int32_t *follower;             /* (room) group that begins after an entry, or 0 */
    /* (room) These arrays are indexed by row, counted from the prefix. before[i] is the
     * previous row in the path of row i. known[i] is the entry of row i. */
    int32_t *before, *known;
};

/* Returns how many entries a plan must have room for if batches have at most `batch` rows.
 * There are entries for the rows of a batch, for rows that were accepted after the last pass
 * (at most `batch`), and for the tokens of an incomplete chunk. */
static inline int esp_state_plan_room(int batch)
{
    return 2 * batch + ESP_STATE_CHUNK - 1;
}

/* esp_state_plan_bytes() returns the size of a plan's arrays for at most `room` entries.
 * esp_state_plan_lay_out() puts the arrays into `memory`, which the caller owns. */
size_t esp_state_plan_bytes(int room);
void esp_state_plan_lay_out(struct esp_state_plan *plan, void *memory);

/* These functions make a plan, but do not set its slots. First call begin(). Then call add()
 * for every token of the text that is not in the states yet, and for every row of the batch.
 * Finally call end(). add() returns the new entry. In its path, this entry follows entry
 * `parent`, or the state in memory if parent = -1. The first `text` entries are tokens of
 * the committed text, and the last `rows` entries are rows of the batch. The arrays of the plan
 * must have room for all entries. */
void esp_state_plan_begin(struct esp_state_plan *plan);
int esp_state_plan_add(struct esp_state_plan *plan, int parent);
void esp_state_plan_end(struct esp_state_plan *plan, int text, int rows);

/* Plans the pass of a batch. The plan begins after the cache's first `folded` tokens. The batch
 * may have no rows. Returns false if the states already include tokens after the batch's
 * prefix. Also returns false if a token is missing in the states and its input is no longer
 * stored. */
bool esp_state_plan_make(struct esp_state_plan *plan, const struct esp_cache *cache,
                         const struct esp_batch *batch);
/* Returns whether esp_state_plan_make() would succeed. Changes nothing. */
bool esp_state_plan_fits(const struct esp_state_plan *plan, const struct esp_cache *cache,
                         const struct esp_batch *batch);

/* Returns the entry of a row of the batch. */
static inline int esp_state_plan_entry(const struct esp_state_plan *plan, int row)
{
    return plan->entries - plan->rows + row;
}

/* Returns whether keep() moves the input of token `from` to the slot of token `to`. Both tokens
 * are counted from the start of the text. */
static inline bool esp_state_plan_moves(int64_t from, int64_t to, int folded, int room)
{
    return from != to && to >= folded && from < (int64_t)folded + room;
}

#ifdef __cplusplus
}
#endif
#endif
