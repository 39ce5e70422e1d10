/* seek.c - ":seek 41", ":seek start", ":seek end": goes to a position in a recording. */
#include "tui/commands/command.h"
#include "tui/commands/replay.h"

static int run(struct esp_control *control, const char *arguments)
{
    return esp_replay_seek(control, arguments);
}

const struct esp_command_ops esp_command_seek = {
    .name = "seek",
    .usage = "NUMBER|start|end",
    .summary = "in a replay, go to an iteration",
    .in = ESP_IN_REPLAY,
    .run = run,
    .offers = {{"start", "before the first iteration"}, {"end", "the end of the recording"}},
};
