/* json_line.h - writes one line of JSON into memory.
 *
 * A recording is written during the session, between two iterations. Building a cJSON tree for
 * every event, and printing every float with 17 digits, would take ten times as long. Members
 * are written in order; commas are added automatically.
 */
#ifndef ESP_JSON_LINE_H
#define ESP_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A zero-initialised struct is an empty line. */
struct esp_line {
    char *text; /* (length) */
    size_t length, capacity;
    bool comma;  /* the next member needs a comma before it */
    bool failed; /* memory ran out, so nothing more is written */
};

/* Each of these functions writes a value. `name` is the name of the member, or NULL in an
 * array. */
void esp_line_open(struct esp_line *line, const char *name, char bracket); /* '{' or '[' */
void esp_line_close(struct esp_line *line, char bracket);                  /* '}' or ']' */
void esp_line_integer(struct esp_line *line, const char *name, int64_t value);
/* These write nothing if the value is not finite. */
void esp_line_float(struct esp_line *line, const char *name, float value);
void esp_line_double(struct esp_line *line, const char *name, double value);
void esp_line_flag(struct esp_line *line, const char *name, bool value);
/* Writes any bytes as a string; invalid UTF-8 becomes U+FFFD. Returns whether reading the
 * string gives the same bytes. */
bool esp_line_string(struct esp_line *line, const char *name, const char *bytes, size_t length);
void esp_line_hex(struct esp_line *line, const char *name, const char *bytes, size_t length);
/* Ends the line, so that another may follow. */
void esp_line_newline(struct esp_line *line);
void esp_line_free(struct esp_line *line);

#endif
