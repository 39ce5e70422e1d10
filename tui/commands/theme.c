/* theme.c - ":theme light" changes the colours. */
#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    if (*arguments)
        esp_app_theme(app, arguments);
    else
        esp_app_say(app, false, "theme %s", app->theme.name);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    char name[64];
    (void)app;
    for (int i = 0; !*before && esp_theme_list(i, name, sizeof name) == 0; i++)
        esp_choices_offer(choices, word, name, NULL);
}

const struct esp_command_ops esp_command_theme = {
    .name = "theme",
    .usage = "NAME|FILE",
    .summary = "change the colours",
    .run = run,
    .complete = complete,
};
