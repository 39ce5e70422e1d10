/* state.c - applies snapshots to the state; see state.h. */
#include "tui/model/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/grow.h"
#include "viz/versus.h"

void esp_state_free(struct esp_state *state)
{
    if (state->compared)
        esp_state_free(state->compared);
    free(state->compared);
    esp_trace_free(&state->trace);
    esp_iteration_free(&state->partial);
    free(state->bytes);
    free(state->spans);
    *state = (struct esp_state){.phase = ESP_PHASE_LOADING};
}

int esp_state_copy(struct esp_state *to, const struct esp_state *from)
{
    const size_t count = (size_t)from->span_count;
    to->tokens = from->tokens;
    to->loaded = from->loaded;
    to->spans = malloc((count + 1) * sizeof *to->spans);
    if (!to->spans)
        return ESP_E_MEMORY;
    if (count > 0)
        memcpy(to->spans, from->spans, count * sizeof *to->spans);
    to->span_count = to->span_capacity = from->span_count;
    int status = ESP_OK;
    for (int i = 0; i < from->trace.kept_count && status == ESP_OK; i++)
        status = esp_trace_add(&to->trace, esp_trace_at(&from->trace, i), NULL, false);
    return status;
}

/* ------------------------------------------------------------------ text */

static int reserve_text(struct esp_state *state, size_t bytes)
{
    size_t needed = state->byte_count + bytes;
    if (needed > UINT32_MAX)
        return ESP_E_MEMORY;
    if (needed > state->byte_capacity) {
        char *grown = realloc(state->bytes, needed * 2);
        if (!grown)
            return ESP_E_MEMORY;
        state->bytes = grown;
        state->byte_capacity = needed * 2;
    }
    return esp_grow(&state->spans, state->span_count, &state->span_capacity,
                    sizeof *state->spans);
}

static void add_bytes(struct esp_state *state, const char *bytes, size_t length)
{
    if (length > 0)
        memcpy(state->bytes + state->byte_count, bytes, length);
    state->byte_count += length;
}

/* The separator between turns of a conversation, shown instead of the chat format's control
 * tokens: an empty line, and a sign before the user's text. It belongs to the last of these
 * tokens. */
static const char *separator(const struct esp_state *state, int kind)
{
    const int last = state->span_count - 1;
    if (kind == ESP_TEXT_MARK || last < 0 || state->spans[last].kind != ESP_TEXT_MARK)
        return "";
    if (kind == ESP_TEXT_PROMPT)
        return state->byte_count > 0 ? "\n\n> " : "> ";
    return state->byte_count > 0 ? "\n\n" : "";
}

static int append_token(struct esp_state *state, const struct esp_text_token *token)
{
    const char *before = separator(state, token->kind), *bytes = NULL;
    size_t length = 0;
    if (token->kind != ESP_TEXT_MARK && state->tokens.text)
        bytes = state->tokens.text(state->tokens.user, token->token, &length);
    if (!bytes)
        length = 0;
    int status = reserve_text(state, strlen(before) + length);
    if (status < 0)
        return status;
    add_bytes(state, before, strlen(before));
    state->spans[state->span_count++] =
        (struct esp_text_span){(uint32_t)state->byte_count, token->token, token->kind};
    add_bytes(state, bytes, length);
    return 0;
}

static int append_text(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    int status = 0;
    for (int i = 0; i < snapshot->token_count && status == 0; i++)
        status = append_token(state, &snapshot->tokens[i]);
    return status;
}

int esp_state_answer(const struct esp_state *state)
{
    int last = state->span_count - 1;
    while (last >= 0 && state->spans[last].kind != ESP_TEXT_PROMPT)
        last--;
    do
        last++;
    while (last < state->span_count && state->spans[last].kind == ESP_TEXT_MARK);
    return last;
}

size_t esp_state_last_answer(const struct esp_state *state)
{
    const int answer = esp_state_answer(state);
    return answer < state->span_count ? state->spans[answer].start : state->byte_count;
}

/* ------------------------------------------------------------------ iterations */

