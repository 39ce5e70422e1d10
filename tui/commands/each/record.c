/* record.c - ":record FILE" starts to record the session. ":record" without a file ends the
 * recording. */
#include "tui/commands/command.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Makes a file name from the current time. The name is unique if no two recordings start in the
 * same second. */
static void name_of_now(char *path, size_t size)
{
    time_t now = time(NULL);
    struct tm local;
    if (!localtime_r(&now, &local) ||
        strftime(path, size, "espalier-%Y%m%d-%H%M%S.esp.jsonl", &local) == 0)
        snprintf(path, size, "espalier.esp.jsonl");
}

static int run(struct esp_control *control, const char *arguments)
{
    char path[1024];
    const bool over = *arguments == '!';
    if (control->state.phase == ESP_PHASE_WAITING) /* step mode has stopped in an iteration */
        esp_answer(control, "the recording begins or ends after the current iteration");
    arguments += over;
    arguments += strspn(arguments, " ");
    if (!*arguments && control->state.recording[0]) {
        ESP_WORKER_POST(control->worker, RECORD);
        return ESP_OK;
    }
    if (*arguments)
        esp_typed_path(path, sizeof path, arguments);
    else
        name_of_now(path, sizeof path);
    ESP_WORKER_POST(control->worker, RECORD, .text = {path},
                    .number = {control->canvas->width, control->canvas->height}, .flag = over);
    return ESP_OK;
}

const struct esp_command_ops esp_command_record = {
    .name = "record",
    .usage = "[FILE]",
    .summary =
        "record the session to a file, or end the recording; :record! FILE overwrites a file",
    .run = run,
    .complete = esp_complete_file,
};
