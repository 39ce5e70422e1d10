/* text_token.h - a token of a text that was written, and who chose it.
 *
 * The index of a recording holds the text as such tokens, and so do the snapshots that the
 * interface draws from.
 */
#ifndef ESP_TEXT_TOKEN_H
#define ESP_TEXT_TOKEN_H

#include <stdint.h>

#include "engine/espalier_event.h"

enum esp_text_kind {
    ESP_TEXT_PROMPT,  /* the user wrote it */
    ESP_TEXT_DRAFTED, /* the drafter proposed it, and the verifier accepted it */
    ESP_TEXT_BONUS,   /* the target model chose it */
    ESP_TEXT_MARK,    /* part of the chat format around what the user and the model said */
};

struct esp_text_token {
    int32_t token;
    uint8_t kind; /* enum esp_text_kind */
};

/* The kind of token `index` of those that an event adds to the text. */
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
