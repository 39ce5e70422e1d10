/* json_values.h - reads one line of JSON into memory that is used again.
 *
 * Opening a recording checks every line of it, with hundreds of values each. A cJSON tree
 * allocates every value and every name, which took most of the time. Here the values of a line
 * stand in one array, in the order of the text: what is inside an array or an object follows
 * it. Strings lie in a copy of the line, their escapes replaced.
 */
#ifndef ESP_JSON_VALUES_H
#define ESP_JSON_VALUES_H

#include <stddef.h>
#include <stdint.h>

enum esp_value_kind {
    ESP_VALUE_NULL,
    ESP_VALUE_FALSE,
    ESP_VALUE_TRUE,
    ESP_VALUE_NUMBER,
    ESP_VALUE_STRING,
    ESP_VALUE_ARRAY,
    ESP_VALUE_OBJECT,
};

struct esp_value {
    enum esp_value_kind kind;
    uint32_t span;    /* values up to the next one beside it: itself and all inside it */
    const char *name; /* of a member; NULL in an array */
    union {
        double number;
        char *text; /* ends at its first NUL */
    };
};

/* Zeroed: empty; its memory is used again. */
struct esp_values {
    struct esp_value *values; /* (count) the first is the whole */
    size_t count, capacity;
    char *copy; /* (room) of the line */
    size_t room;
};

/* Reads a line that is one value, in which brackets nest at most `depth` deep. Returns 0, or
 * ESP_E_FORMAT if it is none, or ESP_E_MEMORY. Control characters are let through, within
 * strings and between values. */
int esp_values_read(struct esp_values *json, const char *line, size_t length, int depth);
void esp_values_free(struct esp_values *json);

/* The member of an object; NULL if there is none, or if this is no object (or NULL). */
const struct esp_value *esp_value_member(const struct esp_value *object, const char *name);

/* What is inside an array or an object (or NULL, which has nothing inside):
 *     for (item = esp_value_first(list); item; item = esp_value_next(list, item)) */
const struct esp_value *esp_value_first(const struct esp_value *list);
const struct esp_value *esp_value_next(const struct esp_value *list,
                                       const struct esp_value *item);

#endif
