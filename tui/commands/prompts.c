/* prompts.c - see prompts.h.
 *
 * A prompt is identified by the number of tokens before it. For the next prompt, this is the
 * length of the text. While a request to shorten the text is pending, this number is the length
 * that the text will have (control->prompts.kept).
 */
#include "tui/commands/prompts.h"

#include <stdlib.h>
#include <string.h>

const char *esp_prompts_refusal(const struct esp_control *control)
{
    const int phase = control->state.phase;
    if (phase == ESP_PHASE_FAILED)
        return "no models are loaded; :model loads some";
    if (control->forks > 0)
        return "the text is still being changed; try again in a moment";
    if (esp_state_is_busy(&control->state) && control->prompts.kept < 0)
        return "the text is being generated; C-c stops it";
    if (phase == ESP_PHASE_LOADING && control->prompts.count > 0 &&
        control->state.span_count == 0)
        return "a prompt already waits for the models";
    if (phase == ESP_PHASE_LOADING && control->state.ready)
        return "other models are being loaded; C-c cancels";
    return NULL;
}

void esp_prompts_send(struct esp_control *control, const char *line)
{
    struct esp_prompts *prompts = &control->prompts;
    struct esp_turn turn = {prompts->kept >= 0 ? prompts->kept : control->state.span_count,
                            strdup(line)};
    size_t size = ((size_t)prompts->count + 1) * sizeof turn;
    struct esp_turn *grown = *line && turn.text ? realloc(prompts->turns, size) : NULL;
    if (grown) {
        prompts->turns = grown;
        grown[prompts->count++] = turn;
    } else {
        free(turn.text); /* an empty line continues the text, so there is no prompt to store */
    }
    ESP_WORKER_POST(control->worker, PROMPT, .text = {line}, .length = strlen(line));
}

void esp_prompts_refused(struct esp_control *control)
{
    struct esp_prompts *prompts = &control->prompts;
    if (prompts->count == 0 ||
        control->state.span_count > prompts->turns[prompts->count - 1].before)
        return; /* the prompt was taken back in the meantime */
    char *text = prompts->turns[--prompts->count].text;
    esp_request_line(&control->requests, text, true);
    free(text);
}

int esp_prompts_answer(const struct esp_control *control)
{
    return control->prompts.kept >= 0
               ? 0
               : control->state.span_count - esp_state_answer(&control->state);
}

void esp_prompts_taken_out(struct esp_prompts *prompts, int tokens, int start, int count)
{
    struct esp_turn *turns = prompts->turns;
    int gone = 0;
    while (gone < prompts->count && turns[gone].before < start + count)
        gone++;
    if (start + count < tokens && gone > 0) /* part of this prompt stays in the text */
        turns[--gone].before = turns[0].before;
    for (int i = 0; i < gone; i++)
        free(turns[i].text);
    prompts->count -= gone;
    for (int i = 0; i < prompts->count; i++) {
        turns[i] = turns[i + gone];
        if (turns[i].before >= start + count)
            turns[i].before -= count;
    }
}

void esp_prompts_shortened(struct esp_prompts *prompts, int count)
{
    for (int i = 0; i < prompts->count; i++)
        if (prompts->turns[i].before > count)
            prompts->turns[i].before = count;
}

void esp_prompts_retokenized(struct esp_prompts *prompts)
{
    prompts->retokenized = prompts->count > 0 || prompts->retokenized;
    esp_prompts_forget(prompts);
}

/* Returns the text of tokens [from, to), without the line breaks at its start, which only
 * separate a prompt from the text before it. */
static char *words_of(const struct esp_state *state, int from, int to)
{
    size_t start = state->spans[from].start;
    const size_t end = to < state->span_count ? state->spans[to].start : state->byte_count;
    while (from > 0 && start < end && state->bytes[start] == '\n')
        start++;
    return strndup(state->bytes + start, end - start);
}

static int add_turn(struct esp_prompts *prompts, int before, char *text)
{
    struct esp_turn *grown =
        text ? realloc(prompts->turns, ((size_t)prompts->count + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        return ESP_E_MEMORY;
    }
    prompts->turns = grown;
    grown[prompts->count++] = (struct esp_turn){before, text};
    return ESP_OK;
}

void esp_prompts_read(struct esp_prompts *prompts, const struct esp_state *state)
{
    const struct esp_text_span *spans = state->spans;
    const int count = state->span_count;
    esp_prompts_forget(prompts);
    for (int at = 0, before; at < count; at++) {
        if (spans[at].kind != ESP_TEXT_PROMPT)
            continue;
        /* Control tokens before the prompt are part of it, unless an iteration generated them.
         * In that case they end the previous answer. */
        for (before = at; before > 0 && spans[before - 1].kind == ESP_TEXT_MARK &&
                          spans[before - 1].iteration == ESP_BY_NO_ITERATION;)
            before--;
        const int from = at;
        while (at < count && spans[at].kind == ESP_TEXT_PROMPT)
            at++;
        if (add_turn(prompts, before, words_of(state, from, at)) < 0)
            return;
    }
}

void esp_prompts_forget(struct esp_prompts *prompts)
{
    for (int i = 0; i < prompts->count; i++)
        free(prompts->turns[i].text);
    free(prompts->turns);
    prompts->turns = NULL;
    prompts->count = 0;
}
