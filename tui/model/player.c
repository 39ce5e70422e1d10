/* player.c - moves between positions in a recording; see player.h.
 *
 * In a live session, the worker reports phases in addition to the session's events (worker.c).
 * In a replay, the phases are derived from the events. After a prompt, the session processes it
 * and then generates text. An iteration means that text is being generated. The end of a
 * generation makes the session idle.
 */
#include "tui/model/player.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

enum {
    AT_ONCE = 64, /* largest number of events that a single call applies while playing */
    PACE = 12,    /* iterations per second, slow enough to watch */
    LATE = 1,     /* seconds; playback makes up for a shorter delay, and skips a longer one */
};

static int event_count(const struct esp_player *player)
{
    return esp_recording_events(player->recording);
}

static int type_of(const struct esp_player *player, int event)
{
    return esp_recording_entry(player->recording, event).type;
}

static int no_memory(char *err, size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to show the recording");
}

/* ------------------------------------------------------------------ one event */

static int set_phase(struct esp_player *player, int phase)
{
    esp_snapshot_reset(&player->snapshot, ESP_SNAPSHOT_PHASE);
    player->snapshot.phase = phase;
    return esp_state_apply(player->state, &player->snapshot);
}

static int apply(struct esp_player *player, const struct esp_event *event)
{
    int status = esp_snapshot_take(&player->snapshot, event);
    return status < 0 ? status : esp_state_apply(player->state, &player->snapshot);
}

static int clear(struct esp_player *player)
{
    esp_snapshot_reset(&player->snapshot, ESP_SNAPSHOT_CLEAR);
    int status = esp_state_apply(player->state, &player->snapshot);
    return status < 0 ? status : set_phase(player, ESP_PHASE_IDLE);
}

static int apply_iteration(struct esp_player *player, const struct esp_event *event)
{
    int status = 0;
    if (!esp_state_is_busy(player->state))
        status = set_phase(player, ESP_PHASE_GENERATING);
    if (status == 0)
        status = set_phase(player, player->stepped ? ESP_PHASE_WAITING : ESP_PHASE_GENERATING);
    return status < 0 ? status : apply(player, event);
}

/* Applies a recorded event and the phases that follow from it. */
static int apply_recorded(struct esp_player *player, const struct esp_event *event)
{
    int status;
    switch (event->type) {
    case ESP_EVENT_PROMPT:
        status = set_phase(player, ESP_PHASE_PREFILL);
        if (status == 0)
            status = apply(player, event);
        return status < 0 ? status : set_phase(player, ESP_PHASE_GENERATING);
    case ESP_EVENT_ITERATION:
        return apply_iteration(player, event);
    case ESP_EVENT_END:
        status = apply(player, event);
        return status < 0 ? status : set_phase(player, ESP_PHASE_IDLE);
    case ESP_EVENT_CLEAR:
        return clear(player);
    case ESP_EVENT_SETTING:
        if (strcmp(event->key, "step") != 0)
            return apply(player, event);
        player->stepped = strcmp(event->text, "on") == 0;
        return 0;
    case ESP_EVENT_MARKER:
        return 0;
    default:
        return apply(player, event);
    }
}

/* Applies the next event. After the last event the session is idle, even if the recording is
 * incomplete. */
static int next(struct esp_player *player, char *err, size_t errlen)
{
    const struct esp_event *event;
    int status = esp_recording_read(player->recording, player->at, &event, err, errlen);
    if (status < 0)
        return status;
    status = apply_recorded(player, event);
    if (status < 0)
        return no_memory(err, errlen);
    player->at++;
    if (esp_player_is_at_end(player) && esp_state_is_busy(player->state))
        status = set_phase(player, ESP_PHASE_IDLE);
    return status;
}

/* ------------------------------------------------------------------ steps of an iteration */

static void hide_step(struct esp_player *player)
{
    if (player->step == 0)
        return;
    player->step = player->steps = 0;
    player->state->has_partial = false;
    player->state->phase = player->phase;
}

