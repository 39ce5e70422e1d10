/* safe.h - turns any bytes into something a terminal can only show, never obey.
 *
 * Token text, paths and error texts may hold anything: escape sequences, bidirectional
 * overrides, zero-width characters, half a UTF-8 sequence. The canvas draws text through this
 * file alone, so that nothing else needs to think of it. What cannot be shown as it is gets a
 * visible stand-in:
 *
 *     C0 controls, DEL             ^A ^[ ^?
 *     newline, tab, return, \      \n \t \r \\      only inside quotes (ESP_SAFE_QUOTED)
 *     C1, format, bidirectional,
 *     zero-width, unassigned       <U+202E>
 *     bytes that are not UTF-8     <E2>
 *     a combining mark alone       on a dotted circle
 */
#ifndef ESP_SAFE_H
#define ESP_SAFE_H

#include <stdbool.h>
#include <stddef.h>

enum { ESP_SAFE_QUOTED = 1, ESP_SAFE_ASCII = 2 };

/* One unit of text to show: a character with its combining marks (width 1 or 2), or an ASCII
 * stand-in (width = its length). Safe to write to a terminal. */
struct esp_shown {
    char text[20];
    int width;
    bool stand_in;
};

/* Takes the next unit off `bytes`; returns how many bytes it took (0 only if length is 0). */
size_t esp_safe_next(const char *bytes, size_t length, int flags, struct esp_shown *shown);

/* Columns that the bytes take. */
int esp_safe_width(const char *bytes, size_t length, int flags);

/* Prints "espalier: ", the sentence and a newline on standard error; what it quotes may hold
 * anything. */
void esp_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
