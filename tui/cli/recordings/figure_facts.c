/* figure_facts.c - see figure_facts.h. */
#include "tui/cli/recordings/figure_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

/* Finds the value that the setting `order` has at an event. This setting decides the order
 * of the rows in a batch. */
static int find_order(struct esp_recording *recording, int event, char order[24], char *err,
                      size_t errlen)
{
    const struct esp_event *setting;
    esp_value_print(&esp_recording_header(recording)->values, ESP_VALUE_OF_order, order, 24);
    for (int i = event - 1; i >= 0; i--) {
        if (esp_recording_entry(recording, i).type != ESP_EVENT_SETTING)
            continue;
        int status = esp_recording_read(recording, i, &setting, err, errlen);
        if (status < 0)
            return status;
        if (setting->key && setting->text && strcmp(setting->key, "order") == 0) {
            snprintf(order, 24, "%s", setting->text);
            break;
        }
    }
    return ESP_OK;
}

/* Finds the time at which each draft pass ended, in seconds from the start of the iteration. */
static int find_passes(struct esp_recording *recording, int event,
                       struct esp_export_facts *facts, char *err, size_t errlen)
{
    const struct esp_event *found;
    int status = esp_recording_read(recording, event, &found, err, errlen);
    if (status < 0)
        return status;
    const int count = esp_recording_steps(recording) - ESP_STAGES;
    double begin = found->time;
    for (int s = 0; found->iteration && s < ESP_STAGES; s++)
        begin -= found->iteration->seconds[s];
    facts->passes = calloc((size_t)(count > 0 ? count : 1), sizeof *facts->passes);
    if (!facts->passes)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the figure");
    for (int i = 0; i < count; i++) {
        const struct esp_event *step = esp_recording_step(recording, i);
        if (step)
            facts->passes[facts->pass_count++] = step->time - begin;
    }
    return ESP_OK;
}

/* Copies the tokens of the text before the iteration. */
static int find_text(struct esp_recording *recording, int event, struct esp_export_facts *facts)
{
    const struct esp_text_token *tokens;
    const int count = esp_recording_text(recording, event - 1, &tokens);
    facts->text = calloc((size_t)(count > 0 ? count : 1), sizeof *facts->text);
    if (count < 0 || !facts->text)
        return ESP_E_MEMORY;
    for (int i = 0; i < count; i++)
        facts->text[i] = tokens[i].token;
    facts->text_count = count;
    return ESP_OK;
}

int cli_figure_facts(struct esp_recording *recording, int event, struct esp_export_facts *facts,
                     char *err, size_t errlen)
{
    *facts = (struct esp_export_facts){.text_count = 0};
    int status = find_order(recording, event, facts->order, err, errlen);
    if (status == ESP_OK)
        status = find_passes(recording, event, facts, err, errlen);
    if (status == ESP_OK && (status = find_text(recording, event, facts)) < 0)
        esp_fail(err, errlen, status, "not enough memory for the figure");
    if (status < 0)
        cli_figure_facts_free(facts);
    return status;
}

void cli_figure_facts_free(struct esp_export_facts *facts)
{
    free(facts->text);
    free(facts->passes);
    *facts = (struct esp_export_facts){.text_count = 0};
}
