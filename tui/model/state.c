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
    esp_branches_free(&state->branches);
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

/* Returns the separator between turns of a conversation. It is an empty line, and a sign before
 * the user's text. It is shown instead of the control tokens of the chat format, and becomes
 * the text of the last control token. */
static const char *separator(const struct esp_state *state, int kind)
{
    const int last = state->span_count - 1;
    if (kind == ESP_TEXT_MARK || last < 0 || state->spans[last].kind != ESP_TEXT_MARK)
        return "";
    if (kind == ESP_TEXT_PROMPT)
        return state->byte_count > 0 ? "\n\n> " : "> ";
    return state->byte_count > 0 ? "\n\n" : "";
}

static int append_span(struct esp_state *state, const struct esp_written *token)
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
    state->spans[state->span_count++] = (struct esp_text_span){
        (uint32_t)state->byte_count, token->token, token->iteration, token->kind, token->score};
    add_bytes(state, bytes, length);
    return 0;
}

/* Appends a token to the text and to the tree of branches. If a branch already has the token,
 * uses the branch's token, which can have a score. If `anew` is true, replaces the
 * branch's token instead. */
static int append_token(struct esp_state *state, const struct esp_written *token, bool anew)
{
    struct esp_written *stored;
    if (state->has_branches) {
        if (esp_branches_append(&state->branches, token, anew, state->loaded.drafter, &stored) <
            0)
            return ESP_E_MEMORY;
        token = stored;
    }
    return append_span(state, token);
}

static int append_tokens(struct esp_state *state, const struct esp_written *tokens, int count,
                         bool anew)
{
    int status = 0;
    for (int i = 0; i < count && status == 0; i++)
        status = append_token(state, &tokens[i], anew);
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
    const int half = ESP_POINTS / 2; /* number of points dropped when there is no room */
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
    const int merged = snapshot->token_count - it->committed_count;
    if (status == 0)
        status = append_tokens(state, snapshot->tokens, merged, true);
    if (status < 0)
        return status;
    if (it->index >= 0)
        state->begins[it->index % ESP_KEPT] = (struct esp_begin){it->index, state->branches.at};
    return append_tokens(state, snapshot->tokens + merged, it->committed_count, true);
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

/* Returns the newest iteration. Often the last iteration of a text is a single token without
 * drafts. In this case, once the generation has ended, returns the iteration before it if that
 * iteration has a tree. */
static const struct esp_iteration *newest(const struct esp_state *state)
{
    const struct esp_iteration *it = esp_state_kept(state, 0),
                               *before = esp_state_kept(state, 1);
    if (!before || esp_state_is_busy(state) || it->tree.count > 1 || before->tree.count == 1)
        return it;
    return before;
}

const struct esp_iteration *esp_state_writer(const struct esp_state *state, int token,
                                             int *index)
{
    const struct esp_iteration *it;
    if (token < 0 || token >= state->span_count || state->spans[token].iteration < 0)
        return NULL;
    const int writer = state->spans[token].iteration, looked = token;
    *index = 0;
    while (token > 0 && state->spans[token - 1].iteration == writer) {
        token--;
        (*index)++;
    }
    for (int back = 0; (it = esp_state_kept(state, back)) && it->index >= writer; back++) {
        if (it->index != writer)
            continue;
        /* If a later iteration has generated the first tokens of this iteration again, the loop
         * above has not counted these tokens. */
        const int place = looked - it->position;
        if (place >= 0 && place < it->committed_count &&
            it->committed[place] == state->spans[looked].token)
            *index = place;
        return *index < it->committed_count ? it : NULL;
    }
    return NULL;
}

bool esp_state_began(const struct esp_state *state, const struct esp_iteration *it,
                     struct esp_text_place *place)
{
    if (!state->has_branches || !it || it->index < 0)
        return false;
    const struct esp_begin *begin = &state->begins[it->index % ESP_KEPT];
    *place = it == &state->partial.it ? state->branches.at : begin->place;
    return it == &state->partial.it || begin->iteration == it->index;
}

int esp_state_unscored(const struct esp_state *state, int from)
{
    for (int i = from > 1 ? from : 1; i < state->span_count; i++)
        if (state->spans[i].score.count == 0)
            return i;
    return -1;
}

double esp_state_perplexity(const struct esp_state *state)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < state->span_count; i++) {
        const struct esp_text_span *span = &state->spans[i];
        if ((span->kind == ESP_TEXT_DRAFTED || span->kind == ESP_TEXT_BONUS) &&
            span->score.count > 0 && span->score.p > 0) {
            sum -= log((double)span->score.p);
            count++;
        }
    }
    return count > 0 ? exp(sum / count) : NAN;
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

/* ------------------------------------------------------------------ applying snapshots */

static void set_message(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    snprintf(state->message, sizeof state->message, "%s", snapshot->text);
    state->message_is_error = snapshot->type != ESP_SNAPSHOT_MESSAGE;
    state->message_count++;
}

