/* verifier.c - ":verifier greedy" chooses how trees are verified. */
#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    if (*arguments)
        esp_worker_set(app->worker, "verifier", arguments);
    else
        esp_app_say(app, false, "verifier = %s", app->state.loaded.verifier);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    esp_complete_spec(ESP_VERIFIERS, before, word, choices);
}

const struct esp_command_ops esp_command_verifier = {
    .name = "verifier",
    .usage = "NAME[:key=value,...]",
    .summary = "choose the rule that accepts tokens, from the next iteration on",
    .run = run,
    .complete = complete,
};