/* Shows the first `step` steps of the next iteration. */
static int show_step(struct esp_player *player, int step, char *err, size_t errlen)
{
    const struct esp_event *event;
    int status = esp_recording_read(player->recording, player->at, &event, err, errlen);
    if (status < 0)
        return status;
    int steps = esp_recording_steps(player->recording);
    step = step < steps ? step : steps;
    hide_step(player);
    player->phase = player->state->phase;
    event = esp_recording_step(player->recording, step - 1);
    if (!event)
        return no_memory(err, errlen);
    struct esp_iteration untimed = *event->iteration;
    struct esp_event shown = *event;
    if (player->stepped) { /* in step mode, times mean nothing and were not shown */
        memset(untimed.seconds, 0, sizeof untimed.seconds);
        shown.iteration = &untimed;
    }
    if (set_phase(player, ESP_PHASE_WAITING) < 0 || apply(player, &shown) < 0)
        return no_memory(err, errlen);
    player->step = step;
    player->steps = steps;
    return 0;
}

/* ------------------------------------------------------------------ rebuilding the state */

static int show_header(struct esp_player *player)
{
    const struct esp_recording_header *header = esp_recording_header(player->recording);
    struct esp_snapshot *snapshot = &player->snapshot;
    esp_snapshot_reset(snapshot, ESP_SNAPSHOT_READY);
    struct esp_setup *loaded = &snapshot->loaded;
    *loaded = (struct esp_setup){.serial = 0};
    snprintf(loaded->target, sizeof loaded->target, "%s", header->target.name);
    snprintf(loaded->draft, sizeof loaded->draft, "%s", header->draft.name);
    snprintf(loaded->backend, sizeof loaded->backend, "%s", header->backend);
    snprintf(loaded->device, sizeof loaded->device, "%s", header->device);
    snprintf(loaded->drafter, sizeof loaded->drafter, "%.255s", header->drafter);
    snprintf(loaded->verifier, sizeof loaded->verifier, "%.95s", header->verifier);
    loaded->values = header->values;
    loaded->lossy = header->lossy;
    loaded->context = header->context;
    return esp_state_apply(player->state, snapshot);
}

/* Returns the first of the events that must be applied one by one to reach `at`. */
static int first_event(const struct esp_player *player, int at)
{
    const struct esp_recording *recording = player->recording;
    int since_clear = esp_recording_iterations_of_text(recording, at - 1);
    int shown = esp_state_shown(since_clear), before = 0;
    if (since_clear == 0) {
        while (at > 0 && type_of(player, at - 1) != ESP_EVENT_CLEAR)
            at--;
        return at;
    }
    before = at < event_count(player) ? esp_recording_entry(recording, at).iterations
                                      : esp_recording_iterations(recording);
    return esp_recording_iteration_event(recording, before - shown);
}

static int apply_settings(struct esp_player *player, int end, char *err, size_t errlen)
{
    const struct esp_event *event;
    int status = 0;
    for (int i = 0; i < end && status == 0; i++) {
        if (type_of(player, i) != ESP_EVENT_SETTING)
            continue;
        status = esp_recording_read(player->recording, i, &event, err, errlen);
        if (status == 0 && apply_recorded(player, event) < 0)
            status = no_memory(err, errlen);
    }
    return status;
}

static int apply_text(struct esp_player *player, int end)
{
    const struct esp_text_token *tokens;
    struct esp_snapshot *snapshot = &player->snapshot;
    int count = esp_recording_text(player->recording, end - 1, &tokens);
    esp_snapshot_reset(snapshot, ESP_EVENT_PROMPT);
    if (count < 0)
        return count;
    if (esp_snapshot_reserve(snapshot, count) < 0)
        return ESP_E_MEMORY;
    for (int i = 0; i < count; i++)
        snapshot->tokens[i] = (struct esp_written){
            .token = tokens[i].token, .iteration = ESP_BY_FORGOTTEN, .kind = tokens[i].kind};
    snapshot->token_count = count;
    return esp_state_apply(player->state, snapshot);
}

