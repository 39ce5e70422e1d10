/* control.c - the functions that commands and keys share, such as replies; see control.h. */
#include "tui/commands/control.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int esp_answer(struct esp_control *control, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(control->reply, sizeof control->reply, format, args);
    va_end(args);
    return ESP_OK;
}

int esp_ask(struct esp_control *control, const char *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(control->question.text, sizeof control->question.text, format, args);
    va_end(args);
    snprintf(control->question.if_yes, sizeof control->question.if_yes, "%s", line);
    control->requests.changed = true;
    return ESP_OK;
}

bool esp_control_is_in(const struct esp_control *control, enum esp_place place)
{
    return place == ESP_IN_BOTH || (place == ESP_IN_REPLAY) == (control->player != NULL);
}

int esp_control_step_mode(struct esp_control *control, bool on)
{
    control->ui.stepping = on;
    control->requests.changed = true;
    esp_mailbox_step_mode(esp_worker_mailbox(control->worker), on);
    if (on && !esp_state_is_busy(&control->state))
        return esp_answer(control,
                          "step mode: submit a prompt, then Space runs one stage at a time");
    return ESP_OK;
}

void esp_control_pace(struct esp_control *control, double pace)
{
    control->ui.pace = pace;
    control->requests.changed = true;
    esp_mailbox_pace(esp_worker_mailbox(control->worker), pace);
    if (pace > 0)
        control->pace = pace;
}

int esp_control_theme(struct esp_control *control, const char *name, char *err, size_t errlen)
{
    char whole[PATH_MAX];
    int status = esp_theme_load(&control->settings.theme, name, err, errlen);
    if (status < 0)
        return status;
    snprintf(control->settings.theme_name, sizeof control->settings.theme_name, "%.1023s",
             strchr(name, '/') && realpath(name, whole) ? whole : name);
    control->requests.new_theme = control->requests.changed = true;
    return ESP_OK;
}

int esp_control_copy(struct esp_control *control, const char *bytes, size_t length)
{
    free(control->requests.clipboard);
    control->requests.clipboard = malloc(length);
    control->requests.clipboard_length = control->requests.clipboard ? length : 0;
    if (!control->requests.clipboard)
        return esp_refuse(control, "not enough memory for the clipboard");
    memcpy(control->requests.clipboard, bytes, length);
    return esp_answer(control, "%zu bytes copied to the clipboard, if the terminal supports it",
                      length);
}

void esp_request_line(struct esp_requests *requests, const char *line, bool if_empty)
{
    free(requests->line);
    requests->line = strdup(line);
    requests->line_if_empty = if_empty;
}

bool esp_control_stop_engine(struct esp_control *control)
{
    char *prompt = esp_mailbox_stop(esp_worker_mailbox(control->worker));
    const bool withdrawn = prompt && *prompt;
    if (withdrawn)
        esp_request_line(&control->requests, prompt, true);
    free(prompt);
    return withdrawn;
}

void esp_control_stop(struct esp_control *control)
{
    if (control->player)
        control->player->playing = false;
    if (!control->worker || !esp_state_is_busy(&control->state))
        return;
    if (esp_control_stop_engine(control))
        esp_answer(control, "the prompt was taken back; Enter sends it again");
    else
        esp_answer(control, "generation stopped; Enter continues it");
}

void esp_control_page(struct esp_control *control, const struct esp_page_ops *ops, void *data)
{
    if (control->page.ops)
        control->page.ops->close(control->page.data);
    control->page = (struct esp_page){ops, data};
    control->requests.changed = true;
}

int esp_control_end_export(struct esp_control *control)
{
    if (!control->requests.export)
        return ESP_OK;
    int status =
        esp_export_job_end(control->requests.export, control->reply, sizeof control->reply);
    control->requests.export = NULL;
    return status;
}
