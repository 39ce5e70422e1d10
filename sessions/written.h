/* written.h - describes a token of the text, with the iteration that wrote it and its score. */
#ifndef ESP_WRITTEN_H
#define ESP_WRITTEN_H

#include "engine/text_token.h"

/* Special values of `iteration`. NO_ITERATION: no iteration wrote the token. FORGOTTEN: an
 * iteration wrote the token, but the index of this iteration is no longer known. */
enum { ESP_BY_NO_ITERATION = -1, ESP_BY_FORGOTTEN = -2 };

struct esp_written {
    int32_t token;
    int32_t iteration;            /* index of the token's iteration, or a special value */
    uint8_t kind;                 /* enum esp_text_kind */
    struct esp_token_score score; /* score.count is 0 if the score is not known */
};

#endif
