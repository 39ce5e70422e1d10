/* espalier_value.h - one value of a struct as a table describes it: how it is read from text,
 * written and checked.
 *
 * Settings of a session, options of an engine and flags of the program are such tables.
 */
#ifndef ESPALIER_VALUE_H
#define ESPALIER_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of a value, and their types in C. */
enum esp_value_kind {
    ESP_KIND_real,
    ESP_KIND_share,  /* a real number above the minimum */
    ESP_KIND_whole,  /* up to 2^31 - 1 */
    ESP_KIND_seed,   /* up to 2^64 - 1 */
    ESP_KIND_choice, /* counts its words from 0 */
    ESP_KIND_flag,
    ESP_KIND_either, /* two words, of which the second is true */
    ESP_KIND_size,   /* bytes: 600M, 1.5G */
    ESP_KIND_text,   /* NULL: the default. Not copied: who keeps it keeps what it points to */
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
    /* How a value is written: words, or in capitals what is not typed as it stands, as NUMBER.
     * A word beside a number stands for 0, the next one for -1, and so on; they are no numbers
     * that the range holds. Before a text, auto or off stands for NULL. */
    const char *values;
    const char *help;
    double minimum, maximum, value; /* its range, if it is a number, and its default */
    size_t offset;                  /* of its field in the struct */
};

/* Reads a value of the struct `in` from text. `called` is its name in the sentence that says
 * what is wrong, as "--top-p". Returns 0 or ESP_E_ARGUMENT; then nothing has changed. */
int esp_value_read(const struct esp_value_info *info, void *in, const char *called,
                   const char *text, char *err, size_t errlen);
/* Writes it as esp_value_read() reads it: 24 bytes hold any number. */
void esp_value_write(const struct esp_value_info *info, const void *in, char *text,
                     size_t size);
/* Puts the default in the place of a zero that stands for it. Returns 0, or ESP_E_ARGUMENT if
 * the value is out of its range. */
int esp_value_check(const struct esp_value_info *info, void *in, char *err, size_t errlen);
/* Where the text of a value is; NULL: it is none. */
const char **esp_value_text(const struct esp_value_info *info, void *in);
/* Its name as a flag: with - for _. Returns `flag`. */
enum { ESP_FLAG_NAME = 32 };
const char *esp_value_flag(const struct esp_value_info *info, char flag[ESP_FLAG_NAME]);

#ifdef __cplusplus
}
#endif
#endif
