/* seek.c - ":seek 41", ":seek start", ":seek end": goes to a position in a recording. */
#include "tui/commands/command.h"
#include "tui/commands/replay.h"

static int run(struct esp_control *control, const char *arguments)
{
    return esp_replay_seek(control, arguments);
}

static void complete(const struct esp_control *control, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)control;
    if (*before)
        return;
    esp_choices_offer(choices, word, "start", "before the first iteration");
    esp_choices_offer(choices, word, "end", "the end of the recording");
}

const struct esp_command_ops esp_command_seek = {
    .name = "seek",
    .usage = "NUMBER|start|end",
    .summary = "in a replay: show an iteration",
    .in = ESP_IN_REPLAY,
    .run = run,
    .complete = complete,
};
