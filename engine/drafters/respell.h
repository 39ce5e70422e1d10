/* respell.h - declares what drafter `respell` needs to know about two models with different
 * vocabularies. */
#ifndef ESP_RESPELL_H
#define ESP_RESPELL_H

#include "engine/model/translation.h"
#include "kernels/kernels.h"

struct esp_respelling {
    struct esp_language target, draft;
    struct esp_rows *logits; /* (1, the draft's vocabulary) logits of the last draft pass */
};

#endif