static int start_at(struct esp_player *player, int event, char *err, size_t errlen)
{
    player->stepped = false;
    player->at = event;
    if (clear(player) < 0 || show_header(player) < 0)
        return no_memory(err, errlen);
    int status = apply_settings(player, event, err, errlen);
    if (status < 0)
        return status;
    if (apply_text(player, event) < 0)
        return no_memory(err, errlen);
    player->state->baseline = esp_recording_baseline(player->recording, event - 1);
    return 0;
}

int esp_player_seek(struct esp_player *player, int at, int step, char *err, size_t errlen)
{
    int count = event_count(player), status = 0;
    at = at < 0 ? 0 : at > count ? count : at;
    if (at != player->at)
        hide_step(player);
    int first = first_event(player, at);
    if (at < player->at || first > player->at)
        status = start_at(player, first, err, errlen);
    while (status == 0 && player->at < at)
        status = next(player, err, errlen);
    if (status < 0)
        return status;
    if (step > 0 && at < count && type_of(player, at) == ESP_EVENT_ITERATION)
        return show_step(player, step, err, errlen);
    hide_step(player);
    return 0;
}

/* ------------------------------------------------------------------ positions */

bool esp_player_is_at_end(const struct esp_player *player)
{
    return player->at == event_count(player);
}

int esp_player_iterations(const struct esp_player *player)
{
    return esp_recording_iterations(player->recording);
}

int esp_player_iteration(const struct esp_player *player)
{
    return esp_player_is_at_end(player)
               ? esp_player_iterations(player)
               : esp_recording_entry(player->recording, player->at).iterations;
}

static double time_after(const struct esp_player *player, int events)
{
    return events > 0 ? esp_recording_entry(player->recording, events - 1).time : 0;
}

double esp_player_time(const struct esp_player *player)
{
    return time_after(player, player->at);
}

double esp_player_duration(const struct esp_player *player)
{
    return time_after(player, event_count(player));
}

int esp_player_go(struct esp_player *player, int count, char *err, size_t errlen)
{
    int iterations = esp_player_iterations(player), at = event_count(player);
    count = count < 0 ? 0 : count;
    if (count == 0 && iterations > 0)
        at = esp_recording_iteration_event(player->recording, 0);
    else if (count < iterations)
        at = esp_recording_iteration_event(player->recording, count - 1) + 1;
    return esp_player_seek(player, at, 0, err, errlen);
}

int esp_player_move(struct esp_player *player, int direction, char *err, size_t errlen)
{
    int now = esp_player_iteration(player);
    bool inside = player->step > 0; /* true: going back leads to the iteration's start */
    return esp_player_go(player, now + (direction > 0 ? 1 : inside ? 0 : -1), err, errlen);
}

int esp_player_step(struct esp_player *player, int direction, char *err, size_t errlen)
{
    int now = esp_player_iteration(player);
    int step = player->step + direction;
    if (player->step > 0 && step > 0 && step <= player->steps)
        return esp_player_seek(player, player->at, step, err, errlen);
    if (player->step > 0 && direction < 0)
        return esp_player_go(player, now, err, errlen);
    if (direction > 0 && (player->step > 0 || now == esp_player_iterations(player)))
        return esp_player_go(player, now + 1, err, errlen);
    if (direction < 0 && now == 0)
        return 0;
    int event = esp_recording_iteration_event(player->recording, direction > 0 ? now : now - 1);
    return esp_player_seek(player, event, direction > 0 ? 1 : INT_MAX, err, errlen);
}

