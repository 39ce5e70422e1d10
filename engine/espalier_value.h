/* espalier_value.h - reads, writes and checks a value in a struct whose members are described
 * by a table.
 *
 * There are tables for the settings of a session, the options of an engine and the flags of
 * the program.
 */
#ifndef ESPALIER_VALUE_H
#define ESPALIER_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of values. The macros below give the C type of each kind. */
enum esp_value_kind {
    ESP_KIND_real,
    ESP_KIND_share,  /* a real number that must exceed the minimum */
    ESP_KIND_whole,  /* up to 2^31 - 1 */
    ESP_KIND_seed,   /* up to 2^64 - 1 */
    ESP_KIND_choice, /* index of one of the words in `values`, from 0 */
    ESP_KIND_flag,
    ESP_KIND_either, /* false for the first of two words, true for the second */
    ESP_KIND_size,   /* bytes: 600M, 1.5G */
    ESP_KIND_text,   /* NULL means the default. The text itself is not copied */
};
#define ESP_VALUE_real double
#define ESP_VALUE_share double
#define ESP_VALUE_whole int
#define ESP_VALUE_seed uint64_t
#define ESP_VALUE_choice int
#define ESP_VALUE_flag bool
#define ESP_VALUE_either bool
#define ESP_VALUE_size size_t
#define ESP_VALUE_text const char *

struct esp_value_info {
    const char *name;
    enum esp_value_kind kind;
    /* What a user may type: words separated by '|', and perhaps a placeholder in capitals, such
     * as NUMBER. If NUMBER is among them, the first word stands for the value 0, the second
     * word for -1, and so on. A user cannot type these values as numbers, because they are
     * outside the range. In "auto|TEXT" and "off|FILE", the first word stands for NULL. */
    const char *values;
    const char *help;
    double minimum, maximum, value; /* range and default of a number */
    size_t offset;                  /* offset of the value in its struct */
};

/* Parses `text` and stores the value in the struct `in`. `called` is the name of the value in
 * an error message, such as "--top-p". Returns 0, or ESP_E_ARGUMENT; on failure nothing
 * changes. */
int esp_value_read(const struct esp_value_info *info, void *in, const char *called,
                   const char *text, char *err, size_t errlen);
/* Writes the value in the form that esp_value_read() reads. 24 bytes are enough for a
 * number. */
void esp_value_write(const struct esp_value_info *info, const void *in, char *text,
                     size_t size);
/* If the value is 0 and 0 stands for the default, stores the default. Returns 0, or
 * ESP_E_ARGUMENT if the value is out of range. */
int esp_value_check(const struct esp_value_info *info, void *in, char *err, size_t errlen);
/* Returns the address of the pointer to a text, or NULL if the value is not a text. */
const char **esp_value_text(const struct esp_value_info *info, void *in);
/* Writes the value's name in the spelling of a flag, with '-' instead of '_'. Returns
 * `flag`. */
enum { ESP_FLAG_NAME = 32 };
const char *esp_value_flag(const struct esp_value_info *info, char flag[ESP_FLAG_NAME]);

#ifdef __cplusplus
}
#endif
#endif
