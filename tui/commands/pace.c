/* pace.c - ":pace 12" or ":pace full": how many iterations a second there may be. */
#include "command.h"

#include <stdlib.h>
#include <string.h>

static void run(struct esp_app *app, const char *arguments)
{
    char *end;
    double pace = strtod(arguments, &end);
    if (strcmp(arguments, "full") == 0)
        pace = 0;
    else if (end == arguments || *end || !(pace > 0 && pace <= 1e6)) {
        esp_app_say(app, true, ":pace takes iterations per second, or full, not '%.40s'",
                    arguments);
        return;
    }
    esp_app_pace(app, pace);
    if (pace > 0)
        esp_app_say(app, false, "at most %g iterations a second", pace);
    else
        esp_app_say(app, false, "full speed");
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    if (!*before)
        esp_choices_offer(choices, word, "full", "as fast as the machine can");
}

const struct esp_command_ops esp_command_pace = {
    .name = "pace",
    .usage = "NUMBER|full",
    .summary = "iterations per second at most, so that an eye can follow",
    .run = run,
    .complete = complete,
};
