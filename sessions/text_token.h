/* text_token.h - a token of a text that was written, and who chose it.
 *
 * The index of a recording holds the text as such tokens, and so do the snapshots that the
 * interface draws from.
 */
#ifndef ESP_TEXT_TOKEN_H
#define ESP_TEXT_TOKEN_H

#include <stdint.h>

enum esp_text_kind {
    ESP_TEXT_PROMPT,  /* the user wrote it */
    ESP_TEXT_DRAFTED, /* the drafter proposed it, and the verifier accepted it */
    ESP_TEXT_BONUS,   /* the target model chose it */
};

struct esp_text_token {
    int32_t token;
    uint8_t kind; /* enum esp_text_kind */
};

#endif
