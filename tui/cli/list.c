/* list.c - `espalier list`: prints lists of drafters, verifiers, models and more, as a table or
 * as JSON. */
#include <cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "engine/find_models.h"
#include "engine/train/train_draft.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"
#include "tui/view/theme.h"

enum { LOSSES = ESP_BACKENDS + 1 }; /* this list is not in enum esp_list */

static bool item_at(int list, int index, struct esp_item *item)
{
    struct esp_train_loss_info loss;
    if (list != LOSSES)
        return esp_item((enum esp_list)list, index, item);
    if (!esp_train_loss(index, &loss))
        return false;
    *item = (struct esp_item){.name = loss.name,
                              .summary = loss.summary,
                              .source = loss.source,
                              .differs = loss.differs,
                              .draws = ""};
    return true;
}

static bool param_at(int list, const char *name, int index, struct esp_param_info *info)
{
    return list == LOSSES ? esp_train_loss_param(name, index, info)
                          : esp_item_param((enum esp_list)list, name, index, info);
}

/* Writes the default value of a parameter that has choices such as "a|b|c". */
static void default_choice(const struct esp_param_info *p, char *word, size_t size)
{
    const char *at = p->choices;
    for (int i = (int)p->value; i > 0; i--)
        at += strcspn(at, "|") + 1;
    snprintf(word, size, "%.*s", (int)strcspn(at, "|"), at);
}

static void write_range(const struct esp_param_info *p, char *range, size_t size)
{
    char word[32];
    if (p->choices) {
        default_choice(p, word, sizeof word);
        snprintf(range, size, "%s, default %s", p->choices, word);
    } else if (strcmp(p->type, "flag") == 0)
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
    printf("    %-10s %-40s %s\n", p->name, range, p->help);
}

/* Prints a text and escapes its full stops. In mdoc, a full stop at the start of a line begins
 * a macro, and a full stop before a blank ends a sentence. */
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

/* Prints the list as the body of a manual section, for man/espalier-drafters.7. */
static void print_mdoc(int list)
{
    struct esp_item item;
    struct esp_param_info param;
    for (int i = 0; item_at(list, i, &item); i++) {
        printf(".Ss %s\n", item.name);
        print_plain("", item.summary, "\n.Pp\n");
        print_plain("Source: ", item.source, "\n");
        if (*item.differs)
            print_plain(".Pp\nDifferences from the source: ", item.differs, ".\n");
        if (*item.draws)
            printf(".Pp\n%s: %s.\n",
                   list == ESP_DRAFTERS ? "How children are drawn"
                                        : "Keeps the target's distribution with",
                   item.draws);
        for (int j = 0; param_at(list, item.name, j, &param); j++) {
            char range[64];
            write_range(&param, range, sizeof range);
            printf("%s.It Cm %s Pq %s\n", j ? "" : ".Pp\n.Bl -tag -width threshold -compact\n",
                   param.name, range);
            print_plain("", param.help, "\n");
        }
        if (param_at(list, item.name, 0, &param))
            printf(".El\n");
    }
}

/* Prints the devices of a backend. If there are several, prints their numbers for --device,
 * too. If the backend cannot be used, prints the reason. */
static void print_devices(const char *backend)
{
    char text[300], next[300];
    int status = esp_backend_probe(backend, 0, text, sizeof text), count = 1;
    if (status < 0) {
        esp_safe_print(stdout, "    not here: %s\n", text);
        return;
    }
    for (; esp_backend_probe(backend, count, next, sizeof next) != ESP_E_ARGUMENT; count++) {
        if (count == 1)
            esp_safe_print(stdout, "    --device 0: %s\n", text);
        esp_safe_print(stdout, "    --device %d: %s\n", count, next);
    }
    if (count == 1)
        esp_safe_print(stdout, "    %s\n", text);
}

