/* params.h - reads and checks the parameters of drafters and verifiers. Each drafter and
 * verifier declares its parameters in one table.
 *
 * Parsing ("name:k=v,k=v"), range errors, `espalier list`, help, completion, the man page and
 * run-time changes all use this table. A drafter reads its values by the index of the table
 * row:
 *
 *     enum { K };
 *     static const struct esp_param params[] = {
 *         [K] = {"K", ESP_INT, 1, 64, 6, .help = "tokens drafted per iteration"},
 *         {0},
 *     };
 *     ... int k = (int)esp_param(d->params, K);
 */
#ifndef ESP_PARAMS_H
#define ESP_PARAMS_H

#include "engine/espalier.h"

enum esp_param_type { ESP_INT, ESP_REAL, ESP_FLAG, ESP_CHOICE, ESP_TEXT };

enum { ESP_MAX_PARAMS = 32, ESP_PARAM_TEXT = 64 };

struct esp_param {
    const char *name; /* NULL ends the table */
    enum esp_param_type type;
    double minimum, maximum, value; /* range and default; a choice is stored as its index */
    const char *choices;            /* "a|b|c" for ESP_CHOICE */
    const char *text;               /* default of ESP_TEXT */
    const char *help;               /* one line of text */
};

/* Holds the values of the parameters in one table. It is plain data, so a change can be tried
 * in a copy. */
struct esp_params {
    const struct esp_param *table; /* NULL means no parameters */
    double value[ESP_MAX_PARAMS];
    char text[ESP_PARAM_TEXT]; /* value of the ESP_TEXT parameter; a table has at most one */
};

static inline double esp_param(const struct esp_params *params, int index)
{
    return params->value[index];
}

/* Fills in the defaults of `table` (may be NULL). */
void esp_params_init(struct esp_params *params, const struct esp_param *table);

/* Sets one parameter from text; `owner` is named in errors. Returns its index, or a negative
 * status. */
int esp_params_set(struct esp_params *params, const char *owner, const char *key,
                   const char *value, char *err, size_t errlen);

/* Describes row `index` of a table (may be NULL). Returns false past its end. */
bool esp_params_info(const struct esp_param *table, int index, struct esp_param_info *info);

/* Returns the index of the parameter with this name, or -1. */
int esp_params_find(const struct esp_params *params, const char *key);

/* Parses the part after the colon of "name:k=v,k=v" (NULL or empty: nothing to do). */
int esp_params_parse(struct esp_params *params, const char *owner, const char *list, char *err,
                     size_t errlen);

/* Writes the shortest text that is read as the same number. Writes no exponent where the number
 * is easier to read without one: 30, not 3e+01. */
void esp_param_number(double number, char *text, size_t size);

/* Writes the value of parameter `index` as text that esp_params_set() reads back. */
void esp_params_format(const struct esp_params *params, int index, char *text, size_t size);

/* Writes "owner" or "owner:k=v,..." with the parameters that differ from their defaults. */
void esp_params_spec(const struct esp_params *params, const char *owner, char *text,
                     size_t size);

#endif
