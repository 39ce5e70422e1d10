/* params.c - parses, checks and prints parameters of drafters and verifiers; see params.h. */
#include "engine/support/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/status.h"

void esp_params_init(struct esp_params *params, const struct esp_param *table)
{
    memset(params, 0, sizeof *params);
    params->table = table;
    for (int i = 0; table && table[i].name; i++) {
        params->value[i] = table[i].value;
        if (table[i].type == ESP_TEXT)
            snprintf(params->text, sizeof params->text, "%s", table[i].text);
    }
}

bool esp_params_info(const struct esp_param *table, int index, struct esp_param_info *info)
{
    static const char *const types[] = {"int", "real", "flag", "choice", "text"};
    for (int i = 0; table && table[i].name; i++)
        if (i == index) {
            *info = (struct esp_param_info){
                table[i].name, types[table[i].type], table[i].help,    table[i].choices,
                table[i].text, table[i].minimum,     table[i].maximum, table[i].value};
            return true;
        }
    return false;
}

/* Returns the index of `word` in "a|b|c", or -1. */
static int find_choice(const char *choices, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; *choices; i++) {
        size_t n = strcspn(choices, "|");
        if (n == length && strncasecmp(choices, word, n) == 0)
            return i;
        choices += n + (choices[n] == '|');
    }
    return -1;
}

static void copy_choice(const char *choices, int index, char *text, size_t size)
{
    while (index-- > 0)
        choices += strcspn(choices, "|") + 1;
    snprintf(text, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void list_names(const struct esp_param *table, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; table && table[i].name && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", table[i].name);
}

int esp_params_find(const struct esp_params *params, const char *key)
{
    const struct esp_param *table = params->table;
    for (int i = 0; table && table[i].name; i++)
        if (strcmp(table[i].name, key) == 0)
            return i;
    return -1;
}

static int set_number(struct esp_params *params, int index, const char *owner,
                      const char *value, char *err, size_t errlen)
{
    const struct esp_param *param = &params->table[index];
    char *end;
    double number = strtod(value, &end);
    bool whole = param->type == ESP_REAL || number == floor(number);
    if (end == value || *end || !isfinite(number) || !whole)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s: %s takes %s, not '%s'", owner,
                        param->name, param->type == ESP_INT ? "a whole number" : "a number",
                        value);
    if (number < param->minimum || number > param->maximum)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s: %s takes %g to %g, not %s", owner,
                        param->name, param->minimum, param->maximum, value);
    params->value[index] = number;
    return index;
}

static int set_choice(struct esp_params *params, int index, const char *owner,
                      const char *value, char *err, size_t errlen)
{
    const struct esp_param *param = &params->table[index];
    const bool flag = param->type == ESP_FLAG;
    const char *choices = flag ? "off|on|0|1|false|true|no|yes" : param->choices;
    const int choice = find_choice(choices, value);
    if (choice < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s: %s takes %s%s, not '%s'", owner,
                        param->name, flag ? "" : "one of ", flag ? "on or off" : choices,
                        value);
    params->value[index] = flag ? choice % 2 : choice;
    return index;
}

int esp_params_set(struct esp_params *params, const char *owner, const char *key,
                   const char *value, char *err, size_t errlen)
{
    const struct esp_param *table = params->table;
    int i = esp_params_find(params, key);
    if (i < 0) {
        char names[512];
        list_names(table, names, sizeof names);
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s has no parameter '%s'; it takes %s",
                        owner, key, names[0] ? names : "none");
    }
    if (table[i].type == ESP_INT || table[i].type == ESP_REAL)
        return set_number(params, i, owner, value, err, errlen);
    if (table[i].type != ESP_TEXT)
        return set_choice(params, i, owner, value, err, errlen);
    if (strlen(value) >= sizeof params->text)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s: the value of %s is longer than %zu characters", owner, key,
                        sizeof params->text - 1);
    strcpy(params->text, value);
    return i;
}

int esp_params_parse(struct esp_params *params, const char *owner, const char *list, char *err,
                     size_t errlen)
{
    char pair[256];
    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n >= sizeof pair)
            return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s: a parameter is too long", owner);
        memcpy(pair, list, n);
        pair[n] = '\0';
        char *equal = strchr(pair, '=');
        if (!equal)
            return esp_fail(err, errlen, ESP_E_ARGUMENT,
                            "%s: write parameters as name=value, not '%s'", owner, pair);
        *equal = '\0';
        int status = esp_params_set(params, owner, pair, equal + 1, err, errlen);
        if (status < 0)
            return status;
        list += n + (list[n] == ',');
    }
    return ESP_OK;
}

void esp_param_number(double number, char *text, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, number);
        if (strtod(text, NULL) == number && !strstr(text, "e+"))
            break;
    }
}

void esp_params_format(const struct esp_params *params, int index, char *text, size_t size)
{
    const struct esp_param *param = &params->table[index];
    switch (param->type) {
    case ESP_FLAG:
        snprintf(text, size, "%s", params->value[index] != 0 ? "on" : "off");
        break;
    case ESP_CHOICE:
        copy_choice(param->choices, (int)params->value[index], text, size);
        break;
    case ESP_TEXT:
        snprintf(text, size, "%s", params->text);
        break;
    default:
        esp_param_number(params->value[index], text, size);
    }
}

void esp_params_spec(const struct esp_params *params, const char *owner, char *text,
                     size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", owner);
    const struct esp_param *table = params->table;
    char separator = ':';
    for (int i = 0; table && table[i].name && used < size; i++) {
        bool changed = table[i].type == ESP_TEXT ? strcmp(params->text, table[i].text) != 0
                                                 : params->value[i] != table[i].value;
        if (!changed)
            continue;
        char value[ESP_PARAM_TEXT];
        esp_params_format(params, i, value, sizeof value);
        used += (size_t)snprintf(text + used, size - used, "%c%s=%s", separator, table[i].name,
                                 value);
        separator = ',';
    }
}
