/* texts.h - token texts and gauge names that outlive their events.
 *
 * A recording contains the text of every token in addition to its id, so that it can be shown
 * without the models. The texts are collected here as events are read; if an id has several
 * texts, the first one is kept.
 */
#ifndef ESP_TEXTS_H
#define ESP_TEXTS_H

#include "engine/support/int_map.h"

enum { ESP_MAX_NAMES = 256, ESP_NAME_SIZE = 32 };

/* A zero-initialised struct is empty. */
struct esp_texts {
    char *bytes; /* (byte_count) of all texts, concatenated */
    size_t byte_count, byte_capacity;
    struct esp_text {
        size_t start; /* place in `bytes` */
        size_t length;
    } * texts; /* (count) */
    int count, capacity;
    struct esp_int_map places;  /* maps a token to its index in `texts` */
    char *names[ESP_MAX_NAMES]; /* (name_count) */
    int name_count;
};

/* Returns 0 or ESP_E_MEMORY. */
int esp_texts_add(struct esp_texts *texts, int32_t token, const char *bytes, size_t length);
/* Returns the text, valid until another is added, or NULL. This is an esp_token_text. */
const char *esp_texts_find(void *texts, int32_t token, size_t *length);
/* Returns a copy of `name` that lives as long as `texts`; equal names get the same copy. NULL
 * if the name is too long or not UTF-8, if there are too many names, or if there is no memory.
 */
const char *esp_texts_name(struct esp_texts *texts, const char *name);
void esp_texts_free(struct esp_texts *texts);

#endif
