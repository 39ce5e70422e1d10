/* prompts.c - see prompts.h.
 *
 * A prompt is known by the number of tokens in front of it. Between asking for the text to be
 * taken back and seeing that it was, that number is app->kept, not the length of the text.
 */
#include "prompts.h"

#include <stdlib.h>
#include <string.h>

const char *esp_prompts_refusal(const struct esp_app *app)
{
    const int phase = app->state.phase;
    if (phase == ESP_PHASE_FAILED)
        return "no models are loaded; :model loads some";
    if (esp_state_is_busy(&app->state) && app->kept < 0)
        return "the text is still being written; C-c stops it";
    if (strcmp(app->state.ended, "context full") == 0 && app->kept < 0)
        return "the context is full; :clear begins a new text, :edit takes the last prompt "
               "back";
    if (phase == ESP_PHASE_LOADING && app->turn_count > 0 && app->state.span_count == 0)
        return "one prompt waits for the models already";
    if (phase == ESP_PHASE_LOADING && app->state.ready)
        return "other models are being loaded; C-c stops that";
    return NULL;
}

void esp_prompts_send(struct esp_app *app, const char *line)
{
    struct esp_turn turn = {app->kept >= 0 ? app->kept : app->state.span_count, strdup(line)};
    size_t size = ((size_t)app->turn_count + 1) * sizeof turn;
    struct esp_turn *grown = *line && turn.text ? realloc(app->turns, size) : NULL;
    if (grown) {
        app->turns = grown;
        grown[app->turn_count++] = turn;
    } else {
        free(turn.text); /* nothing to edit: an empty line goes on writing */
    }
    esp_worker_prompt(app->worker, line, strlen(line));
}

void esp_prompts_refused(struct esp_app *app)
{
    if (app->turn_count == 0 ||
        app->state.span_count > app->turns[app->turn_count - 1].before)
        return; /* it has been taken back meanwhile */
    char *text = app->turns[--app->turn_count].text;
    if (esp_input_is_empty(app->input))
        esp_input_replace(app->input, text);
    free(text);
}

void esp_prompts_edit(struct esp_app *app)
{
    if (app->turn_count == 0) {
        esp_app_say(app, true,
                    app->retokenized
                        ? "prompts from before the models changed cannot be taken back: the "
                          "text has other tokens now; :clear begins a new one"
                        : "there is no prompt to take back");
        return;
    }
    struct esp_turn *turn = &app->turns[--app->turn_count];
    esp_worker_rewind(app->worker, turn->before);
    app->kept = turn->before;
    esp_look_hold(&app->ui.look, &app->state, -1);
    app->ui.view[ESP_PANE_text].anchor = -1;
    app->ui.wish.focused = app->ui.help = false;
    free(app->put_back);
    app->put_back = turn->text;
    esp_app_say(app, false, "change the prompt and send it again");
}

void esp_prompts_clear(struct esp_app *app)
{
    esp_worker_clear(app->worker);
    app->kept = 0;
    app->retokenized = false;
    esp_prompts_forget(app);
}

void esp_prompts_retokenized(struct esp_app *app)
{
    app->retokenized = app->turn_count > 0 || app->retokenized;
    esp_prompts_forget(app);
}

void esp_prompts_forget(struct esp_app *app)
{
    for (int i = 0; i < app->turn_count; i++)
        free(app->turns[i].text);
    free(app->turns);
    app->turns = NULL;
    app->turn_count = 0;
}
