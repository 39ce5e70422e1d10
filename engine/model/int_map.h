/* int_map.h - a hash table from 64-bit keys to 64-bit values, filled once and then only read.
 *
 * Open addressing with linear probing, at most half full. The number of entries is known before
 * the table is made, so it never grows. Reading is thread-safe.
 */
#ifndef ESP_INT_MAP_H
#define ESP_INT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ESP_INT_MAP_NONE UINT64_MAX /* neither a key nor a value */

struct esp_int_map {
    struct esp_int_entry {
        uint64_t key, value;
    } * entries; /* (mask + 1) */
    size_t mask; /* a power of two minus 1 */
};

/* Room for `count` keys; false if there is no memory. */
bool esp_int_map_init(struct esp_int_map *map, size_t count);
void esp_int_map_free(struct esp_int_map *map);

/* The value, or ESP_INT_MAP_NONE. A map that is all zero holds nothing. */
uint64_t esp_int_map_get(const struct esp_int_map *map, uint64_t key);
/* Replaces the value if the key is there. */
void esp_int_map_put(struct esp_int_map *map, uint64_t key, uint64_t value);

#endif
