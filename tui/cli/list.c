/* list.c - `espalier list`: what there is to choose from, as a table or as JSON. */
#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "paths.h"
#include "safe.h"
#include "theme.h"

static void write_range(const struct esp_param_info *p, char *range, size_t size)
{
    if (p->choices)
        snprintf(range, size, "%s", p->choices);
    else if (strcmp(p->type, "flag") == 0)
        snprintf(range, size, "on|off, default %s", p->value != 0 ? "on" : "off");
    else if (strcmp(p->type, "text") == 0)
        snprintf(range, size, "default %s", p->text);
    else
        snprintf(range, size, "%g..%g, default %g", p->minimum, p->maximum, p->value);
}

static void print_param(const struct esp_param_info *p)
{
    char range[64];
    write_range(p, range, sizeof range);
    printf("    %-10s %-28s %s\n", p->name, range, p->help);
}

/* A full stop inside a line ends no sentence, and one at its start is no macro. */
static void print_plain(const char *before, const char *text, const char *after)
{
    printf("%s%s", before, *text == '.' ? "\\&" : "");
    for (; *text; text++) {
        putchar(*text);
        if (text[0] == '.' && text[1] == ' ')
            fputs("\\&", stdout);
    }
    fputs(after, stdout);
}

/* The list as the body of a manual section: man/espalier-policies.7 is made of two of them. */
static void print_mdoc(enum esp_list list)
{
    struct esp_item item;
    struct esp_param_info param;
    for (int i = 0; esp_item(list, i, &item); i++) {
        printf(".Ss %s\n", item.name);
        print_plain("", item.summary, "\n.Pp\n");
        print_plain("Source: ", item.source, "\n.Pp\n");
        if (*item.differs)
            print_plain("It differs: ", item.differs, ".\n.Pp\n");
        printf("%s: %s.\n",
               list == ESP_DRAFTERS ? "How children are drawn" : "Keeps the distribution with",
               item.draws);
        for (int j = 0; esp_item_param(list, item.name, j, &param); j++) {
            char range[64];
            write_range(&param, range, sizeof range);
            printf("%s.It Cm %s Pq %s\n", j ? "" : ".Bl -tag -width threshold -compact\n",
                   param.name, range);
            print_plain("", param.help, "\n");
        }
        if (esp_item_param(list, item.name, 0, &param))
            printf(".El\n");
    }
}

/* What a backend would compute on, or why it cannot. */
static void print_device(const char *backend)
{
    char text[300];
    int status = esp_backend_probe(backend, text, sizeof text);
    printf("    %s%s\n", status == ESP_OK ? "" : "not here: ", text);
}

static void print_list(enum esp_list list)
{
    struct esp_item item;
    struct esp_param_info param;
    for (int i = 0; esp_item(list, i, &item); i++) {
        printf("%-14s %s", item.name, item.summary);
        if (*item.source)
            printf(" (%s)", item.source);
        if (*item.draws)
            printf("  [%s]", item.draws);
        putchar('\n');
        if (list == ESP_BACKENDS)
            print_device(item.name);
        for (int j = 0; esp_item_param(list, item.name, j, &param); j++)
            print_param(&param);
    }
}

static cJSON *param_json(const struct esp_param_info *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", p->name);
    cJSON_AddStringToObject(o, "type", p->type);
    if (p->choices) {
        cJSON_AddStringToObject(o, "choices", p->choices);
        cJSON_AddNumberToObject(o, "default", p->value);
    } else if (p->text) {
        cJSON_AddStringToObject(o, "default", p->text);
    } else {
        cJSON_AddNumberToObject(o, "minimum", p->minimum);
        cJSON_AddNumberToObject(o, "maximum", p->maximum);
        cJSON_AddNumberToObject(o, "default", p->value);
    }
    cJSON_AddStringToObject(o, "help", p->help);
    return o;
}

static cJSON *list_json(enum esp_list list)
{
    struct esp_item item;
    struct esp_param_info param;
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; esp_item(list, i, &item); i++) {
        cJSON *o = cJSON_CreateObject(), *params = cJSON_CreateArray();
        cJSON_AddStringToObject(o, "name", item.name);
        cJSON_AddStringToObject(o, "summary", item.summary);
        cJSON_AddStringToObject(o, "source", item.source);
        cJSON_AddStringToObject(o, "differs", item.differs);
        cJSON_AddStringToObject(o, "draws", item.draws);
        for (int j = 0; esp_item_param(list, item.name, j, &param); j++)
            cJSON_AddItemToArray(params, param_json(&param));
        if (list == ESP_BACKENDS) {
            char text[300];
            int status = esp_backend_probe(item.name, text, sizeof text);
            cJSON_AddBoolToObject(o, "available", status == ESP_OK);
            cJSON_AddStringToObject(o, status == ESP_OK ? "device" : "why", text);
        }
        cJSON_AddItemToObject(o, "parameters", params);
        cJSON_AddItemToArray(all, o);
    }
    return all;
}

/* Names of themes, or of the built-in models. */
static cJSON *names_json(bool themes)
{
    cJSON *all = cJSON_CreateArray();
    char name[256];
    for (int i = 0; (themes ? esp_theme_list(i, name, sizeof name)
                            : esp_list_data("models", i, name, sizeof name)) == ESP_OK;
         i++)
        cJSON_AddItemToArray(all, cJSON_CreateString(name));
    return all;
}

static int run(struct cli_options *o)
{
    static const char *const kinds[] = {"drafters", "verifiers", "backends", "themes",
                                        "models"};
    const char *kind = o->arguments[0];
    int i = 0;
    while (i < 5 && strcmp(kinds[i], kind) != 0)
        i++;
    if (i == 5) {
        esp_complain(
            "there is no list of '%s'; there are drafters, verifiers, backends, themes "
            "and models",
            kind);
        return EXIT_USAGE;
    }
    if (i < 3 && !o->json) {
        (o->mdoc ? print_mdoc : print_list)((enum esp_list)i);
        return EXIT_DONE;
    }
    cJSON *all = i < 3 ? list_json((enum esp_list)i) : names_json(i == 3), *item;
    if (o->json) {
        char *text = cJSON_Print(all);
        if (text)
            puts(text);
        free(text);
    } else {
        cJSON_ArrayForEach(item, all) puts(item->valuestring);
    }
    cJSON_Delete(all);
    return EXIT_DONE;
}

const struct cli_command cli_list = {
    .name = "list",
    .arguments = "drafters|verifiers|backends|themes|models",
    .summary = "what there is to choose from",
    .flags = "json mdoc",
    .least = 1,
    .most = 1,
    .run = run,
};
