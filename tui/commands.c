/* commands.c - the table of ':' commands, dispatch and completion; see command.h. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name) extern const struct esp_command_ops esp_command_##name;
#include "commands.def"
#undef X

static const struct esp_command_ops *const commands[] = {
#define X(name) &esp_command_##name,
#include "commands.def"
#undef X
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const struct esp_command_ops *esp_command(int index)
{
    return index >= 0 && index < COMMANDS ? commands[index] : NULL;
}

/* The command of this name, else the only one that starts so, else NULL. */
static const struct esp_command_ops *find(const char *name, size_t length)
{
    const struct esp_command_ops *found = NULL;
    int matches = 0;
    for (int i = 0; i < COMMANDS; i++) {
        if (strncmp(commands[i]->name, name, length) != 0)
            continue;
        if (strlen(commands[i]->name) == length)
            return commands[i];
        found = commands[i];
        matches++;
    }
    return matches == 1 ? found : NULL;
}

/* Splits ":name arguments"; the name may be empty. */
static const char *split(const char *line, const char **name, size_t *length)
{
    *name = line + 1 + strspn(line + 1, " ");
    *length = strcspn(*name, " ");
    return *name + *length + strspn(*name + *length, " ");
}

void esp_command_run(struct esp_app *app, const char *line)
{
    const char *name;
    size_t length;
    const char *arguments = split(line, &name, &length);
    const struct esp_command_ops *command = length > 0 ? find(name, length) : NULL;
    if (!command) {
        esp_app_say(app, true, "there is no command ':%.*s'; F1 lists them",
                    (int)(length < 64 ? length : 64), name);
        return;
    }
    char *copy = strdup(arguments);
    if (!copy)
        return;
    for (size_t end = strlen(copy); end > 0 && copy[end - 1] == ' ';)
        copy[--end] = '\0';
    command->run(app, copy);
    free(copy);
}

/* ------------------------------------------------------------------ completion */

void esp_choices_offer(struct esp_choices *choices, const char *word, const char *text,
                       const char *summary)
{
    if (strncmp(text, word, strlen(word)) == 0)
        esp_choices_add(choices, text, summary);
}

void esp_command_complete(struct esp_app *app, const char *before, const char *word,
                          struct esp_choices *choices)
{
    const char *name;
    size_t length;
    const char *arguments = split(before, &name, &length);
    if (length == 0) {
        for (int i = 0; i < COMMANDS; i++)
            esp_choices_offer(choices, word, commands[i]->name, commands[i]->summary);
        return;
    }
    const struct esp_command_ops *command = find(name, length);
    if (command && command->complete)
        command->complete(app, arguments, word, choices);
}

void esp_complete_value(const struct esp_param_info *param, const char *word,
                        struct esp_choices *choices)
{
    bool flag = strcmp(param->type, "flag") == 0;
    const char *list = flag ? "on|off" : param->choices;
    choices->append = '\0';
    while (list && *list) {
        char value[64];
        size_t length = strcspn(list, "|");
        snprintf(value, sizeof value, "%.*s", (int)length, list);
        esp_choices_offer(choices, word, value, NULL);
        list += length + (list[length] == '|');
    }
}

/* The parameter that "...,key=" at the end of `before` names. */
static bool named_param(enum esp_list list, const char *item, const char *before,
                        struct esp_param_info *param)
{
    size_t end = strlen(before), start;
    if (end == 0 || before[end - 1] != '=')
        return false;
    for (start = --end; start > 0 && !strchr(",: ", before[start - 1]);)
        start--;
    for (int i = 0; esp_item_param(list, item, i, param); i++)
        if (strlen(param->name) == end - start &&
            strncmp(param->name, before + start, end - start) == 0)
            return true;
    return false;
}

void esp_complete_spec(enum esp_list list, const char *before, const char *word,
                       struct esp_choices *choices)
{
    char item[64];
    struct esp_item entry;
    struct esp_param_info param;
    size_t length = strcspn(before, ":");
    if (before[length] == '\0') {
        for (int i = 0; esp_item(list, i, &entry); i++)
            esp_choices_offer(choices, word, entry.name, entry.summary);
        return;
    }
    snprintf(item, sizeof item, "%.*s", (int)length, before);
    choices->append = '=';
    if (named_param(list, item, before, &param))
        esp_complete_value(&param, word, choices);
    else
        for (int i = 0; esp_item_param(list, item, i, &param); i++)
            esp_choices_offer(choices, word, param.name, param.help);
}