int esp_state_shown(int iterations)
{
    const int half = ESP_POINTS / 2; /* dropped when there is no room */
    return iterations <= ESP_POINTS ? iterations
                                    : half + 1 + (iterations - ESP_POINTS - 1) % half;
}

static int add_iteration(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    const struct esp_iteration *it = &snapshot->iteration.it;
    state->loaded.lossy = it->lossy;
    if (it->baseline > 0)
        state->baseline = it->baseline;
    state->has_partial = false;
    int status =
        esp_trace_add(&state->trace, it, &snapshot->totals, state->phase == ESP_PHASE_WAITING);
    if (status < 0)
        return status;
    return append_text(state, snapshot);
}

static int set_partial(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    int status = esp_iteration_copy(&state->partial, &snapshot->iteration.it);
    state->has_partial = status == 0;
    state->partial_type = snapshot->type;
    state->partial_stages = snapshot->type == ESP_EVENT_STAGE ? snapshot->stage + 1 : 0;
    return status;
}

bool esp_state_is_busy(const struct esp_state *state)
{
    return state->phase == ESP_PHASE_PREFILL || state->phase == ESP_PHASE_GENERATING ||
           state->phase == ESP_PHASE_WAITING;
}

const struct esp_iteration *esp_state_kept(const struct esp_state *state, int back)
{
    return esp_trace_at(&state->trace, state->trace.kept_count - 1 - back);
}

/* The newest iteration or, after the end of a text, the one before it if only that has a tree:
 * often the very last iteration is a single token without drafts. */
static const struct esp_iteration *newest(const struct esp_state *state)
{
    const struct esp_iteration *it = esp_state_kept(state, 0),
                               *before = esp_state_kept(state, 1);
    if (!before || esp_state_is_busy(state) || it->tree.count > 1 || before->tree.count == 1)
        return it;
    return before;
}

const struct esp_iteration *esp_state_iteration(const struct esp_state *state, int index,
                                                int *stages)
{
    const struct esp_iteration *it;
    *stages = ESP_STAGES;
    for (int back = 0; index >= 0 && (it = esp_state_kept(state, back)) && it->index >= index;
         back++)
        if (it->index == index)
            return it;
    if (!state->has_partial)
        return newest(state);
    *stages = state->partial_stages;
    return &state->partial.it;
}

int esp_state_neighbour(const struct esp_state *state, int index, int step)
{
    const struct esp_iteration *it;
    int found = -1;
    if (state->has_partial && state->partial.it.index * step > index * step)
        found = state->partial.it.index;
    for (int back = 0; (it = esp_state_kept(state, back)); back++)
        if (it->index * step > index * step && (found < 0 || it->index * step < found * step))
            found = it->index;
    return found;
}

double esp_state_baseline(const struct esp_state *state)
{
    const struct esp_state *const sides[] = {state, state->compared};
    for (int i = 0; i < 2; i++) {
        const struct esp_state *side = sides[i];
        if (!side || !esp_spec_is_plain(side->loaded.drafter))
            continue;
        const double pace =
            esp_trace_pace(&side->trace, state->compared ? side->trace.since.iterations
                                                         : side->trace.since_setting);
        if (pace > 0)
            return pace;
    }
    return state->baseline;
}