static void devices_json(cJSON *o, const char *backend)
{
    char text[300];
    int status = esp_backend_probe(backend, 0, text, sizeof text);
    cJSON *all = cJSON_CreateArray();
    cli_add(o, CLI_BOOL("available", status == ESP_OK),
            CLI_TEXT(status == ESP_OK ? "device" : "why", text));
    for (int i = 1; status == ESP_OK || (i > 1 && status != ESP_E_ARGUMENT); i++) {
        cJSON_AddItemToArray(all, cJSON_CreateString(text));
        status = esp_backend_probe(backend, i, text, sizeof text);
    }
    cJSON_AddItemToObject(o, "devices", all);
}

/* ------------------------------------------------------------------ settings */

static void print_settings(void)
{
    struct esp_value_info info;
    for (int i = 0; esp_value_info(i, &info); i++)
        printf("%-14s %-18s %s\n", info.name, info.values, info.help);
}

/* Prints the argument of a flag, such as "auto|off|NUMBER", for mdoc. Words in lower case are
 * literal, and NUMBER, FILE and TEXT stand for a value. */
static void print_argument(const char *values)
{
    const char *between = " ";
    for (size_t n; *values; values += n + (values[n] == '|')) {
        n = strcspn(values, "|");
        if (isupper((unsigned char)*values))
            printf("%sAr %s", between,
                   *values == 'N'   ? "number"
                   : *values == 'F' ? "file"
                                    : "text");
        else
            printf("%sCm %.*s", between, (int)n, values);
        between = " | ";
    }
}

/* Prints the flags for settings as items of a list, for man/espalier.1. */
static void print_settings_mdoc(void)
{
    struct esp_value_info info;
    for (int i = 0; esp_value_info(i, &info); i++) {
        fputs(".It Fl -", stdout);
        for (const char *c = info.name; *c; c++)
            putchar(*c == '_' ? '-' : *c);
        if (info.kind != ESP_KIND_flag)
            print_argument(info.values);
        const char first[] = {(char)toupper((unsigned char)*info.help), '\0'};
        putchar('\n');
        print_plain(first, info.help + 1, ".\n");
    }
}

static cJSON *settings_json(void)
{
    struct esp_session_values values = {.baseline = false};
    struct esp_value_info info;
    char err[128];
    cJSON *all = cJSON_CreateArray();
    esp_values_check(&values, err, sizeof err);
    for (int i = 0; esp_value_info(i, &info); i++) {
        cJSON *o = cli_object(CLI_TEXT("name", info.name), CLI_TEXT("values", info.values));
        cli_json_setting(o, "default", &values, i);
        if (strstr(info.values, "NUMBER"))
            cli_add(o, CLI_NUMBER("minimum", info.minimum),
                    CLI_NUMBER("maximum", info.maximum));
        cJSON_AddStringToObject(o, "help", info.help);
        cJSON_AddItemToArray(all, o);
    }
    return all;
}

/* ------------------------------------------------------------------ all lists */

static void print_list(int list)
{
    struct esp_item item;
    struct esp_param_info param;
    for (int i = 0; item_at(list, i, &item); i++) {
        printf("%-14s %s", item.name, item.summary);
        if (*item.source)
            printf(" (%s)", item.source);
        if (*item.draws)
            printf("  [%s]", item.draws);
        putchar('\n');
        if (list == ESP_BACKENDS)
            print_devices(item.name);
        for (int j = 0; param_at(list, item.name, j, &param); j++)
            print_param(&param);
    }
}

static cJSON *param_json(const struct esp_param_info *p)
{
    cJSON *o = cli_object(CLI_TEXT("name", p->name), CLI_TEXT("type", p->type));
    if (p->choices) {
        char word[32];
        default_choice(p, word, sizeof word);
        cli_add(o, CLI_TEXT("choices", p->choices), CLI_TEXT("default", word));
    } else if (p->text) {
        cJSON_AddStringToObject(o, "default", p->text);
    } else {
        cli_add(o, CLI_NUMBER("minimum", p->minimum), CLI_NUMBER("maximum", p->maximum),
                CLI_NUMBER("default", p->value));
    }
    cJSON_AddStringToObject(o, "help", p->help);
    return o;
}

