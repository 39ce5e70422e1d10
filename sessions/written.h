/* written.h - a token of the text, with its origin and score. */
#ifndef ESP_WRITTEN_H
#define ESP_WRITTEN_H

#include "engine/text_token.h"

/* Values of `iteration` that are not an index. FORGOTTEN: an iteration wrote the token, but its
 * index is no longer known. */
enum { ESP_BY_NO_ITERATION = -1, ESP_BY_FORGOTTEN = -2 };

struct esp_written {
    int32_t token;
    int32_t iteration; /* index of the iteration that wrote it, or one of the above */
    uint8_t kind;      /* enum esp_text_kind */
    struct esp_token_score score; /* count = 0: not known */
};

#endif
