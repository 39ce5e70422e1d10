/* decode.h - decodes terminal input into keys, pastes and mouse events.
 *
 * Handles UTF-8, bracketed paste and the escape sequences of xterm and its relatives, tmux,
 * screen, rxvt and the Linux console. Unknown sequences are dropped whole. The decoder
 * bypasses ncurses because ncurses would read a paste of megabytes byte by byte.
 */
#ifndef ESP_DECODE_H
#define ESP_DECODE_H

#include <stdbool.h>
#include <stddef.h>

struct esp_decoder {
    char pending[64]; /* start of an incomplete sequence */
    size_t pending_count;
    bool pasting;
    char *paste;
    size_t paste_count, paste_capacity;
    void *user;
    void (*key)(void *user, int key);
    void (*pasted)(void *user, const char *bytes, size_t count);
    /* The terminal was asked for its background colour (OSC 11). The answer goes to
     * background(), as 0xRRGGBB. */
    bool asked;
    void (*background)(void *user, int rgb);
    /* A button or the wheel (mouse.h); cells count from 0. May be NULL. */
    void (*mouse)(void *user, int button, int x, int y);
};

void esp_decode(struct esp_decoder *decoder, const char *bytes, size_t count);
/* Returns whether a sequence is incomplete. If nothing follows for a short time, the key was
 * Escape. */
bool esp_decode_waits(const struct esp_decoder *decoder);
/* Takes the pending bytes as single keys. Call it when nothing has followed for that time. */
void esp_decode_flush(struct esp_decoder *decoder);
/* Returns whether the pending bytes may be the answer to OSC 11, which can arrive in pieces with
 * longer pauses between them. */
bool esp_decode_answers(const struct esp_decoder *decoder);
void esp_decode_free(struct esp_decoder *decoder);

#endif
