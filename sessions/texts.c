/* texts.c - a hash table from tokens to bytes, with linear probing; see texts.h. */
#include "texts.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ENTRIES = 1024, FIRST_BYTES = 8192 };

/* The entry of a token, or the free one where it would be. */
static struct esp_text_entry *find(const struct esp_texts *texts, int32_t token)
{
    size_t at = ((uint32_t)token * 0x9e3779b97f4a7c15u) >> 20;
    for (;; at++) {
        struct esp_text_entry *entry = &texts->entries[at & texts->mask];
        if (entry->start == 0 || entry->token == token)
            return entry;
    }
}

static int grow_table(struct esp_texts *texts)
{
    struct esp_texts grown = *texts;
    size_t before = texts->entries ? texts->mask + 1 : 0;
    size_t count = before ? 2 * before : FIRST_ENTRIES;
    grown.entries = calloc(count, sizeof *grown.entries);
    if (!grown.entries)
        return ESP_E_MEMORY;
    grown.mask = count - 1;
    for (size_t i = 0; i < before; i++)
        if (texts->entries[i].start > 0)
            *find(&grown, texts->entries[i].token) = texts->entries[i];
    free(texts->entries);
    *texts = grown;
    return ESP_OK;
}

static int grow_bytes(struct esp_texts *texts, size_t length)
{
    size_t needed = texts->byte_count + length;
    if (needed <= texts->byte_capacity)
        return ESP_OK;
    size_t capacity = 2 * needed > FIRST_BYTES ? 2 * needed : FIRST_BYTES;
    char *grown = realloc(texts->bytes, capacity);
    if (!grown)
        return ESP_E_MEMORY;
    texts->bytes = grown;
    texts->byte_capacity = capacity;
    return ESP_OK;
}

int esp_texts_add(struct esp_texts *texts, int32_t token, const char *bytes, size_t length)
{
    if (texts->entries && find(texts, token)->start > 0)
        return ESP_OK;
    if (length > UINT32_MAX || grow_bytes(texts, length) < 0)
        return ESP_E_MEMORY;
    if ((!texts->entries || 2 * (texts->taken + 1) > texts->mask) && grow_table(texts) < 0)
        return ESP_E_MEMORY;
    *find(texts, token) =
        (struct esp_text_entry){token, (uint32_t)length, texts->byte_count + 1};
    if (length > 0)
        memcpy(texts->bytes + texts->byte_count, bytes, length);
    texts->byte_count += length;
    texts->taken++;
    return ESP_OK;
}

const char *esp_texts_find(void *user, int32_t token, size_t *length)
{
    const struct esp_texts *texts = user;
    const struct esp_text_entry *entry = texts->entries ? find(texts, token) : NULL;
    if (!entry || entry->start == 0)
        return NULL;
    *length = entry->length;
    return texts->bytes ? texts->bytes + entry->start - 1 : "";
}

const char *esp_texts_name(struct esp_texts *texts, const char *name)
{
    for (int i = 0; i < texts->name_count; i++)
        if (strcmp(texts->names[i], name) == 0)
            return texts->names[i];
    if (texts->name_count == ESP_MAX_NAMES || strlen(name) >= ESP_NAME_SIZE)
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
    free(texts->entries);
    free(texts->bytes);
    *texts = (struct esp_texts){.mask = 0};
}
