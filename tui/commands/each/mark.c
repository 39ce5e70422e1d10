/* mark.c - ":mark TEXT" sets a marker in the recording. */
#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    if (!control->state.recording[0])
        return esp_refuse(control, "nothing is being recorded; :record starts a recording");
    if (control->state.phase == ESP_PHASE_WAITING)
        esp_answer(control, "the marker is set after this iteration");
    ESP_WORKER_POST(control->worker, MARK, .text = {arguments});
    return ESP_OK;
}

const struct esp_command_ops esp_command_mark = {
    .name = "mark",
    .usage = "[TEXT]",
    .summary = "set a marker at this place in the recording",
    .run = run,
};
