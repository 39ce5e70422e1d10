/* drafter.c - ":drafter dynatree:tauh=0.8" chooses how trees are drafted. */
#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    if (*arguments)
        esp_worker_set(app->worker, "drafter", arguments);
    else
        esp_app_say(app, false, "drafter = %s", app->state.loaded.drafter);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    esp_complete_spec(ESP_DRAFTERS, before, word, choices);
}

const struct esp_command_ops esp_command_drafter = {
    .name = "drafter",
    .usage = "NAME[:key=value,...]",
    .summary = "choose how trees are drafted, from the next iteration on",
    .run = run,
    .complete = complete,
};
