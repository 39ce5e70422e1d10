/* replay.c - moves a player and updates the screen; see replay.h. */
#include "tui/commands/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/status.h"
#include "viz/search.h"

static const double ANEW = 1.5; /* seconds; a digit after a longer pause starts a new number */

/* ------------------------------------------------------------------ moving */

/* Called after a jump to another position of the recording. If the panes held an iteration
 * (esp_look_hold), they now hold the newest iteration at the new position. Returns `status`,
 * the status of the jump. */
static int follow(struct esp_control *control, int status)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(&control->state, -1, &stages);
    if (control->ui.look.iteration >= 0)
        esp_look_hold(&control->ui.look, &control->state, it ? it->index : -1);
    control->ui.view[ESP_PANE_text].anchor = control->ui.look.match = -1;
    control->requests.changed = true;
    return status;
}

/* Continues to play after a jump. At the end of the recording it pauses instead, because
 * playing would start from the beginning. */
static void play_on(struct esp_control *control)
{
    char err[512];
    if (esp_player_is_at_end(control->player))
        control->player->playing = false;
    if (control->player->playing)
        esp_player_play(control->player, true, esp_clock(), err, sizeof err);
}

/* Goes to the position after `iterations` iterations. */
static int go(struct esp_control *control, int iterations)
{
    if (esp_player_is_at_end(control->player) &&
        iterations < esp_player_iterations(control->player))
        control->player->playing = false;
    int status = follow(control, esp_player_go(control->player, iterations, control->reply,
                                               sizeof control->reply));
    play_on(control);
    return status;
}

int esp_replay_seek(struct esp_control *control, const char *where)
{
    int last = esp_player_iterations(control->player) - 1;
    char *end;
    long number = strtol(where, &end, 10);
    if (strcmp(where, "start") == 0)
        return go(control, 0);
    if (strcmp(where, "end") == 0)
        return go(control, last + 1);
    if (end == where || *end || number < 0 || number > last)
        return esp_refuse(control,
                          ":seek takes an iteration from 0 to %d, start or end, not '%.40s'",
                          last, where);
    return go(control, (int)number + 1);
}

static int seek(struct esp_control *control, int at)
{
    int status = follow(control, esp_player_seek(control->player, at, 0, control->reply,
                                                 sizeof control->reply));
    play_on(control);
    return status;
}

int esp_replay_play(struct esp_control *control, bool on)
{
    bool anew = on && esp_player_is_at_end(control->player);
    int status = esp_player_play(control->player, on, esp_clock(), control->reply,
                                 sizeof control->reply);
    control->requests.changed = true;
    return anew || status < 0 ? follow(control, status) : ESP_OK;
}

/* Moves by an iteration if `whole` is true, and by a stage otherwise. Then pauses. */
static int move(struct esp_control *control, int direction, bool whole)
{
    struct esp_player *player = control->player;
    player->playing = false;
    return follow(
        control,
        whole ? esp_player_move(player, direction, control->reply, sizeof control->reply)
              : esp_player_step(player, direction, control->reply, sizeof control->reply));
}

static int go_to_marker(struct esp_control *control, int direction)
{
    char err[512];
    const struct esp_event *event;
    int at = esp_player_marker(control->player, direction);
    if (at < 0 && control->player->marker_count == 0)
        return esp_refuse(control, "the recording has no markers");
    if (at < 0)
        return esp_refuse(control, "there is no marker %s this position",
                          direction > 0 ? "after" : "before");
    int status = seek(control, at);
    if (status == ESP_OK &&
        esp_recording_read(control->player->recording, at - 1, &event, err, sizeof err) == 0)
        esp_answer(control, "marker%s%s", event->text && *event->text ? ": " : "",
                   event->text ? event->text : "");
    return status;
}

/* Highlights the last match in the text. */
static void mark_match(struct esp_control *control)
{
    const struct esp_state *state = &control->state;
    long at = -1, from = 0;
    while ((from = esp_search_forward(state->bytes, state->byte_count, (size_t)from,
                                      control->ui.look.search)) >= 0)
        at = from++;
    control->ui.look.match = at;
}

int esp_replay_find(struct esp_control *control, int direction)
{
    const char *what = control->ui.look.search;
    int before = control->player->at, at = esp_player_find(control->player, what, direction);
    if (at == -2)
        return esp_refuse(control, "out of memory: the recorded text cannot be searched");
    if (at == -1)
        return esp_refuse(control, "not found: '%s' is not in the recorded text", what);
    bool round = direction > 0 ? at <= before : at >= before;
    control->player->playing = control->ui.help = false;
    seek(control, at);
    mark_match(control);
    int iteration = esp_player_iteration(control->player) - 1;
    char where[32] = "the prompt";
    if (iteration >= 0)
        snprintf(where, sizeof where, "iteration %d", iteration);
    return esp_answer(control, "'%s' in %s%s; n: next, N: previous", what, where,
                      !round          ? ""
                      : direction > 0 ? ", continued from the start"
                                      : ", continued from the end");
}

/* ------------------------------------------------------------------ speed */

