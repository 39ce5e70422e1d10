/* json_line.h - writes one line of JSON into memory.
 *
 * A recording is written during the session, between two iterations. A cJSON tree for every
 * event, printed with 17 digits for each float, would take ten times as long. Members are
 * written in order; commas are added automatically.
 */
#ifndef ESP_JSON_LINE_H
#define ESP_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. */
struct esp_line {
    char *text; /* (length) */
    size_t length, capacity;
    bool comma;  /* the next member needs one before it */
    bool failed; /* no memory; nothing more is written */
};

/* Values; `name` is the member's name, NULL in an array. */
void esp_line_open(struct esp_line *line, const char *name, char bracket); /* '{' or '[' */
void esp_line_close(struct esp_line *line, char bracket);                  /* '}' or ']' */
void esp_line_integer(struct esp_line *line, const char *name, int64_t value);
/* Nothing is written if the value is not finite. */
void esp_line_float(struct esp_line *line, const char *name, float value);
void esp_line_double(struct esp_line *line, const char *name, double value);
void esp_line_flag(struct esp_line *line, const char *name, bool value);
/* Any bytes; invalid UTF-8 becomes U+FFFD. Returns whether the string reads back as these
 * bytes. */
bool esp_line_string(struct esp_line *line, const char *name, const char *bytes, size_t length);
void esp_line_hex(struct esp_line *line, const char *name, const char *bytes, size_t length);
/* Ends the line, so that another may follow. */
void esp_line_newline(struct esp_line *line);
void esp_line_free(struct esp_line *line);

#endif
