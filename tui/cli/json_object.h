/* json_object.h - makes JSON objects from lists of members. */
#ifndef ESP_CLI_JSON_OBJECT_H
#define ESP_CLI_JSON_OBJECT_H

#include <cJSON.h>
#include <math.h>

enum cli_member_kind { CLI_IS_NUMBER, CLI_IS_TEXT, CLI_IS_BOOL, CLI_IS_ITEM };

struct cli_member {
    const char *name; /* NULL means the end of a list */
    enum cli_member_kind kind;
    double number;    /* NaN means null */
    const char *text; /* NULL means null */
    cJSON *item;      /* the object takes ownership */
};

#define CLI_NUMBER(name, value)                                                                \
    {                                                                                          \
        name, CLI_IS_NUMBER, (double)(value), NULL, NULL                                       \
    }
#define CLI_TEXT(name, value)                                                                  \
    {                                                                                          \
        name, CLI_IS_TEXT, 0, value, NULL                                                      \
    }
#define CLI_BOOL(name, value)                                                                  \
    {                                                                                          \
        name, CLI_IS_BOOL, value, NULL, NULL                                                   \
    }
#define CLI_ITEM(name, value)                                                                  \
    {                                                                                          \
        name, CLI_IS_ITEM, 0, NULL, value                                                      \
    }

/* Adds members to an object in the given order: cli_add(o, CLI_NUMBER("tokens", count),
 * ...). */
#define cli_add(o, ...)                                                                        \
    cli_add_members(o, (const struct cli_member[]){__VA_ARGS__, {.name = NULL}})
/* Makes an object with these members. */
#define cli_object(...) cli_add(cJSON_CreateObject(), __VA_ARGS__)

/* Returns `o`. */
cJSON *cli_add_members(cJSON *o, const struct cli_member *members);

/* Returns sum / count, or NaN if the count is 0. */
static inline double cli_mean_of(double sum, double count)
{
    return count > 0 ? sum / count : NAN;
}

/* Prints a value and deletes it. Returns an exit code. */
int cli_print_json(cJSON *o);

#endif
