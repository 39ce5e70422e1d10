/* text_token.h - describes a token of a text, and says where the token came from.
 *
 * The index of a recording and the snapshots for the interface store the text in this form.
 */
#ifndef ESP_TEXT_TOKEN_H
#define ESP_TEXT_TOKEN_H

#include <stdint.h>

#include "engine/espalier_event.h"

enum esp_text_kind {
    ESP_TEXT_PROMPT,  /* the user wrote it */
    ESP_TEXT_DRAFTED, /* the drafter proposed it, and the verifier accepted it */
    ESP_TEXT_BONUS,   /* the target model chose it */
    ESP_TEXT_MARK,    /* a control token that the chat format puts around messages */
    ESP_TEXT_CHOSEN,  /* the user chose or wrote it to begin a branch in an answer */
};

struct esp_text_token {
    int32_t token;
    uint8_t kind; /* enum esp_text_kind */
};

/* An event adds some tokens to the text. Returns the kind of the token with this index. */
static inline enum esp_text_kind esp_text_kind_of(const struct esp_event *event, int index)
{
    const struct esp_iteration *it = event->iteration;
    if (event->type == ESP_EVENT_PROMPT)
        return index < event->marks || index >= event->token_count - event->marks_after
                   ? ESP_TEXT_MARK
                   : ESP_TEXT_PROMPT;
    if (it->ends_turn && index == it->committed_count - 1)
        return ESP_TEXT_MARK;
    return index < it->path_length ? ESP_TEXT_DRAFTED : ESP_TEXT_BONUS;
}

#endif