/* Sets the totals of a comparison to 0. */
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
    for (int i = 0; i < ESP_KEPT; i++)
        state->begins[i].iteration = -1;
    for (int i = 0; i < state->span_count; i++)
        if (state->spans[i].iteration >= 0)
            state->spans[i].iteration = ESP_BY_FORGOTTEN;
    esp_branches_forget_iterations(&state->branches);
    esp_trace_forget(&state->trace);
    state->has_partial = false;
    state->ended[0] = '\0';
    if (state->compared)
        forget_iterations(state->compared);
}

/* Begins a comparison with a second session that has this configuration, or ends one. */
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

/* Stores the current text, so undo can go back to it. */
static int keep_text(struct esp_state *state)
{
    return state->has_branches ? esp_branches_keep(&state->branches) : 0;
}

static void rewind_text(struct esp_state *state, int kept)
{
    if (kept < 0 || kept >= state->span_count)
        return;
    /* The separator after a control token is written again with the next text. */
    const bool mark = kept > 0 && state->spans[kept - 1].kind == ESP_TEXT_MARK;
    state->byte_count = state->spans[kept - mark].start;
    state->span_count = kept;
    if (state->has_branches)
        esp_branches_cut(&state->branches, kept);
    state->has_partial = false;
    state->ended[0] = '\0';
}

/* Removes tokens from the text. Then appends the tokens after them again, because their
 * separators can be different now. */
static int drop_text(struct esp_state *state, int start, int count)
{
    const int rest = state->span_count - start - count;
    int status = 0;
    if (start < 0 || count < 1 || rest < 0)
        return 0;
    struct esp_written *tokens = malloc(((size_t)rest + 1) * sizeof *tokens);
    if (!tokens)
        return ESP_E_MEMORY;
    for (int i = 0; i < rest; i++) {
        const struct esp_text_span *span = &state->spans[start + count + i];
        tokens[i] = (struct esp_written){span->token, span->iteration, span->kind, span->score};
    }
    rewind_text(state, start);
    status = append_tokens(state, tokens, rest, true);
    free(tokens);
    return status;
}

/* Switches to another text of the tree of branches, or begins a new branch. */
static int fork_text(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    const int why = snapshot->stage;
    int status = ESP_OK;
    if (why == ESP_FORK_NEW)
        status = keep_text(state);
    else if (why == ESP_FORK_UNDO || why == ESP_FORK_REDO)
        status = esp_branches_went_back(&state->branches, why == ESP_FORK_REDO);
    rewind_text(state, snapshot->kept);
    if (status == 0)
        status = append_tokens(state, snapshot->tokens, snapshot->token_count, false);
    state->ended[0] = '\0';
    state->forks++;
    return status;
}

static void set_scores(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    for (int i = 0; i < snapshot->token_count; i++) {
        const int place = snapshot->start + i;
        if (place < 0 || place >= state->span_count ||
            state->spans[place].token != snapshot->tokens[i].token)
            continue;
        state->spans[place].score = snapshot->tokens[i].score;
        if (state->has_branches)
            esp_branches_token(&state->branches, state->branches.at, place)->score =
                snapshot->tokens[i].score;
    }
}

/* Stores the data of newly loaded models. Drops the old iterations if the models have other
 * tokens. */
static void set_loaded(struct esp_state *state, const struct esp_setup *loaded)
{
    if (loaded->serial != state->loaded.serial) {
        forget_iterations(state);
        state->baseline = 0;
    }
    if (loaded->anew)
        esp_branches_free(&state->branches);
    if (loaded->tokens.text)
        state->tokens = loaded->tokens;
    state->loaded = *loaded;
    state->ready = true;
}

static void set_phase(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    if (state->phase == ESP_PHASE_IDLE && snapshot->phase == ESP_PHASE_GENERATING)
        keep_text(state); /* the text is continued without a new prompt */
    state->phase = snapshot->phase;
    state->fraction = snapshot->fraction;
    snprintf(state->phase_text, sizeof state->phase_text, "%s", snapshot->text);
    if (state->phase == ESP_PHASE_PREFILL || state->phase == ESP_PHASE_GENERATING)
        state->ended[0] = '\0';
    if (state->phase == ESP_PHASE_IDLE)
        state->has_partial = false;
}

/* If an event is going to change the text in a way that can be undone, stores the current text
 * for undo. */
static int keep_before(struct esp_state *state, int type)
{
    switch (type) {
    case ESP_EVENT_PROMPT:
    case ESP_EVENT_REWIND:
    case ESP_EVENT_DROP:
    case ESP_SNAPSHOT_CLEAR:
        return keep_text(state);
    default:
        return 0;
    }
}

static int apply(struct esp_state *state, const struct esp_snapshot *snapshot)
{
    if (keep_before(state, snapshot->type) < 0)
        return ESP_E_MEMORY;
    switch (snapshot->type) {
    case ESP_EVENT_PROMPT:
        return append_tokens(state, snapshot->tokens, snapshot->token_count, true);
    case ESP_SNAPSHOT_FORK:
        return fork_text(state, snapshot);
    case ESP_SNAPSHOT_SCORES:
        set_scores(state, snapshot);
        return 0;
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
        rewind_text(state, 0);
        forget_iterations(state);
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
