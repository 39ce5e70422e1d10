/* replay.c - moves a player and keeps the screen with it; see replay.h. */
#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "command.h"
#include "error.h"
#include "search.h"

static const double ANEW = 1.5; /* seconds after which a digit begins another number */

/* ------------------------------------------------------------------ moving */

/* After a jump: a tree that was held is that of another iteration now. */
static void follow(struct esp_app *app, int status, const char *err)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(&app->state, -1, &stages);
    if (app->ui.look.iteration >= 0)
        esp_look_hold(&app->ui.look, &app->state, it ? it->index : -1);
    app->ui.view[ESP_PANE_text].anchor = app->ui.look.match = -1;
    app->changed = true;
    if (status < 0)
        esp_app_say(app, true, "%s", err);
}

/* A jump while it plays goes on playing from there; at the end there is nothing left to play,
 * and to play would begin anew. */
static void play_on(struct esp_app *app)
{
    char err[512];
    if (esp_player_is_at_end(app->player))
        app->player->playing = false;
    if (app->player->playing)
        esp_player_play(app->player, true, esp_clock(), err, sizeof err);
}

void esp_replay_go(struct esp_app *app, int iterations)
{
    char err[512];
    if (esp_player_is_at_end(app->player) && iterations < esp_player_iterations(app->player))
        app->player->playing = false;
    follow(app, esp_player_go(app->player, iterations, err, sizeof err), err);
    play_on(app);
}

static void seek(struct esp_app *app, int at)
{
    char err[512];
    follow(app, esp_player_seek(app->player, at, 0, err, sizeof err), err);
    play_on(app);
}

void esp_replay_play(struct esp_app *app, bool on)
{
    char err[512];
    bool anew = on && esp_player_is_at_end(app->player);
    int status = esp_player_play(app->player, on, esp_clock(), err, sizeof err);
    if (anew || status < 0)
        follow(app, status, err);
    app->changed = true;
}

/* A step, of an iteration or less, also pauses: one wants to look. */
static void move(struct esp_app *app, int direction, bool whole)
{
    char err[512];
    struct esp_player *player = app->player;
    player->playing = false;
    follow(app,
           whole ? esp_player_move(player, direction, err, sizeof err)
                 : esp_player_step(player, direction, err, sizeof err),
           err);
}

static void go_to_marker(struct esp_app *app, int direction)
{
    char err[512];
    const struct esp_event *event;
    int at = esp_player_marker(app->player, direction);
    if (at < 0) {
        esp_app_say(app, true,
                    app->player->marker_count ? "there is no marker %s"
                                              : "the recording has no markers",
                    direction > 0 ? "after this" : "before this");
        return;
    }
    seek(app, at);
    if (esp_recording_read(app->player->recording, at - 1, &event, err, sizeof err) == 0)
        esp_app_say(app, false, "marker%s%s", event->text && *event->text ? ": " : "",
                    event->text ? event->text : "");
}

/* The last place in the text where what is looked for occurs is marked. */
static void mark_match(struct esp_app *app)
{
    const struct esp_state *state = &app->state;
    long at = -1, from = 0;
    while ((from = esp_search_forward(state->bytes, state->byte_count, (size_t)from,
                                      app->ui.look.search)) >= 0)
        at = from++;
    app->ui.look.match = at;
}

void esp_replay_find(struct esp_app *app, int direction)
{
    const char *what = app->ui.look.search;
    int before = app->player->at, at = esp_player_find(app->player, what, direction);
    if (at == -2)
        esp_app_say(app, true, "out of memory: the recorded text cannot be searched");
    if (at == -1)
        esp_app_say(app, true, "not found: '%s' is not in the recorded text", what);
    if (at < 0)
        return;
    bool round = direction > 0 ? at <= before : at >= before;
    app->player->playing = app->ui.help = false;
    seek(app, at);
    mark_match(app);
    int iteration = esp_player_iteration(app->player) - 1;
    char where[32] = "the prompt";
    if (iteration >= 0)
        snprintf(where, sizeof where, "iteration %d", iteration);
    esp_app_say(app, false, "'%s' in %s%s; n the next, N the one before", what, where,
                !round          ? ""
                : direction > 0 ? ", from the start again"
                                : ", from the end");
}

/* ------------------------------------------------------------------ speed */

void esp_replay_speed(struct esp_app *app, double speed)
{
    struct esp_player *player = app->player;
    if (player->speed > 0)
        app->pace = player->speed;
    player->speed = app->options.speed = speed;
    play_on(app);
    if (speed > 0)
        esp_app_say(app, false, "speed %gx; F6 plays it as it was recorded", speed);
    else
        esp_app_say(app, false, "as it was recorded; F6 plays it for an eye to follow");
}

/* The next power of two. */
static void change_speed(struct esp_app *app, double factor)
{
    double speed = app->player->speed > 0 ? app->player->speed * factor : 1;
    speed = exp2(factor > 1 ? floor(log2(speed)) : ceil(log2(speed)));
    esp_replay_speed(app, fmin(fmax(speed, ESP_SPEED_LEAST), ESP_SPEED_MOST));
}

