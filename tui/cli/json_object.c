/* json_object.c - see json_object.h. */
#include "tui/cli/json_object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "viz/safe.h"

cJSON *cli_add_members(cJSON *o, const struct cli_member *m)
{
    for (; m->name; m++) {
        cJSON *item = m->item;
        if (m->kind == CLI_IS_NUMBER && !isnan(m->number))
            item = cJSON_CreateNumber(m->number);
        else if (m->kind == CLI_IS_TEXT && m->text)
            item = cJSON_CreateString(m->text);
        else if (m->kind == CLI_IS_BOOL)
            item = cJSON_CreateBool(m->number != 0);
        cJSON_AddItemToObject(o, m->name, item ? item : cJSON_CreateNull());
    }
    return o;
}

int cli_print_json(cJSON *o)
{
    char *json = cJSON_Print(o);
    int code = json ? EXIT_DONE : cli_fail("not enough memory for the JSON object");
    if (json) {
        esp_safe_json(stdout, json, strlen(json));
        putchar('\n');
    }
    free(json);
    cJSON_Delete(o);
    return code;
}
