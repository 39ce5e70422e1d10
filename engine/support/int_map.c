/* int_map.c - see int_map.h. */
#include "engine/support/int_map.h"

#include <stdlib.h>
#include <string.h>

bool esp_int_map_init(struct esp_int_map *map, size_t count)
{
    size_t capacity = 16;
    while (capacity / 2 < count) {
        if (capacity > SIZE_MAX / 2 / sizeof *map->entries)
            return false;
        capacity *= 2;
    }
    *map = (struct esp_int_map){.mask = capacity - 1, .key = esp_hash_key()};
    map->entries = malloc(capacity * sizeof *map->entries);
    if (map->entries)
        memset(map->entries, 0xff, capacity * sizeof *map->entries);
    return map->entries != NULL;
}

void esp_int_map_free(struct esp_int_map *map)
{
    free(map->entries);
    *map = (struct esp_int_map){.mask = 0};
}

/* Returns the entry of a key, or the free entry where it would be stored. */
static struct esp_int_entry *find(const struct esp_int_map *map, uint64_t key)
{
    size_t slot = (size_t)esp_hash_number(map->key, key) & map->mask;
    while (map->entries[slot].key != key && map->entries[slot].key != ESP_INT_MAP_NONE)
        slot = (slot + 1) & map->mask;
    return &map->entries[slot];
}

static bool grow(struct esp_int_map *map)
{
    struct esp_int_map grown;
    if (!esp_int_map_init(&grown, 2 * map->count + 1))
        return false;
    for (size_t i = 0; map->entries && i <= map->mask; i++)
        if (map->entries[i].key != ESP_INT_MAP_NONE)
            *find(&grown, map->entries[i].key) = map->entries[i];
    grown.count = map->count;
    free(map->entries);
    *map = grown;
    return true;
}

uint64_t esp_int_map_get(const struct esp_int_map *map, uint64_t key)
{
    return map->entries ? find(map, key)->value : ESP_INT_MAP_NONE;
}

bool esp_int_map_put(struct esp_int_map *map, uint64_t key, uint64_t value)
{
    struct esp_int_entry *entry = map->entries ? find(map, key) : NULL;
    if (!entry || entry->key != key) {
        if (!entry || 2 * map->count > map->mask) {
            if (!grow(map))
                return false;
            entry = find(map, key);
        }
        map->count++;
    }
    *entry = (struct esp_int_entry){key, value};
    return true;
}
