/* ring.h - a ring buffer of snapshots from the engine thread to the UI thread.
 *
 * There is one writer and one reader. All slots are allocated at the start, with room for the
 * largest tree. A slow reader does not block the writer. When the ring is full:
 *
 * - Iterations are merged into one pending snapshot, which is written when a slot is free.
 * - Partial trees (layer and stage events) are dropped; the next one replaces them.
 * - Everything else (end of generation, settings, errors) uses reserved slots. It is never
 *   lost or reordered. The writer waits only when these slots are full, too.
 */
#ifndef ESP_RING_H
#define ESP_RING_H

#include "tui/model/snapshot.h"

struct esp_ring;

/* Makes a ring of `slots` snapshots with trees of up to `nodes` nodes. Returns 0 or
 * ESP_E_MEMORY. */
int esp_ring_open(struct esp_ring **ring, int slots, int nodes);
void esp_ring_close(struct esp_ring *ring);

/* ---- writer */

/* Writes an event. `second` says that it is an iteration of the compared session; it is merged
 * only with others of that session. Returns 0 or ESP_E_MEMORY. */
int esp_ring_write_event(struct esp_ring *ring, const struct esp_event *event, bool second);
/* Returns an emptied slot for a snapshot that is not an event, or NULL if the reader has left.
 * Fill it, then publish it. */
struct esp_snapshot *esp_ring_write(struct esp_ring *ring, int type);
void esp_ring_publish(struct esp_ring *ring);

/* ---- reader */

/* The oldest snapshot, or NULL. esp_ring_pop() frees its slot. */
const struct esp_snapshot *esp_ring_front(struct esp_ring *ring);
void esp_ring_pop(struct esp_ring *ring);
/* Says that the reader stops reading; a waiting writer then gives up. */
void esp_ring_leave(struct esp_ring *ring);

#endif
