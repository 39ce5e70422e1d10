/* commands.c - the table of ':' commands, dispatch and completion; see command.h. */
#include "command.h"
#include "settings.h"

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

/* What a name stands for: a command, or a setting that it is the name of. */
struct meaning {
    const struct esp_command_ops *command; /* or NULL */
    const struct esp_setting *setting;     /* or NULL */
    bool several;                          /* it could be more than one; then both are NULL */
};

/* The command or setting of this name; else the only command, else the only setting, that
 * starts so and has a meaning here. */
static struct meaning find(const struct esp_app *app, const char *name, size_t length)
{
    struct meaning found = {.several = false};
    int starts = 0, setting = esp_setting_find(name, length);
    for (int i = 0; i < COMMANDS; i++) {
        if (strncmp(commands[i]->name, name, length) != 0)
            continue;
        if (strlen(commands[i]->name) == length)
            return (struct meaning){.command = commands[i]};
        if (!esp_app_is_in(app, commands[i]->in))
            continue;
        found.command = commands[i];
        starts++;
    }
    if (setting >= 0)
        return (struct meaning){.setting = esp_setting(setting)};
    for (int i = 0; !found.command && esp_setting(i); i++)
        if (strncmp(esp_setting(i)->key, name, length) == 0 &&
            esp_app_is_in(app, esp_setting_place(esp_setting(i)))) {
            found.setting = esp_setting(i);
            starts++;
        }
    return starts > 1 ? (struct meaning){.several = true} : found;
}

/* Splits ":name arguments"; the name may be empty. A '!' after it belongs to the arguments. */
static const char *split(const char *line, const char **name, size_t *length)
{
    *name = line + 1 + strspn(line + 1, " ");
    *length = strcspn(*name, " !=");
    return *name + *length + strspn(*name + *length, " =");
}

void esp_command_run(struct esp_app *app, const char *line)
{
    const char *name;
    size_t length;
    const char *arguments = split(line, &name, &length);
    struct meaning meaning = {.several = false};
    if (length > 0)
        meaning = find(app, name, length);
    if (!meaning.command && !meaning.setting) {
        esp_app_say(app, true,
                    meaning.several ? "several commands begin with ':%.*s'; Tab lists them"
                                    : "there is no command ':%.*s'; F1 lists them",
                    (int)(length < 64 ? length : 64), name);
        return;
    }
    enum esp_place in =
        meaning.command ? meaning.command->in : esp_setting_place(meaning.setting);
    if (!esp_app_is_in(app, in)) {
        esp_app_say(app, true, "%.*s needs %s", (int)length, name,
                    app->player ? "models, and a replay has none"
                                : "a recording that is replayed");
        return;
    }
    char *copy = strdup(arguments);
    if (!copy)
        return;
    for (size_t end = strlen(copy); end > 0 && copy[end - 1] == ' ';)
        copy[--end] = '\0';
    if (meaning.command)
        meaning.command->run(app, copy);
    else
        esp_setting_type(app, meaning.setting->key, copy);
    free(copy);
}

/* ------------------------------------------------------------------ completion */

void esp_command_complete(struct esp_app *app, const char *before, const char *word,
                          struct esp_choices *choices)
{
    const char *name;
    size_t length;
    const char *arguments = split(before, &name, &length);
    if (length == 0) {
        for (int i = 0; i < COMMANDS; i++)
            if (esp_app_is_in(app, commands[i]->in))
                esp_choices_offer(choices, word, commands[i]->name, commands[i]->summary);
        for (int i = 0; esp_setting(i); i++)
            if (esp_app_is_in(app, esp_setting_place(esp_setting(i))))
                esp_choices_offer(choices, word, esp_setting(i)->key, esp_setting(i)->summary);
        return;
    }
    struct meaning meaning = find(app, name, length);
    if (meaning.command && meaning.command->complete)
        meaning.command->complete(app, arguments, word, choices);
    if (meaning.setting)
        esp_setting_complete_value(app, meaning.setting->key, arguments, word, choices);
}
