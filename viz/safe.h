/* safe.h - makes any bytes safe to print on a terminal.
 *
 * Token text, paths and error texts may contain anything: escape sequences, bidirectional
 * overrides, zero-width characters, half a UTF-8 sequence. The canvas draws text only through
 * these functions, so no other code has to check it. Unprintable parts are replaced by a
 * visible stand-in:
 *
 *     C0 controls, DEL             ^A ^[ ^?
 *     newline, tab, return, \      \n \t \r \\      only with ESP_SAFE_ESCAPED
 *     "                            \"               only inside quotes (ESP_SAFE_QUOTED)
 *     C1, format, bidirectional,
 *     zero-width, unassigned       <U+202E>
 *     bytes that are not UTF-8     <E2>
 *     lone combining mark          the mark on a dotted circle
 */
#ifndef ESP_SAFE_H
#define ESP_SAFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    ESP_SAFE_ESCAPED = 1, /* for text in one line */
    ESP_SAFE_ASCII = 2,
    ESP_SAFE_QUOTED = ESP_SAFE_ESCAPED | 4, /* for text in one line between double quotes */
};

/* A unit of text to show: a character with its combining marks (width 1 or 2), or an ASCII
 * stand-in (its width is its length). It is safe to write to a terminal. */
struct esp_safe_unit {
    char text[20];
    int width;
    bool stand_in;
};

/* Reads the next unit from `bytes`; returns how many bytes it takes (0 only if length is 0).
 * This function is async-signal-safe. */
size_t esp_safe_next(const char *bytes, size_t length, int flags, struct esp_safe_unit *shown);

/* Returns the number of columns that the bytes take. */
int esp_safe_width(const char *bytes, size_t length, int flags);

/* Writes text of several lines: newlines and tabs are written unchanged. */
void esp_safe_write(FILE *file, const char *bytes, size_t length);
/* Like printf(), but the output is safe for any string arguments: their newlines and tabs also
 * get stand-ins. Writes nothing if memory runs out. */
void esp_safe_print(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes equivalent JSON that is safe on a terminal. Characters that have a stand-in in the
 * list above become escapes (\u202e). Bytes that are not UTF-8 become U+FFFD. Control
 * characters between strings, except newlines and tabs, become blanks. */
void esp_safe_json(FILE *file, const char *json, size_t length);

/* Writes a string as the text of an XML element or attribute; flags: ESP_SAFE_*. */
void esp_safe_xml(FILE *file, const char *text, int flags);

/* Prints "espalier: ", the message and a newline on standard error. Arguments may contain any
 * bytes. */
void esp_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