int esp_replay_speed(struct esp_control *control, double speed)
{
    struct esp_player *player = control->player;
    if (player->speed > 0)
        control->pace = player->speed;
    player->speed = control->settings.options.speed = speed;
    play_on(control);
    if (speed > 0)
        return esp_answer(control, "speed %gx; F6: as recorded", speed);
    return esp_answer(control, "speed as recorded; F6: slow enough to follow");
}

/* Multiplies the speed by `factor`, and rounds it to a power of two. */
static int change_speed(struct esp_control *control, double factor)
{
    double speed = control->player->speed > 0 ? control->player->speed * factor : 1;
    speed = exp2(factor > 1 ? floor(log2(speed)) : ceil(log2(speed)));
    return esp_replay_speed(control, fmin(fmax(speed, ESP_SPEED_LEAST), ESP_SPEED_MOST));
}

int esp_replay_idle(struct esp_control *control, double seconds)
{
    control->player->idle = seconds;
    play_on(control);
    if (seconds > 0)
        return esp_answer(control, "pauses are limited to %g s", seconds);
    return esp_answer(control, "pauses are not limited");
}

/* ------------------------------------------------------------------ keys */

/* Handles a digit. A digit jumps to that tenth of the recording. Several digits form the number
 * of an iteration, and the key g then goes to this iteration. */
static int type_digit(struct esp_control *control, int key)
{
    struct esp_typed *typed = &control->typed;
    double now = esp_clock();
    if (now - typed->at > ANEW)
        typed->digits[0] = '\0';
    typed->at = now;
    size_t length = strlen(typed->digits);
    int tenths = esp_player_iterations(control->player) * (key - '0');
    if (length + 1 < sizeof typed->digits)
        snprintf(typed->digits + length, sizeof typed->digits - length, "%c", key);
    return go(control, tenths / 10);
}

int esp_replay_act(struct esp_control *control, int action, int key)
{
    const struct esp_typed typed = control->typed;
    struct esp_player *player = control->player;
    if (action != ESP_ACTION_DIGIT)
        control->typed.digits[0] = '\0';
    switch (action) {
    case ESP_ACTION_PAUSE:
        return esp_replay_play(control, !player->playing);
    case ESP_ACTION_EARLIER:
    case ESP_ACTION_LATER:
        return move(control, action == ESP_ACTION_EARLIER ? -1 : 1, true);
    case ESP_ACTION_LEFT:
    case ESP_ACTION_RIGHT:
        if (control->ui.layout.focused && control->ui.layout.current == ESP_PANE_tree)
            return ESP_REPLAY_IGNORES;
        return move(control, action == ESP_ACTION_LEFT ? -1 : 1, true);
    case ESP_ACTION_FIRST:
    case ESP_ACTION_LAST:
        if (control->ui.layout.focused || control->ui.help)
            return ESP_REPLAY_IGNORES;
        return go(control, action == ESP_ACTION_FIRST ? 0 : esp_player_iterations(player));
    case ESP_ACTION_STAGE_BACK:
        return move(control, -1, false);
    case ESP_ACTION_STAGE_FORWARD:
        return move(control, 1, false);
    case ESP_ACTION_SLOWER:
        return change_speed(control, 0.5);
    case ESP_ACTION_FASTER:
        return change_speed(control, 2);
    case ESP_ACTION_FULL_SPEED:
        return esp_replay_speed(control, player->speed > 0 ? 0 : control->pace);
    case ESP_ACTION_DIGIT:
        return type_digit(control, key);
    case ESP_ACTION_GO:
        return esp_replay_seek(control, *typed.digits ? typed.digits : "start");
    case ESP_ACTION_GO_END:
        return go(control, esp_player_iterations(player));
    case ESP_ACTION_MARKER_BACK:
        return go_to_marker(control, -1);
    case ESP_ACTION_MARKER_FORWARD:
        return go_to_marker(control, 1);
    case ESP_ACTION_STEP_MODE:
    case ESP_ACTION_STEP:
        return ESP_OK; /* a replay has no engine to stop */
    default:
        return ESP_REPLAY_IGNORES;
    }
}

/* ------------------------------------------------------------------ open, play, close */

int esp_replay_open(struct esp_control *control, char *err, size_t errlen)
{
    const struct esp_interface_options *options = &control->settings.options;
    struct esp_player *player = calloc(1, sizeof *player);
    if (!player)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the recording");
    int status = esp_player_open(player, options->recording, &control->state, err, errlen);
    if (status < 0) {
        free(player);
        return status;
    }
    player->speed = options->speed;
    player->idle = options->idle;
    control->pace = 1;
    control->player = player;
    control->ui.player = player;
    control->ui.typed = control->typed.digits;
    return 0;
}

void esp_replay_close(struct esp_control *control)
{
    if (control->player)
        esp_player_close(control->player);
    free(control->player);
    control->player = NULL;
}

int esp_replay_receive(struct esp_control *control)
{
    bool played = control->player->playing;
    int status =
        esp_player_advance(control->player, esp_clock(), control->reply, sizeof control->reply);
    if (status != 0 || played != control->player->playing)
        control->requests.changed = true;
    return status < 0 ? status : ESP_OK;
}

int esp_replay_wait(const struct esp_player *player)
{
    double seconds = esp_player_wait(player, esp_clock());
    return seconds < 0 ? -1 : (int)ceil(fmin(seconds, 1e3) * 1e3);
}
