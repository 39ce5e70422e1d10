/* compare.c - ":compare linear" runs a second choice of drafter and verifier over the text. */
#include "command.h"

#include <string.h>

static void run(struct esp_app *app, const char *arguments)
{
    const struct esp_state *second = app->state.second;
    if (*arguments)
        esp_worker_compare(app->worker, arguments);
    else if (second)
        esp_app_say(app, false, "compared with %s, %s; :compare off ends it",
                    second->loaded.drafter, second->loaded.verifier);
    else
        esp_app_say(app, false, "name what to compare with: :compare linear");
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    const char *blank = strchr(before, ' ');
    if (blank) {
        esp_complete_spec(ESP_VERIFIERS, blank + strspn(blank, " "), word, choices);
        return;
    }
    if (app->state.second && !*before)
        esp_choices_offer(choices, word, "off", "end the comparison");
    esp_complete_spec(ESP_DRAFTERS, before, word, choices);
}

const struct esp_command_ops esp_command_compare = {
    .name = "compare",
    .usage = "DRAFTER [VERIFIER]|off",
    .summary = "run a second choice over the same text, side by side",
    .run = run,
    .complete = complete,
};
