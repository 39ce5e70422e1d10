/* texts.c - stores the texts of tokens, and finds them with a hash table; see texts.h. */
#include "sessions/texts.h"

#include <stdlib.h>
#include <string.h>

#include "engine/support/utf8_stream.h"
#include "sessions/grow.h"

enum { FIRST_BYTES = 8192 };

static int grow_bytes(struct esp_texts *texts, size_t length)
{
    size_t needed = texts->byte_count + length;
    if (needed <= texts->byte_capacity && texts->bytes)
        return ESP_OK;
    size_t capacity = 2 * needed > FIRST_BYTES ? 2 * needed : FIRST_BYTES;
    char *grown = realloc(texts->bytes, capacity);
    if (!grown)
        return ESP_E_MEMORY;
    texts->bytes = grown;
    texts->byte_capacity = capacity;
    return ESP_OK;
}

static uint64_t place_of(const struct esp_texts *texts, int32_t token)
{
    return esp_int_map_get(&texts->places, (uint32_t)token);
}

int esp_texts_add(struct esp_texts *texts, int32_t token, const char *bytes, size_t length)
{
    if (place_of(texts, token) != ESP_INT_MAP_NONE)
        return ESP_OK;
    if (grow_bytes(texts, length) < 0 ||
        esp_grow(&texts->texts, texts->count, &texts->capacity, sizeof *texts->texts) < 0 ||
        !esp_int_map_put(&texts->places, (uint32_t)token, (uint64_t)texts->count))
        return ESP_E_MEMORY;
    texts->texts[texts->count++] = (struct esp_text){texts->byte_count, length};
    if (length > 0)
        memcpy(texts->bytes + texts->byte_count, bytes, length);
    texts->byte_count += length;
    return ESP_OK;
}

const char *esp_texts_find(void *user, int32_t token, size_t *length)
{
    const struct esp_texts *texts = user;
    uint64_t place = place_of(texts, token);
    if (place == ESP_INT_MAP_NONE)
        return NULL;
    *length = texts->texts[place].length;
    return texts->bytes + texts->texts[place].start;
}

static bool is_utf8(const char *text)
{
    for (int n; *text; text += n)
        if ((n = esp_utf8_sequence(text, strlen(text))) <= 0)
            return false;
    return true;
}

const char *esp_texts_name(struct esp_texts *texts, const char *name)
{
    for (int i = 0; i < texts->name_count; i++)
        if (strcmp(texts->names[i], name) == 0)
            return texts->names[i];
    if (texts->name_count == ESP_MAX_NAMES || strlen(name) >= ESP_NAME_SIZE || !is_utf8(name))
        return NULL;
    char *copy = strdup(name);
    if (copy)
        texts->names[texts->name_count++] = copy;
    return copy;
}

void esp_texts_free(struct esp_texts *texts)
{
    for (int i = 0; i < texts->name_count; i++)
        free(texts->names[i]);
    esp_int_map_free(&texts->places);
    free(texts->texts);
    free(texts->bytes);
    *texts = (struct esp_texts){.count = 0};
}