void esp_replay_idle(struct esp_app *app, double seconds)
{
    app->player->idle = seconds;
    play_on(app);
    if (seconds > 0)
        esp_app_say(app, false, "no pause is longer than %g s", seconds);
    else
        esp_app_say(app, false, "pauses are as long as they were");
}

/* ------------------------------------------------------------------ keys */

/* A digit goes to its tenth; several make the number that g goes to. */
static void type_digit(struct esp_app *app, int key)
{
    double now = esp_clock();
    if (now - app->typed_at > ANEW)
        app->typed[0] = '\0';
    app->typed_at = now;
    size_t length = strlen(app->typed);
    int tenths = esp_player_iterations(app->player) * (key - '0');
    if (length + 1 < sizeof app->typed)
        snprintf(app->typed + length, sizeof app->typed - length, "%c", key);
    esp_replay_go(app, tenths / 10);
}

static void go_to_typed(struct esp_app *app, const char *typed)
{
    char line[32];
    snprintf(line, sizeof line, ":seek %s", typed);
    if (*typed)
        esp_command_run(app, line);
    else
        esp_replay_go(app, 0);
}

bool esp_replay_act(struct esp_app *app, int action, int key)
{
    char typed[sizeof app->typed];
    struct esp_player *player = app->player;
    memcpy(typed, app->typed, sizeof typed);
    if (action != ESP_ACTION_DIGIT)
        app->typed[0] = '\0';
    switch (action) {
    case ESP_ACTION_PAUSE:
        esp_replay_play(app, !player->playing);
        return true;
    case ESP_ACTION_EARLIER:
    case ESP_ACTION_LATER:
        move(app, action == ESP_ACTION_EARLIER ? -1 : 1, true);
        return true;
    case ESP_ACTION_LEFT:
    case ESP_ACTION_RIGHT:
        if (app->ui.wish.focused && app->ui.wish.current == ESP_PANE_tree)
            return false;
        move(app, action == ESP_ACTION_LEFT ? -1 : 1, true);
        return true;
    case ESP_ACTION_FIRST:
    case ESP_ACTION_LAST:
        if (app->ui.wish.focused || app->ui.help)
            return false;
        esp_replay_go(app, action == ESP_ACTION_FIRST ? 0 : esp_player_iterations(player));
        return true;
    case ESP_ACTION_STAGE_BACK:
        move(app, -1, false);
        return true;
    case ESP_ACTION_STAGE_FORWARD:
        move(app, 1, false);
        return true;
    case ESP_ACTION_SLOWER:
        change_speed(app, 0.5);
        return true;
    case ESP_ACTION_FASTER:
        change_speed(app, 2);
        return true;
    case ESP_ACTION_FULL_SPEED:
        esp_replay_speed(app, player->speed > 0 ? 0 : app->pace);
        return true;
    case ESP_ACTION_DIGIT:
        type_digit(app, key);
        return true;
    case ESP_ACTION_GO:
        go_to_typed(app, typed);
        return true;
    case ESP_ACTION_GO_END:
        esp_replay_go(app, esp_player_iterations(player));
        return true;
    case ESP_ACTION_MARKER_BACK:
        go_to_marker(app, -1);
        return true;
    case ESP_ACTION_MARKER_FORWARD:
        go_to_marker(app, 1);
        return true;
    case ESP_ACTION_STEP_MODE:
    case ESP_ACTION_STEP:
        return true; /* there is no engine to stop */
    default:
        return false;
    }
}

/* ------------------------------------------------------------------ open, play, close */

int esp_replay_open(struct esp_app *app, char *err, size_t errlen)
{
    const struct interface_options *options = &app->options;
    struct esp_player *player = calloc(1, sizeof *player);
    if (!player)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the recording");
    int status = esp_player_open(player, options->recording, &app->state, err, errlen);
    if (status < 0) {
        free(player);
        return status;
    }
    player->speed = options->speed;
    player->idle = options->idle;
    app->pace = 1;
    app->player = player;
    app->ui.player = player;
    app->ui.typed = app->typed;
    return 0;
}

void esp_replay_close(struct esp_app *app)
{
    if (app->player)
        esp_player_close(app->player);
    free(app->player);
    app->player = NULL;
}

void esp_replay_receive(struct esp_app *app)
{
    char err[512];
    bool played = app->player->playing;
    int status = esp_player_advance(app->player, esp_clock(), err, sizeof err);
    if (status < 0)
        esp_app_say(app, true, "%s", err);
    if (status != 0 || played != app->player->playing)
        app->changed = true;
}

int esp_replay_wait(const struct esp_app *app)
{
    double seconds = esp_player_wait(app->player, esp_clock());
    return seconds < 0 ? -1 : (int)ceil(fmin(seconds, 1e3) * 1e3);
}
