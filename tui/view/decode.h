/* decode.h - decodes terminal input into keys, pastes and mouse events.
 *
 * Handles UTF-8, bracketed paste and the escape sequences of xterm and its relatives, tmux,
 * screen, rxvt and the Linux console. Ignores all bytes of an unknown sequence. The decoder
 * does not use ncurses, because ncurses would read a paste of megabytes byte by byte.
 */
#ifndef ESP_DECODE_H
#define ESP_DECODE_H

#include <stdbool.h>
#include <stddef.h>

struct esp_decoder {
    char pending[64]; /* bytes of a sequence that is not complete yet */
    size_t pending_count;
    bool pasting;
    char *paste;
    size_t paste_count, paste_capacity;
    void *user;
    void (*key)(void *user, int key);
    void (*pasted)(void *user, const char *bytes, size_t count);
    /* True if the terminal was asked for its background colour (OSC 11). The answer is passed
     * to background() as 0xRRGGBB. */
    bool asked;
    void (*background)(void *user, int rgb);
    /* Called for a button or the wheel (mouse.h). x and y count cells from 0. Can be NULL. */
    void (*mouse)(void *user, int button, int x, int y);
};

void esp_decode(struct esp_decoder *decoder, const char *bytes, size_t count);
/* Returns whether a sequence is incomplete. If no byte follows for a short time, the
 * sequence was the key Escape. */
bool esp_decode_waits(const struct esp_decoder *decoder);
/* Handles the pending bytes as single keys. Must be called when no byte has followed for a
 * short time. */
void esp_decode_flush(struct esp_decoder *decoder);
/* Returns whether the pending bytes can be a part of the answer to OSC 11. There can be longer
 * pauses between the parts of this answer. */
bool esp_decode_answers(const struct esp_decoder *decoder);
void esp_decode_free(struct esp_decoder *decoder);

#endif
