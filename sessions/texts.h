/* texts.h - stores token texts and gauge names, which must outlive their events.
 *
 * A recording contains the text of every token in addition to its id, so it can be shown
 * without the models. When an event is read, the texts of its tokens are added to this store.
 * If a token id occurs with several texts, the first text is kept.
 */
#ifndef ESP_TEXTS_H
#define ESP_TEXTS_H

#include "engine/support/int_map.h"

enum { ESP_MAX_NAMES = 256, ESP_NAME_SIZE = 32 };

/* A store of texts and names. A zero-initialised struct is empty. */
struct esp_texts {
    char *bytes; /* (byte_count) all texts, concatenated */
    size_t byte_count, byte_capacity;
    struct esp_text {
        size_t start; /* offset in `bytes` */
        size_t length;
    } * texts; /* (count) */
    int count, capacity;
    struct esp_int_map places;  /* maps a token id to its index in `texts` */
    char *names[ESP_MAX_NAMES]; /* (name_count) */
    int name_count;
};

/* Stores the text of a token, unless the token has one already. Returns 0 or ESP_E_MEMORY. */
int esp_texts_add(struct esp_texts *texts, int32_t token, const char *bytes, size_t length);
/* Returns the text of a token, valid until another text is added, or NULL if the token has
 * none. This function is an esp_token_text; its argument `texts` is a struct esp_texts. */
const char *esp_texts_find(void *texts, int32_t token, size_t *length);
/* Returns a copy of `name` that is valid until esp_texts_free(). Equal names share one copy.
 * Returns NULL if the name is too long or not UTF-8, if there are too many names, or if there
 * is no memory. */
const char *esp_texts_name(struct esp_texts *texts, const char *name);
void esp_texts_free(struct esp_texts *texts);

#endif
