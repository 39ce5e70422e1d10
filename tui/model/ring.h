/* ring.h - a ring buffer that passes snapshots from the engine thread to the UI thread.
 *
 * There is one writer and one reader. All slots are allocated at the start, with room for the
 * largest tree. A slow reader does not block the writer. When the ring is full:
 *
 * - Iterations are merged into one pending snapshot, which is written when a slot is free.
 * - Partial trees (layer and stage events) are dropped, because the next tree replaces them.
 * - All other snapshots (end of generation, settings, errors) use reserved slots. They are
 *   never lost or reordered. The writer waits only when these slots are full, too.
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

/* Writes an event. If `second` is true, the event is an iteration of the compared session, and
 * is merged only with other iterations of that session. Returns 0 or ESP_E_MEMORY. */
int esp_ring_write_event(struct esp_ring *ring, const struct esp_event *event, bool second);
/* Returns an empty slot for a snapshot that is not an event, or NULL if the reader has left.
 * The caller must fill the slot and then publish it. */
struct esp_snapshot *esp_ring_write(struct esp_ring *ring, int type);
void esp_ring_publish(struct esp_ring *ring);

/* ---- reader */

/* Returns the oldest snapshot, or NULL. esp_ring_pop() frees its slot. */
const struct esp_snapshot *esp_ring_front(struct esp_ring *ring);
void esp_ring_pop(struct esp_ring *ring);
/* The reader calls this when it stops reading. Then the writer no longer waits for a slot. */
void esp_ring_leave(struct esp_ring *ring);

#endif