static cJSON *list_json(int list)
{
    struct esp_item item;
    struct esp_param_info param;
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; item_at(list, i, &item); i++) {
        cJSON *o = cJSON_CreateObject(), *params = cJSON_CreateArray();
        cli_add(o, CLI_TEXT("name", item.name), CLI_TEXT("summary", item.summary),
                CLI_TEXT("source", item.source), CLI_TEXT("differs", item.differs),
                CLI_TEXT("draws", item.draws));
        for (int j = 0; param_at(list, item.name, j, &param); j++)
            cJSON_AddItemToArray(params, param_json(&param));
        if (list == ESP_BACKENDS)
            devices_json(o, item.name);
        cJSON_AddItemToObject(o, "parameters", params);
        cJSON_AddItemToArray(all, o);
    }
    return all;
}

static cJSON *themes_json(void)
{
    cJSON *all = cJSON_CreateArray();
    char name[256];
    for (int i = 0; esp_theme_list(i, name, sizeof name) == ESP_OK; i++)
        cJSON_AddItemToArray(all, cJSON_CreateString(name));
    return all;
}

/* ------------------------------------------------------------------ models */

/* Returns whether a model fits as the target's draft. The model can also be the target's own
 * copy or its MTP layer. */
static bool fits(struct esp_found_model *model, struct esp_found_model *target, char *why,
                 size_t size)
{
    return esp_is_mtp(model->path)        ? esp_mtp_fits(target, why, size)
           : esp_is_own_copy(model->path) ? esp_copy_fits(target, why, size)
                                          : esp_draft_fits(target, model, why, size);
}

/* Prints a model. If there is a target, also prints whether the model fits as its draft. */
static void print_model(struct esp_found_model *model, struct esp_found_model *target)
{
    enum { COLUMNS = 36 };
    char why[400], kind[64];
    const int wide = esp_safe_width(model->name, strlen(model->name), 0);
    snprintf(kind, sizeof kind, "%s%s%s%s%s", model->family,
             model->gguf && *model->family ? " " : "", model->gguf ? "GGUF" : "",
             *model->dtype ? " " : "", model->dtype);
    esp_safe_print(stdout, "%s%*s %8.1f MB  %-20s %s\n", model->name,
                   wide < COLUMNS ? COLUMNS - wide : 0, "", (double)model->bytes / 1e6, kind,
                   model->source);
    esp_safe_print(stdout, "    %s\n", model->path);
    if (*model->problem && !target)
        esp_safe_print(stdout, "    cannot be opened: %s\n", model->problem);
    if (!target || model == target)
        return;
    if (fits(model, target, why, sizeof why))
        printf("    fits as a draft%s%s\n", *why ? ": " : "", why);
    else
        esp_safe_print(stdout, "    does not fit as a draft: %s\n", why);
}

static cJSON *model_json(struct esp_found_model *model, struct esp_found_model *target)
{
    cJSON *o = cJSON_CreateObject();
    char why[400];
    cli_add(o, CLI_TEXT("name", model->name), CLI_TEXT("path", model->path),
            CLI_TEXT("source", model->source),
            CLI_TEXT("kind", esp_is_mtp(model->path)        ? "mtp"
                             : esp_is_own_copy(model->path) ? "copy"
                             : model->gguf                  ? "gguf"
                                                            : "folder"),
            CLI_TEXT("family", model->family), CLI_TEXT("dtype", model->dtype),
            CLI_NUMBER("bytes", model->bytes));
    if (*model->problem)
        cJSON_AddStringToObject(o, "problem", model->problem);
    if (target && model != target)
        cli_add(o, CLI_BOOL("fits", fits(model, target, why, sizeof why)),
                CLI_TEXT("why", why));
    if (model->shared > 0)
        cli_add(o, CLI_NUMBER("shared_tokens", model->shared),
                CLI_NUMBER("text_share", model->text_share));
    return o;
}

/* Describes the drafts that can be made from the target's own files: its MTP layer and a
 * quantised copy of the target. Returns their number. */
static int find_own(struct esp_found_model own[2], const struct esp_found_model *target)
{
    const int first = esp_found_mtp(&own[0], target);
    esp_found_copy(&own[first], target);
    return first + 1;
}

