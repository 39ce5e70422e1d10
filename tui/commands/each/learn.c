/* learn.c - ":learn" runs a lesson. The user predicts what will happen, and the lesson then
 * shows it. */
#include "tui/commands/command.h"
#include "tui/commands/learn_page.h"
#include "tui/lessons/lesson_screen.h"
#include "tui/lessons/lesson.h"

int esp_learn_page_open(struct esp_control *control, const char *name)
{
    char err[512] = "";
    struct esp_lesson_screen *screen = esp_lesson_screen_open(
        control->worker, &control->settings.options.engine, name, err, sizeof err);
    if (!screen)
        return esp_refuse(control, "%s", err);
    esp_control_page(control, &esp_lesson_screen_ops, screen);
    return ESP_OK;
}

static int run(struct esp_control *control, const char *arguments)
{
    const int status = esp_learn_page_open(control, arguments);
    if (status == ESP_OK)
        esp_control_stop(control);
    return status;
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    char name[256], title[200];
    (void)control;
    if (*choices->before)
        return;
    for (int i = 0; esp_lesson_list(i, name, sizeof name, title, sizeof title); i++)
        esp_choices_offer(choices, name, NULL);
}

const struct esp_command_ops esp_command_learn = {
    .name = "learn",
    .usage = "[LESSON|FILE]",
    .summary =
        "show a short lesson: predict, then see the answer; without a name, list the lessons",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
