/* ring.h - snapshots on their way from the engine's thread to the interface's.
 *
 * One thread writes, one reads. The slots are allocated once, with room for the largest tree.
 * The writer never waits for a reader that is merely slow: when the ring is full, iterations
 * are merged into one pending snapshot, which goes out with the next one that finds room, and
 * partial trees (layer and stage events) are dropped, as the next one supersedes them. A few
 * slots are kept for everything else (end of generation, settings, errors), which must neither
 * be lost nor reordered. The writer waits only if those slots are taken, too.
 */
#ifndef ESP_RING_H
#define ESP_RING_H

#include "tui/model/snapshot.h"

struct esp_ring;

/* Room for `slots` snapshots of trees of `nodes` nodes. Returns 0 or ESP_E_MEMORY. */
int esp_ring_open(struct esp_ring **ring, int slots, int nodes);
void esp_ring_close(struct esp_ring *ring);

/* The writer's side. */
int esp_ring_write_event(struct esp_ring *ring, const struct esp_event *event);
/* The same for an iteration of the session that is compared with; merged only with its own. */
int esp_ring_write_second(struct esp_ring *ring, const struct esp_event *event);
/* A slot for a snapshot that is no event, zeroed but for its buffers: fill it, then publish.
 * NULL if the reader has left. */
struct esp_snapshot *esp_ring_write(struct esp_ring *ring, int type);
void esp_ring_publish(struct esp_ring *ring);

/* The reader's side: the oldest snapshot, or NULL; pop gives its slot back. */
const struct esp_snapshot *esp_ring_front(struct esp_ring *ring);
void esp_ring_pop(struct esp_ring *ring);
/* The reader will not read any more: a waiting writer gives up. */
void esp_ring_leave(struct esp_ring *ring);

#endif