static int find_markers(struct esp_player *player)
{
    int count = 0;
    for (int i = 0; i < event_count(player); i++)
        count += type_of(player, i) == ESP_EVENT_MARKER;
    player->markers = malloc(((size_t)count + 1) * sizeof *player->markers);
    if (!player->markers)
        return ESP_E_MEMORY;
    for (int i = 0; player->marker_count < count; i++)
        if (type_of(player, i) == ESP_EVENT_MARKER)
            player->markers[player->marker_count++] = i;
    return 0;
}

int esp_player_marker(const struct esp_player *player, int direction)
{
    int found = -1;
    for (int i = 0; i < player->marker_count; i++) {
        int after = player->markers[i] + 1;
        if (direction > 0 && after > player->at)
            return after;
        if (direction < 0 && after < player->at)
            found = after;
    }
    return found;
}

/* ------------------------------------------------------------------ time */

/* Returns the seconds from the last applied event to the next one, at the speed of the
 * playback. */
static double gap(const struct esp_player *player)
{
    struct esp_recording_entry entry = esp_recording_entry(player->recording, player->at);
    double seconds = player->at > 0 ? entry.time - time_after(player, player->at) : 0;
    if (player->speed > 0 && entry.type == ESP_EVENT_ITERATION)
        seconds = fmax(seconds, 1.0 / PACE);
    if (player->idle > 0)
        seconds = fmin(seconds, player->idle);
    return player->speed > 0 ? seconds / player->speed : seconds;
}

int esp_speed_parse(const char *text, double *speed, char *err, size_t errlen)
{
    char *end;
    double number = strtod(text, &end);
    bool given = end != text && (!*end || strcmp(end, "x") == 0);
    if (strcmp(text, "recorded") == 0)
        *speed = 0;
    else if (given && number >= ESP_SPEED_LEAST && number <= ESP_SPEED_MOST)
        *speed = number;
    else
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "speed takes a number from %g to %g, or recorded, not '%.40s'",
                        ESP_SPEED_LEAST, ESP_SPEED_MOST, text);
    return 0;
}

int esp_player_play(struct esp_player *player, bool on, double now, char *err, size_t errlen)
{
    int status = 0;
    if (on && esp_player_is_at_end(player))
        status = esp_player_go(player, 0, err, errlen);
    player->playing = on && status == 0 && !esp_player_is_at_end(player);
    if (player->playing)
        player->due = now + gap(player);
    return status;
}

int esp_player_advance(struct esp_player *player, double now, char *err, size_t errlen)
{
    int applied = 0, status = 0;
    while (player->playing && player->due <= now && applied < AT_ONCE && status == 0) {
        status = esp_player_seek(player, player->at + 1, 0, err, errlen);
        applied++;
        player->playing = status == 0 && !esp_player_is_at_end(player);
        if (player->playing)
            player->due = fmax(player->due, now - LATE) + gap(player);
    }
    return status < 0 ? status : applied > 0;
}

double esp_player_wait(const struct esp_player *player, double now)
{
    return !player->playing ? -1 : player->due > now ? player->due - now : 0;
}

/* ------------------------------------------------------------------ open and close */

int esp_player_open(struct esp_player *player, const char *path, struct esp_state *state,
                    char *err, size_t errlen)
{
    *player = (struct esp_player){.state = state, .speed = 1, .idle = ESP_IDLE_DEFAULT};
    int status = esp_recording_open(&player->recording, path, err, errlen);
    if (status < 0)
        return status;
    state->tokens = (struct esp_tokens){esp_recording_token_text, player->recording};
    status =
        find_markers(player) < 0 ? no_memory(err, errlen) : start_at(player, 0, err, errlen);
    if (status == 0)
        status = esp_player_go(player, 0, err, errlen);
    if (status < 0)
        esp_player_close(player);
    return status;
}

void esp_player_close(struct esp_player *player)
{
    esp_recording_close(player->recording);
    esp_snapshot_free(&player->snapshot);
    free(player->markers);
    *player = (struct esp_player){.at = 0};
}
