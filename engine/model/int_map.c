/* int_map.c - see int_map.h. */
#include "int_map.h"

#include <stdlib.h>
#include <string.h>

/* The finalizer of splitmix64: every bit of the key reaches the low bits that choose the slot.
 */
static size_t mix(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebull;
    return (size_t)(key ^ (key >> 31));
}

bool esp_int_map_init(struct esp_int_map *map, size_t count)
{
    size_t capacity = 16;
    while (capacity < 2 * count)
        capacity *= 2;
    map->mask = capacity - 1;
    map->entries = malloc(capacity * sizeof *map->entries);
    if (map->entries)
        memset(map->entries, 0xff, capacity * sizeof *map->entries);
    return map->entries != NULL;
}

void esp_int_map_free(struct esp_int_map *map)
{
    free(map->entries);
    map->entries = NULL;
}

static struct esp_int_entry *find(const struct esp_int_map *map, uint64_t key)
{
    size_t slot = mix(key) & map->mask;
    while (map->entries[slot].key != key && map->entries[slot].key != ESP_INT_MAP_NONE)
        slot = (slot + 1) & map->mask;
    return &map->entries[slot];
}

uint64_t esp_int_map_get(const struct esp_int_map *map, uint64_t key)
{
    return map->entries ? find(map, key)->value : ESP_INT_MAP_NONE;
}

void esp_int_map_put(struct esp_int_map *map, uint64_t key, uint64_t value)
{
    *find(map, key) = (struct esp_int_entry){key, value};
}
