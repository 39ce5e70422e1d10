/* int_map.h - implements a hash table from 64-bit keys to 64-bit values.
 *
 * The table uses open addressing with linear probing. It is at most half full and grows by
 * doubling. Keys are untrusted; hash.h says why nobody can make them collide. Reading is
 * thread-safe.
 */
#ifndef ESP_INT_MAP_H
#define ESP_INT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/support/hash.h"

#define ESP_INT_MAP_NONE UINT64_MAX /* means no value; cannot be a key or a value */

/* A zero-initialised map is valid and empty. */
struct esp_int_map {
    struct esp_int_entry {
        uint64_t key, value;
    } * entries; /* (mask + 1) */
    size_t mask; /* a power of two minus 1 */
    size_t count;
    struct esp_hash_key key;
};

/* Makes room for `count` keys. Returns false if there is no memory. */
bool esp_int_map_init(struct esp_int_map *map, size_t count);
void esp_int_map_free(struct esp_int_map *map);

/* Returns the value of a key, or ESP_INT_MAP_NONE. */
uint64_t esp_int_map_get(const struct esp_int_map *map, uint64_t key);
/* Adds a key, or replaces its value. Returns false if there is no memory, which cannot happen
 * for the first `count` keys after esp_int_map_init(). */
bool esp_int_map_put(struct esp_int_map *map, uint64_t key, uint64_t value);

#endif