/* Lists the models. If the user names one of them, also says which other models fit as its
 * draft. */
static int list_models(const char *named, bool json)
{
    struct esp_found_models found;
    struct esp_found_model *target = NULL;
    char path[PATH_MAX], err[512] = "";
    cJSON *all = json ? cJSON_CreateArray() : NULL;
    int code = EXIT_DONE;
    if (named && esp_model_path(path, sizeof path, named, err, sizeof err) < 0)
        code = cli_fail(err);
    else if (esp_find_models(&found) < 0)
        code = cli_fail("not enough memory to look for models");
    if (code != EXIT_DONE) {
        cJSON_Delete(all);
        return code;
    }
    struct esp_found_model outside;
    for (int i = 0; named && i < found.count && !target; i++)
        target = strcmp(found.models[i].path, path) == 0 ? &found.models[i] : NULL;
    if (named && !target && esp_found_model_at(&outside, path) == ESP_OK)
        target = &outside;
    if (named && !target) {
        esp_complain("%s is neither a model folder nor a GGUF file", path);
        code = EXIT_BAD;
    }
    if (target == &outside)
        esp_found_model_look(&outside);
    for (int i = 0; i < found.count && code == EXIT_DONE; i++)
        esp_found_model_look(&found.models[i]);
    struct esp_found_model own[2]; /* drafts from the target's own files */
    const int owned = target ? find_own(own, target) : 0;
    for (int i = 0; i < found.count + owned && code == EXIT_DONE; i++) {
        struct esp_found_model *model =
            i < found.count ? &found.models[i] : &own[i - found.count];
        if (json)
            cJSON_AddItemToArray(all, model_json(model, target));
        else
            print_model(model, target);
    }
    if (found.more)
        esp_complain("there are more than %d models; the others are left out", ESP_MODELS_MOST);
    esp_found_models_free(&found);
    if (json && code == EXIT_DONE)
        return cli_print_json(all);
    cJSON_Delete(all);
    return code;
}

static int run(struct cli_options *o)
{
    static const char *const kinds[] = {"drafters", "verifiers", "backends", "losses",
                                        "themes",   "models",    "settings"};
    enum { KINDS = sizeof kinds / sizeof *kinds, SETTINGS = KINDS - 1, MODELS = KINDS - 2 };
    const char *kind = o->arguments[0], *named = o->argument_count > 1 ? o->arguments[1] : NULL;
    int i = 0;
    while (i < KINDS && strcmp(kinds[i], kind) != 0)
        i++;
    if (i == KINDS) {
        esp_complain("there is no list of '%s'; there are drafters, verifiers, backends, "
                     "losses, themes, "
                     "models and settings",
                     kind);
        return EXIT_USAGE;
    }
    if (named && i != MODELS) {
        esp_complain("unexpected argument '%s'; only `list models` takes one", named);
        return EXIT_USAGE;
    }
    if (i == MODELS)
        return list_models(named, o->json);
    if (i == SETTINGS && !o->json) {
        (o->mdoc ? print_settings_mdoc : print_settings)();
        return EXIT_DONE;
    }
    if (i <= LOSSES && !o->json) {
        (o->mdoc ? print_mdoc : print_list)(i);
        return EXIT_DONE;
    }
    cJSON *all = i <= LOSSES     ? list_json(i)
                 : i == SETTINGS ? settings_json()
                                 : themes_json(),
          *item;
    if (o->json)
        return cli_print_json(all);
    cJSON_ArrayForEach(item, all) esp_safe_print(stdout, "%s\n", item->valuestring);
    cJSON_Delete(all);
    return EXIT_DONE;
}

const struct cli_command cli_list = {
    .name = "list",
    .arguments = "drafters|verifiers|backends|losses|themes|models [TARGET]|settings",
    .summary = "list drafters, verifiers, backends, models and more",
    .flags = CLI(JSON) | CLI(LIST),
    .least = 1,
    .most = 2,
    .run = run,
};
