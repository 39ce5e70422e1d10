/* ring.c - a bounded ring with one producer and one consumer. When it is full, it merges
 * snapshots instead of blocking; see ring.h.
 *
 * The counters `written` and `read` only grow. Their difference is the number of snapshots in
 * the ring. The writer changes only `written`, and the reader changes only `read`. Each of them
 * stores its counter with release order when it no longer needs the slot.
 */
#include "tui/model/ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { RESERVED = 4 }; /* number of slots that iterations must leave free */

struct esp_ring {
    struct esp_snapshot *slot; /* (slots) */
    unsigned slots;
    atomic_uint written, read;
    atomic_bool left;
    /* Merged iterations for which there was no free slot. [0] is for the session, and [1] for
     * the compared session. Only the writer uses them. */
    struct esp_snapshot pending[2];
    bool has_pending[2];
};

int esp_ring_open(struct esp_ring **opened, int slots, int nodes)
{
    struct esp_ring *ring = calloc(1, sizeof *ring);
    *opened = NULL;
    if (!ring)
        return ESP_E_MEMORY;
    ring->slots = (unsigned)(slots > 2 * RESERVED ? slots : 2 * RESERVED);
    ring->slot = calloc(ring->slots, sizeof *ring->slot);
    int status = ring->slot ? 0 : ESP_E_MEMORY;
    for (int i = 0; status == 0 && i < 2; i++)
        status = esp_iteration_reserve(&ring->pending[i].iteration, nodes, 3 * nodes);
    for (unsigned i = 0; status == 0 && i < ring->slots; i++)
        status = esp_iteration_reserve(&ring->slot[i].iteration, nodes, 3 * nodes);
    if (status < 0) {
        esp_ring_close(ring);
        return status;
    }
    *opened = ring;
    return 0;
}

void esp_ring_close(struct esp_ring *ring)
{
    if (!ring)
        return;
    for (unsigned i = 0; ring->slot && i < ring->slots; i++)
        esp_snapshot_free(&ring->slot[i]);
    for (int i = 0; i < 2; i++)
        esp_snapshot_free(&ring->pending[i]);
    free(ring->slot);
    free(ring);
}

static unsigned room(struct esp_ring *ring)
{
    return ring->slots - (atomic_load_explicit(&ring->written, memory_order_relaxed) -
                          atomic_load_explicit(&ring->read, memory_order_acquire));
}

static struct esp_snapshot *next_slot(struct esp_ring *ring)
{
    return &ring->slot[atomic_load_explicit(&ring->written, memory_order_relaxed) %
                       ring->slots];
}

void esp_ring_publish(struct esp_ring *ring)
{
    atomic_fetch_add_explicit(&ring->written, 1, memory_order_release);
}

/* Waits for a free slot. Returns false if the reader has left. */
static bool wait_for_room(struct esp_ring *ring)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (room(ring) == 0) {
        if (atomic_load(&ring->left))
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Publishes a pending snapshot by swapping its buffers with the buffers of a free slot. */
static void flush(struct esp_ring *ring, int which)
{
    struct esp_snapshot *slot = next_slot(ring), empty = *slot;
    *slot = ring->pending[which];
    ring->pending[which] = empty;
    esp_iteration_moved(&slot->iteration);
    esp_iteration_moved(&ring->pending[which].iteration);
    ring->has_pending[which] = false;
    esp_ring_publish(ring);
}

struct esp_snapshot *esp_ring_write(struct esp_ring *ring, int type)
{
    for (int i = 0; i < 2; i++) {
        if (!ring->has_pending[i])
            continue;
        if (!wait_for_room(ring))
            return NULL;
        flush(ring, i);
    }
    if (!wait_for_room(ring))
        return NULL;
    struct esp_snapshot *slot = next_slot(ring);
    esp_snapshot_reset(slot, type);
    return slot;
}

int esp_ring_write_event(struct esp_ring *ring, const struct esp_event *event, bool second)
{
    bool iteration = event->type == ESP_EVENT_ITERATION;
    bool partial = event->type == ESP_EVENT_LAYER || event->type == ESP_EVENT_STAGE;
    int status;
    if (partial || iteration) {
        for (int i = 0; i < 2; i++)
            if (ring->has_pending[i] && room(ring) > RESERVED)
                flush(ring, i);
        if (room(ring) <= RESERVED) {
            if (partial)
                return 0;
            struct esp_snapshot *pending = &ring->pending[second];
            status = ring->has_pending[second] ? esp_snapshot_merge(pending, event)
                                               : esp_snapshot_take(pending, event);
            pending->second = second;
            ring->has_pending[second] = status == 0 || ring->has_pending[second];
            return status;
        }
    }
    struct esp_snapshot *slot = esp_ring_write(ring, event->type);
    if (!slot)
        return 0;
    status = esp_snapshot_take(slot, event);
    slot->second = second;
    if (status == 0)
        esp_ring_publish(ring);
    return status;
}

const struct esp_snapshot *esp_ring_front(struct esp_ring *ring)
{
    unsigned read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    if (atomic_load_explicit(&ring->written, memory_order_acquire) == read)
        return NULL;
    return &ring->slot[read % ring->slots];
}

void esp_ring_pop(struct esp_ring *ring)
{
    atomic_fetch_add_explicit(&ring->read, 1, memory_order_release);
}

void esp_ring_leave(struct esp_ring *ring)
{
    atomic_store(&ring->left, true);
}
