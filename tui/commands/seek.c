/* seek.c - ":seek 41", ":seek start", ":seek end": where to look at a recording. */
#include "command.h"
#include "replay.h"

#include <stdlib.h>
#include <string.h>

static void run(struct esp_app *app, const char *arguments)
{
    int last = esp_player_iterations(app->player) - 1;
    char *end;
    long number = strtol(arguments, &end, 10);
    if (strcmp(arguments, "start") == 0)
        esp_replay_go(app, 0);
    else if (strcmp(arguments, "end") == 0)
        esp_replay_go(app, last + 1);
    else if (end == arguments || *end || number < 0 || number > last)
        esp_app_say(app, true,
                    ":seek takes an iteration from 0 to %d, start or end, not '%.40s'", last,
                    arguments);
    else
        esp_replay_go(app, (int)number + 1);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    if (*before)
        return;
    esp_choices_offer(choices, word, "start", "before the first iteration");
    esp_choices_offer(choices, word, "end", "of the recording");
}

const struct esp_command_ops esp_command_seek = {
    .name = "seek",
    .usage = "NUMBER|start|end",
    .summary = "in a replay: show an iteration",
    .in = ESP_IN_REPLAY,
    .run = run,
    .complete = complete,
};
