/* spans.h - a growing list of spans. A span is a part of a text. */
#ifndef ESP_SPANS_H
#define ESP_SPANS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct esp_span {
    int32_t start, end; /* bytes [start, end) */
    int32_t tag;        /* meaning depends on the function that fills the list */
};

struct esp_spans {
    struct esp_span *items; /* (count) */
    int32_t count, capacity;
};

/* Lists the parts of a text that users wrote. In these parts, neither special tokens nor the
 * tokens listed in `marks` are recognised. `marks` ends with NULL and may be NULL. */
struct esp_literals {
    const struct esp_span *items; /* (count) in ascending order */
    int32_t count;
    const char *const *marks;
};

static inline bool esp_spans_add(struct esp_spans *spans, int32_t start, int32_t end,
                                 int32_t tag)
{
    if (spans->count == spans->capacity) {
        int32_t capacity = spans->capacity ? spans->capacity : 64;
        if (capacity > INT32_MAX / 2)
            return false;
        void *items = realloc(spans->items, 2 * (size_t)capacity * sizeof *spans->items);
        if (!items)
            return false;
        spans->items = items;
        spans->capacity = 2 * capacity;
    }
    spans->items[spans->count++] = (struct esp_span){start, end, tag};
    return true;
}

static inline void esp_spans_free(struct esp_spans *spans)
{
    free(spans->items);
    *spans = (struct esp_spans){0};
}

#endif
