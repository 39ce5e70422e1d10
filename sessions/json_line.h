/* json_line.h - writes one line of JSON into memory.
 *
 * A recording is written during the session, between two iterations, so this must be fast.
 * Building a cJSON tree for every event, and printing every float with 17 digits, would take
 * ten times as long. Members are written in the order of the calls. Commas are added
 * automatically.
 */
#ifndef ESP_JSON_LINE_H
#define ESP_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line that is being written. A zero-initialised struct is an empty line. */
struct esp_line {
    char *text; /* (length) */
    size_t length, capacity;
    bool comma;  /* the next member needs a comma before it */
    bool failed; /* there was no memory; later calls write nothing */
};

/* Each of these functions writes a value. `name` is the name of the member, or NULL in an
 * array. */
void esp_line_open(struct esp_line *line, const char *name, char bracket); /* '{' or '[' */
void esp_line_close(struct esp_line *line, char bracket);                  /* '}' or ']' */
void esp_line_integer(struct esp_line *line, const char *name, int64_t value);
/* esp_line_float() and esp_line_double() write nothing if the value is not finite. */
void esp_line_float(struct esp_line *line, const char *name, float value);
void esp_line_double(struct esp_line *line, const char *name, double value);
void esp_line_flag(struct esp_line *line, const char *name, bool value);
/* Writes any bytes as a string. Invalid UTF-8 becomes U+FFFD. Returns true if reading the
 * string gives the same bytes. */
bool esp_line_string(struct esp_line *line, const char *name, const char *bytes, size_t length);
void esp_line_hex(struct esp_line *line, const char *name, const char *bytes, size_t length);
/* Ends the line with a newline. Another line can follow. */
void esp_line_newline(struct esp_line *line);
void esp_line_free(struct esp_line *line);

#endif
