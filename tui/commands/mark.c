/* mark.c - ":mark TEXT" marks a place of the recording, to be found when it is replayed. */
#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    if (!app->state.recording[0]) {
        esp_app_say(app, true, "nothing is recorded; :record begins to");
        return;
    }
    if (app->state.phase == ESP_PHASE_WAITING)
        esp_app_say(app, false, "when this iteration has ended");
    esp_worker_mark(app->worker, arguments);
}

const struct esp_command_ops esp_command_mark = {
    .name = "mark",
    .usage = "[TEXT]",
    .summary = "mark this place of the recording",
    .run = run,
};