struct esp_figures esp_state_figures(const struct esp_state *state)
{
    enum { WINDOW = 32 };
    struct esp_figures figures = {.acceptance = NAN, .path_share = NAN};
    const struct esp_trace *trace = &state->trace;
    double committed = 0, accepted = 0, drafted = 0, deepest = 0;
    int count = trace->since_setting < WINDOW ? trace->since_setting : WINDOW, timed = 0;
    if (state->compared)
        count = trace->since.iterations;
    if (count > trace->course.count)
        count = trace->course.count;
    for (int i = trace->course.count - count; i < trace->course.count; i++) {
        const struct esp_course_point *point = &trace->course.points[i];
        committed += point->committed;
        accepted += point->path;
        drafted += point->drafted;
        deepest += point->deepest;
        if (point->stepped)
            continue;
        timed++;
        for (int stage = 0; stage < ESP_STAGES; stage++)
            figures.seconds[stage] += point->seconds[stage];
        figures.exchange += point->exchange;
    }
    figures.iterations = count;
    figures.timed = timed > 0;
    figures.tokens_per_iteration = count > 0 ? committed / count : 0;
    if (drafted > 0)
        figures.acceptance = accepted / drafted;
    if (deepest > 0)
        figures.path_share = accepted / deepest;
    const double pace = esp_trace_pace(trace, count);
    if (pace > 0) {
        figures.tokens_per_second = 1 / pace;
        figures.speedup =
            esp_spec_is_plain(state->loaded.drafter) ? 1 : esp_state_baseline(state) / pace;
    }
    for (int stage = 0; stage < ESP_STAGES && timed > 0; stage++)
        figures.seconds[stage] /= timed;
    figures.exchange /= timed > 0 ? timed : 1;
    return figures;
}

bool esp_state_wins(const struct esp_figures *figures)
{
    return figures->speedup >= 0.995;
}

void esp_state_worth(const struct esp_figures *figures, double baseline, char texts[3][96])
{
    const double right = isfinite(figures->acceptance) ? 100 * figures->acceptance : 0;
    const double loss = 100 * (1 - figures->speedup);
    const size_t size = sizeof texts[0];
    if (esp_state_wins(figures)) {
        snprintf(texts[0], size, "%.2f times as fast as plain decoding (%.0f tok/s)",
                 figures->speedup, 1 / baseline);
        snprintf(texts[1], size, "%.2fx plain decoding", figures->speedup);
        snprintf(texts[2], size, "%.2fx plain", figures->speedup);
    } else {
        snprintf(
            texts[0], size,
            "slower than plain decoding by %.0f %%: the draft is right %.0f %% of the time",
            loss, right);
        snprintf(texts[1], size, "slower than plain decoding by %.0f %%", loss);
        snprintf(texts[2], size, "%.0f %% slower", loss);
    }
}

/* ------------------------------------------------------------------ everything else */

static void set_message(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    snprintf(state->message, sizeof state->message, "%s", snapshot->text);
    state->message_is_error = snapshot->type != ESP_SNAPSHOT_MESSAGE;
    state->message_count++;
}

/* Restarts the totals of a comparison from 0. */
static void restart_totals(struct esp_state *state)
{
    esp_trace_restart(&state->trace);
    if (state->compared)
        restart_totals(state->compared);
}

static void set_setting(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    const char *key = snapshot->key, *value = snapshot->text;
    const int index = esp_value_find(key);
    char why[160];
    if (index >= 0)
        esp_value_parse(&state->loaded.values, index, key, value, why, sizeof why);
    state->loaded.lossy = snapshot->lossy;
    if (strcmp(key, "drafter") == 0)
        snprintf(state->loaded.drafter, sizeof state->loaded.drafter, "%.255s", value);
    if (strcmp(key, "verifier") == 0)
        snprintf(state->loaded.verifier, sizeof state->loaded.verifier, "%.95s", value);
    esp_values_forget_texts(&state->loaded.values);
    state->trace.since_setting = 0;
    restart_totals(state);
}

static void forget_iterations(struct esp_state *state)
{
    esp_trace_forget(&state->trace);
    state->has_partial = false;
    state->ended[0] = '\0';
    if (state->compared)
        forget_iterations(state->compared);
}

/* Begins a comparison with the second session's configuration, or ends it. */
static int set_second(struct esp_state *state, const struct esp_setup *loaded)
{
    if (!loaded->drafter[0]) {
        if (state->compared)
            esp_state_free(state->compared);
        free(state->compared);
        state->compared = NULL;
        return 0;
    }
    if (!state->compared && !(state->compared = calloc(1, sizeof *state->compared)))
        return ESP_E_MEMORY;
    state->compared->loaded = *loaded;
    restart_totals(state);
    return 0;
}

