/* pass_order.h - serialises a batch for the ranks that run it together with rank 0. */
#ifndef ESP_CPU_PASS_ORDER_H
#define ESP_CPU_PASS_ORDER_H

#include "kernels/cpu/cpu.h"

/* Writes a batch that fits the cache to cache->order and returns its bytes. */
size_t esp_pass_order_write(struct esp_cpu_cache *cache, const struct esp_batch *batch);

/* Holds a batch that was read from an order. Its matrices of logits and hidden states have no
 * memory, because only rank 0 stores logits and hidden states. */
struct esp_pass_copy {
    struct esp_batch batch;
    struct esp_window window;
    struct esp_states states;
    struct esp_cpu_rows logits, hidden;
    int wanted; /* number of rows with logits */
};

/* Reads a batch. Pointers in the copy point into `bytes`, which must be aligned. Returns false
 * if the bytes are not a batch that fits this cache. */
bool esp_pass_order_read(struct esp_pass_copy *copy, const struct esp_cpu_cache *cache,
                         const void *bytes, size_t size);

#endif
