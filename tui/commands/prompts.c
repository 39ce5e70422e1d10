/* prompts.c - see prompts.h.
 *
 * A prompt is identified by the number of tokens before it. Between the request to shorten the
 * text and its completion, that number is control->kept, not the length of the text.
 */
#include "tui/commands/prompts.h"

#include <stdlib.h>
#include <string.h>

const char *esp_prompts_refusal(const struct esp_control *control)
{
    const int phase = control->state.phase;
    if (phase == ESP_PHASE_FAILED)
        return "no models are loaded; :model loads some";
    if (esp_state_is_busy(&control->state) && control->kept < 0)
        return "the text is being generated; C-c stops it";
    if (phase == ESP_PHASE_LOADING && control->turn_count > 0 && control->state.span_count == 0)
        return "a prompt already waits for the models";
    if (phase == ESP_PHASE_LOADING && control->state.ready)
        return "other models are being loaded; C-c cancels";
    return NULL;
}

void esp_prompts_send(struct esp_control *control, const char *line)
{
    struct esp_turn turn = {control->kept >= 0 ? control->kept : control->state.span_count,
                            strdup(line)};
    size_t size = ((size_t)control->turn_count + 1) * sizeof turn;
    struct esp_turn *grown = *line && turn.text ? realloc(control->turns, size) : NULL;
    if (grown) {
        control->turns = grown;
        grown[control->turn_count++] = turn;
    } else {
        free(turn.text); /* nothing to edit: an empty line continues the text */
    }
    ESP_WORKER_POST(control->worker, PROMPT, .text = {line}, .length = strlen(line));
}

void esp_prompts_refused(struct esp_control *control)
{
    if (control->turn_count == 0 ||
        control->state.span_count > control->turns[control->turn_count - 1].before)
        return; /* it was taken back meanwhile */
    char *text = control->turns[--control->turn_count].text;
    esp_control_line(control, text, true);
    free(text);
}

int esp_prompts_answer(const struct esp_control *control)
{
    return control->kept >= 0 ? 0
                              : control->state.span_count - esp_state_answer(&control->state);
}

int esp_prompts_edit(struct esp_control *control)
{
    if (control->turn_count == 0)
        return esp_refuse(control,
                          control->retokenized
                              ? "cannot take back earlier prompts: the text was tokenized "
                                "again for other models; :clear starts a new one"
                              : "there is no prompt to take back");
    struct esp_turn *turn = &control->turns[--control->turn_count];
    ESP_WORKER_POST(control->worker, REWIND, .number = {turn->before});
    control->kept = turn->before;
    esp_look_hold(&control->ui.look, &control->state, -1);
    control->ui.view[ESP_PANE_text].anchor = -1;
    control->ui.layout.focused = control->ui.help = false;
    esp_control_line(control, turn->text, false);
    free(turn->text);
    return esp_answer(control, "change the prompt and send it again");
}

int esp_prompts_regenerate(struct esp_control *control)
{
    const struct esp_state *state = &control->state;
    const int answer = esp_state_answer(state);
    if (control->kept >= 0)
        return esp_refuse(control, "the text is still being shortened");
    if (!state->ready || state->span_count == 0)
        return esp_refuse(control, "there is no answer to regenerate");
    if (answer < state->span_count) {
        ESP_WORKER_POST(control->worker, REWIND, .number = {answer});
        control->kept = answer;
    }
    esp_look_hold(&control->ui.look, state, -1);
    control->ui.view[ESP_PANE_text].anchor = -1;
    ESP_WORKER_POST(control->worker, PROMPT, .text = {""});
    if (state->loaded.values.temperature == 0)
        return esp_answer(control, "temperature 0 gives the same answer again; try :temp 0.8");
    return ESP_OK;
}

void esp_prompts_taken_out(struct esp_control *control, int start, int count)
{
    int gone = 0;
    const bool all = start + count >= control->state.span_count;
    while (gone < control->turn_count && control->turns[gone].before < start + count)
        gone++;
    if (!all && gone > 0) /* the last prompt keeps the rest of its text */
        control->turns[--gone].before = control->turns[0].before;
    for (int i = 0; i < gone; i++)
        free(control->turns[i].text);
    for (int i = gone; i < control->turn_count; i++) {
        control->turns[i - gone] = control->turns[i];
        if (control->turns[i - gone].before >= start + count)
            control->turns[i - gone].before -= count;
    }
    control->turn_count -= gone;
}

void esp_prompts_shortened(struct esp_control *control, int count)
{
    for (int i = 0; i < control->turn_count; i++)
        if (control->turns[i].before > count)
            control->turns[i].before = count;
}

void esp_prompts_clear(struct esp_control *control)
{
    ESP_WORKER_POST(control->worker, CLEAR);
    control->kept = 0;
    control->retokenized = false;
    esp_prompts_forget(control);
}

void esp_prompts_retokenized(struct esp_control *control)
{
    control->retokenized = control->turn_count > 0 || control->retokenized;
    esp_prompts_forget(control);
}

void esp_prompts_forget(struct esp_control *control)
{
    for (int i = 0; i < control->turn_count; i++)
        free(control->turns[i].text);
    free(control->turns);
    control->turns = NULL;
    control->turn_count = 0;
}