static void rewind_text(struct esp_state *state, int kept)
{
    if (kept < 0 || kept >= state->span_count)
        return;
    /* The separator after a control token is written again with the next text. */
    const bool mark = kept > 0 && state->spans[kept - 1].kind == ESP_TEXT_MARK;
    state->byte_count = state->spans[kept - mark].start;
    state->span_count = kept;
    state->has_partial = false;
    state->ended[0] = '\0';
}

/* Removes tokens from the text. The tokens after them are appended again, with the separators
 * that belong there now. */
static int drop_text(struct esp_state *state, int start, int count)
{
    const int rest = state->span_count - start - count;
    int status = 0;
    if (start < 0 || count < 1 || rest < 0)
        return 0;
    struct esp_text_token *tokens = malloc(((size_t)rest + 1) * sizeof *tokens);
    if (!tokens)
        return ESP_E_MEMORY;
    for (int i = 0; i < rest; i++)
        tokens[i] = (struct esp_text_token){state->spans[start + count + i].token,
                                            state->spans[start + count + i].kind};
    rewind_text(state, start);
    for (int i = 0; i < rest && status == 0; i++)
        status = append_token(state, &tokens[i]);
    free(tokens);
    return status;
}

static void clear(struct esp_state *state)
{
    rewind_text(state, 0);
    forget_iterations(state);
}

/* Takes over newly loaded models. Other models have other tokens, so the old iterations are
 * dropped. */
static void set_loaded(struct esp_state *state, const struct esp_setup *loaded)
{
    if (loaded->serial != state->loaded.serial) {
        forget_iterations(state);
        state->baseline = 0;
    }
    if (loaded->tokens.text)
        state->tokens = loaded->tokens;
    state->loaded = *loaded;
    state->ready = true;
}

static void set_phase(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    state->phase = snapshot->phase;
    state->fraction = snapshot->fraction;
    snprintf(state->phase_text, sizeof state->phase_text, "%s", snapshot->text);
    if (state->phase == ESP_PHASE_PREFILL || state->phase == ESP_PHASE_GENERATING)
        state->ended[0] = '\0';
    if (state->phase == ESP_PHASE_IDLE)
        state->has_partial = false;
}

static int apply(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    switch (snapshot->type) {
    case ESP_EVENT_PROMPT:
        return append_text(state, snapshot);
    case ESP_EVENT_LAYER:
    case ESP_EVENT_STAGE:
        return set_partial(state, snapshot);
    case ESP_EVENT_ITERATION:
        return add_iteration(state, snapshot);
    case ESP_EVENT_SETTING:
        set_setting(state, snapshot);
        return 0;
    case ESP_EVENT_END:
        snprintf(state->ended, sizeof state->ended, "%.*s", (int)sizeof state->ended - 1,
                 snapshot->text);
        return 0;
    case ESP_SNAPSHOT_PHASE:
        set_phase(state, snapshot);
        return 0;
    case ESP_SNAPSHOT_READY:
        set_loaded(state, &snapshot->loaded);
        return 0;
    case ESP_EVENT_DROP:
        return drop_text(state, snapshot->start, snapshot->kept);
    case ESP_EVENT_REWIND:
        rewind_text(state, snapshot->kept);
        return 0;
    case ESP_SNAPSHOT_CLEAR:
        clear(state);
        return 0;
    case ESP_SNAPSHOT_COMPARE:
        return set_second(state, &snapshot->loaded);
    case ESP_SNAPSHOT_RECORD:
        snprintf(state->recording, sizeof state->recording, "%s", snapshot->text);
        return 0;
    case ESP_SNAPSHOT_MESSAGE:
    case ESP_SNAPSHOT_ERROR:
    case ESP_SNAPSHOT_REFUSED:
        set_message(state, snapshot);
        return 0;
    default:
        return 0;
    }
}

int esp_state_apply(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    if (!snapshot->second)
        return apply(state, snapshot);
    if (!state->compared)
        return 0;
    state->compared->phase = state->phase;
    return apply(state->compared, snapshot);
}
