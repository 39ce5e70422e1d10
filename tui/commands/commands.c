/* commands.c - the table of ':' commands; finds, runs and completes them; see command.h. */
#include "tui/commands/command.h"
#include "tui/commands/settings.h"
#include "engine/support/suggestion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name) extern const struct esp_command_ops esp_command_##name;
#include "tui/commands/commands.def"

static const struct esp_command_ops *const commands[] = {
#define X(name) &esp_command_##name,
#include "tui/commands/commands.def"
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const struct esp_command_ops *esp_command(int index)
{
    return index >= 0 && index < COMMANDS ? commands[index] : NULL;
}

/* Says what a typed name refers to: a command or a setting. */
struct meaning {
    const struct esp_command_ops *command;
    const struct esp_setting *setting;
    bool several; /* the name is ambiguous; command and setting are NULL */
};

/* Finds the command or setting with this name. If there is none, treats `name` as a prefix and
 * finds the only command that starts with it and is allowed here. If there is no such command,
 * finds a setting in the same way. */
static struct meaning find(const struct esp_control *control, const char *name, size_t length)
{
    struct meaning found = {.several = false};
    int starts = 0, setting = esp_setting_find(name, length);
    for (int i = 0; i < COMMANDS; i++) {
        if (strncmp(commands[i]->name, name, length) != 0)
            continue;
        if (strlen(commands[i]->name) == length)
            return (struct meaning){.command = commands[i]};
        if (!esp_control_is_in(control, commands[i]->in))
            continue;
        found.command = commands[i];
        starts++;
    }
    if (setting >= 0)
        return (struct meaning){.setting = esp_setting(setting)};
    for (int i = 0; !found.command && esp_setting(i); i++)
        if (strncmp(esp_setting(i)->key, name, length) == 0 &&
            esp_control_is_in(control, esp_setting_place(esp_setting(i)))) {
            found.setting = esp_setting(i);
            starts++;
        }
    return starts > 1 ? (struct meaning){.several = true} : found;
}

/* Splits ":name arguments". The name can be empty. A '!' after the name is part of the
 * arguments. */
static const char *split(const char *line, const char **name, size_t *length)
{
    *name = line + 1 + strspn(line + 1, " ");
    *length = strcspn(*name, " !=");
    return *name + *length + strspn(*name + *length, " =");
}

/* Returns whether `name` is the full name of a setting that is allowed here. */
static bool is_setting(const struct esp_control *control, const char *name, size_t length)
{
    const int setting = esp_setting_find(name, length);
    return setting >= 0 && esp_control_is_in(control, esp_setting_place(esp_setting(setting)));
}

bool esp_command_is(const struct esp_control *control, const char *word)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, word) == 0)
            return esp_control_is_in(control, commands[i]->in);
    return is_setting(control, word, strlen(word));
}

bool esp_command_sets(const struct esp_control *control, const char *line)
{
    const size_t length = strcspn(line, " =");
    return line[length + strspn(line + length, " =")] && is_setting(control, line, length);
}

static int refuse_name(struct esp_control *control, const char *name, size_t length,
                       bool several)
{
    const int shown = (int)(length < 64 ? length : 64);
    struct esp_suggestion guess;
    char meant[96];
    if (several)
        return esp_refuse(control, "several commands begin with ':%.*s'; Tab lists them", shown,
                          name);
    esp_suggestion_begin(&guess, name, length);
    for (int i = 0; i < COMMANDS; i++)
        if (esp_control_is_in(control, commands[i]->in))
            esp_suggestion_try(&guess, commands[i]->name);
    for (int i = 0; esp_setting(i); i++)
        if (esp_control_is_in(control, esp_setting_place(esp_setting(i))))
            esp_suggestion_try(&guess, esp_setting(i)->key);
    return esp_refuse(control, "there is no command ':%.*s'%s; F1 lists them", shown, name,
                      esp_suggestion_text(&guess, meant));
}

int esp_command_run(struct esp_control *control, const char *line)
{
    const char *name;
    size_t length;
    const char *arguments = split(line, &name, &length);
    struct meaning meaning = {.several = false};
    if (length > 0)
        meaning = find(control, name, length);
    if (!meaning.command && !meaning.setting)
        return refuse_name(control, name, length, meaning.several);
    enum esp_place in =
        meaning.command ? meaning.command->in : esp_setting_place(meaning.setting);
    if (!esp_control_is_in(control, in))
        return esp_refuse(control, "%.*s %s", (int)length, name,
                          control->player ? "needs models, and a replay has none"
                                          : "works only in a replay");
    char *copy = strdup(arguments);
    if (!copy)
        return esp_refuse(control, "not enough memory for this command");
    for (size_t end = strlen(copy); end > 0 && copy[end - 1] == ' ';)
        copy[--end] = '\0';
    int status = meaning.command ? meaning.command->run(control, copy)
                                 : esp_setting_type(control, meaning.setting->key, copy);
    free(copy);
    return status;
}

const char *esp_command_begin(const struct esp_control *control, const char *line)
{
    const char *name;
    size_t length;
    split(line, &name, &length);
    if (length == 0)
        return "";
    const struct meaning meaning = find(control, name, length);
    return meaning.command && meaning.command->begin ? meaning.command->begin(control) : "";
}

/* ------------------------------------------------------------------ completion */

void esp_command_complete(const struct esp_control *control, struct esp_choices *choices)
{
    const char *name;
    size_t length;
    const char *arguments = split(choices->before, &name, &length);
    if (length == 0) {
        for (int i = 0; i < COMMANDS; i++)
            if (esp_control_is_in(control, commands[i]->in))
                esp_choices_offer(choices, commands[i]->name, commands[i]->summary);
        for (int i = 0; esp_setting(i); i++)
            if (esp_control_is_in(control, esp_setting_place(esp_setting(i))))
                esp_choices_offer(choices, esp_setting(i)->key, esp_setting(i)->summary);
        return;
    }
    struct meaning meaning = find(control, name, length);
    const struct esp_command_ops *command = meaning.command;
    choices->before = arguments;
    for (int i = 0; command && !*arguments && command->offers[i].word; i++)
        esp_choices_offer(choices, command->offers[i].word, command->offers[i].summary);
    if (command && command->complete)
        command->complete(control, choices);
    if (meaning.setting)
        esp_setting_complete_value(control, meaning.setting->key, choices);
}
