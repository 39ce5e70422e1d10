/* decode.h - the bytes a terminal sends, as keys and pastes.
 *
 * Knows UTF-8, the escape sequences that xterm and its kin, tmux, screen, rxvt and the Linux
 * console send, and bracketed paste. Sequences it does not know are dropped whole. Reading the
 * bytes without ncurses lets a paste of megabytes come in by the block instead of by the byte.
 */
#ifndef ESP_DECODE_H
#define ESP_DECODE_H

#include <stdbool.h>
#include <stddef.h>

struct esp_decoder {
    char pending[64]; /* the start of a key whose rest has not come yet */
    size_t pending_count;
    bool pasting;
    char *paste;
    size_t paste_count, paste_capacity;
    void *user;
    void (*key)(void *user, int key);
    void (*pasted)(void *user, const char *bytes, size_t count);
    /* An answer to "what is your background" (OSC 11) is awaited; then its colour goes to
     * background(), as 0xRRGGBB. */
    bool asked;
    void (*background)(void *user, int rgb);
    /* A button or the wheel, at a cell counted from 0 (mouse.h). May be NULL. */
    void (*mouse)(void *user, int button, int x, int y);
};

void esp_decode(struct esp_decoder *decoder, const char *bytes, size_t count);
/* Whether a key has begun and its rest has not come: after a short silence it was Escape. */
bool esp_decode_waits(const struct esp_decoder *decoder);
/* To be called after that silence: takes what is pending as it is. */
void esp_decode_flush(struct esp_decoder *decoder);
/* Whether what is pending may be that answer, which may come in pieces with longer pauses. */
bool esp_decode_answers(const struct esp_decoder *decoder);
void esp_decode_free(struct esp_decoder *decoder);

#endif
