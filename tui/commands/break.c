/* break.c - ":break rejected" goes into step mode when that happens. */
#include "command.h"

#include <stdlib.h>
#include <string.h>

static void run(struct esp_app *app, const char *arguments)
{
    struct esp_breakpoints breakpoints = {.path = 0};
    if (strncmp(arguments, "path ", 5) == 0 && atoi(arguments + 5) > 0)
        breakpoints.path = atoi(arguments + 5);
    else if (strcmp(arguments, "rejected") == 0)
        breakpoints.rejected = true;
    else if (strcmp(arguments, "threshold") == 0)
        breakpoints.threshold = true;
    else if (strcmp(arguments, "off") != 0) {
        esp_app_say(app, true, "write :break path NUMBER, :break rejected, :break threshold or "
                               ":break off");
        return;
    }
    esp_mailbox_break(esp_worker_mailbox(app->worker), breakpoints);
    esp_app_say(app, false, "break: %s", arguments);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    if (*before)
        return;
    esp_choices_offer(choices, word, "path", "a path of more than so many tokens is accepted");
    esp_choices_offer(choices, word, "rejected", "nothing that was drafted is accepted");
    esp_choices_offer(choices, word, "threshold", "the controller moves a threshold");
    esp_choices_offer(choices, word, "off", "never");
}

const struct esp_command_ops esp_command_break = {
    .name = "break",
    .usage = "path N|rejected|threshold|off",
    .summary = "go into step mode when this happens",
    .run = run,
    .complete = complete,
};
