/* app.c - keys to actions, lines to commands and prompts, reports to the state; see app.h. */
#include "app.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "error.h"
#include "palette_items.h"
#include "prompts.h"
#include "reference.h"
#include "replay.h"
#include "safe.h"
#include "settings.h"

enum { NEW_TOKENS = 256, PACE = 12 /* iterations a second that an eye can follow */ };

/* ------------------------------------------------------------------ lines */

void esp_app_say(struct esp_app *app, bool error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(app->message, sizeof app->message, format, args);
    va_end(args);
    app->ui.message = app->message;
    app->ui.message_is_error = error;
    app->changed = true;
}

void esp_app_copy(struct esp_app *app, const char *bytes, size_t length)
{
    free(app->clipboard);
    app->clipboard = malloc(length);
    app->clipboard_length = app->clipboard ? length : 0;
    if (app->clipboard)
        memcpy(app->clipboard, bytes, length);
    esp_app_say(app, false, "%zu bytes handed to the clipboard, if the terminal takes them",
                app->clipboard_length);
}

/* Goes to where the text that is looked for occurs next, and says which of how many it is. */
static void find(struct esp_app *app, int pane, int step)
{
    const char *what = app->ui.look.search;
    if (!*what) {
        esp_app_say(app, true, "nothing is looked for; / and a text begin a search");
        return;
    }
    if (app->player && pane != ESP_PANE_tree) {
        esp_replay_find(app, step);
        return;
    }
    struct esp_found found = esp_ui_find(&app->ui, &app->state, pane, step, app->canvas.width,
                                         app->canvas.height);
    const char *where = esp_panes[app->ui.wish.current]->name, *round = "";
    if (found.round && found.count > 1)
        round = step > 0 ? ", from the start again" : ", from the end";
    if (found.count == 0)
        esp_app_say(app, true, "not found: '%s' is not in the %s", what, where);
    else
        esp_app_say(app, false, "'%s' in the %s: %d of %d%s; n the next, N the one before", what,
                    where, found.index, found.count, round);
}

/* A line "/TEXT"; without a text nothing is marked any more. */
static void search(struct esp_app *app, const char *what)
{
    struct esp_look *look = &app->ui.look;
    snprintf(look->search, sizeof look->search, "%s", what);
    look->match = -1;
    if (*what)
        find(app, app->searched, 1);
}

static void submit(void *user, const char *line)
{
    struct esp_app *app = user;
    if (line[0] == '/') {
        esp_input_remember(app->input, line);
        search(app, line + 1);
        return;
    }
    if (line[0] == ':') {
        esp_input_remember(app->input, line);
        esp_command_run(app, line);
        return;
    }
    if (app->player)
        return;
    const char *why = esp_prompts_refusal(app);
    if (why) {
        app->put_back = strdup(line);
        esp_app_say(app, true, "%s", why);
        return;
    }
    esp_input_remember(app->input, line);
    esp_prompts_send(app, line);
    app->ui.view[ESP_PANE_text].anchor = -1;
    esp_look_hold(&app->ui.look, &app->state, -1);
}

static void complete(void *user, const char *before, const char *word,
                     struct esp_choices *choices)
{
    if (before[0] == ':')
        esp_command_complete(user, before, word, choices);
}

/* Runs a command, or begins one that ends with a blank: the user chooses how it goes on. */
static void run_command(struct esp_app *app, const char *line)
{
    if (!strchr(" =", line[strlen(line) - 1])) {
        esp_command_run(app, line);
        return;
    }
    app->ui.wish.focused = app->ui.help = false;
    esp_input_replace(app->input, line);
    esp_input_list(app->input);
}

/* ------------------------------------------------------------------ keys */

void esp_app_interrupt(struct esp_app *app)
{
    app->changed = true;
    if (app->interrupts++ > 0) {
        app->leaving = true;
        return;
    }
    if (app->player && app->player->playing) {
        esp_replay_play(app, false);
        esp_app_say(app, false, "paused; C-c again leaves");
        return;
    }
    if (app->worker && (esp_state_is_busy(&app->state) ||
                        (app->state.phase == ESP_PHASE_LOADING && app->state.ready))) {
        esp_mailbox_stop(esp_worker_mailbox(app->worker));
        esp_app_say(app, false, "stopped; C-c again leaves");
        return;
    }
    esp_input_replace(app->input, "");
    esp_app_say(app, false, "C-c again leaves");
}

void esp_app_step_mode(struct esp_app *app, bool on)
{
    app->ui.stepping = on;
    esp_mailbox_step_mode(esp_worker_mailbox(app->worker), on);
    if (on && !esp_state_is_busy(&app->state))
        esp_app_say(app, false,
                    "step mode: submit a prompt, then Space runs one stage at a time");
    app->changed = true;
}

int esp_app_theme(struct esp_app *app, const char *name, char *err, size_t errlen)
{
    char whole[PATH_MAX];
    int status = esp_theme_load(&app->theme, name, err, errlen);
    if (status < 0)
        return status;
    snprintf(app->theme_name, sizeof app->theme_name, "%.1023s",
             strchr(name, '/') && realpath(name, whole) ? whole : name);
    app->new_theme = app->changed = true;
    return 0;
}

/* The theme that was asked for must be there; without one, that which suits the background. */
static int first_theme(struct esp_app *app, const char *name, char *err, size_t errlen)
{
    const char *colours = getenv("COLORFGBG"),
               *background = colours ? strrchr(colours, ';') : NULL;
    bool light =
        background && (strcmp(background, ";7") == 0 || strcmp(background, ";15") == 0);
    esp_theme_plain(&app->theme);
    snprintf(app->theme_name, sizeof app->theme_name, "%s", app->theme.name);
    app->new_theme = true;
    int status = esp_app_theme(app, name ? name : light ? "light" : "dark", err, errlen);
    return name ? status : 0;
}

void esp_app_pace(struct esp_app *app, double pace)
{
    app->ui.pace = pace;
    esp_mailbox_pace(esp_worker_mailbox(app->worker), pace);
    if (pace > 0)
        app->pace = pace;
    app->changed = true;
}

static void step(struct esp_app *app)
{
    if (esp_state_is_busy(&app->state))
        esp_mailbox_step(esp_worker_mailbox(app->worker));
    else
        esp_app_say(app, false, "submit a prompt first; an empty line goes on writing");
}

static void act(struct esp_app *app, int action, int key)
{
    if (app->player && esp_replay_act(app, action, key))
        return;
    switch (action) {
    case ESP_ACTION_STEP_MODE:
        esp_app_step_mode(app, !app->ui.stepping);
        break;
    case ESP_ACTION_STEP:
        step(app);
        break;
    case ESP_ACTION_FULL_SPEED:
        esp_app_pace(app, app->ui.pace > 0 ? 0 : app->pace);
        break;
    case ESP_ACTION_QUIT:
    case ESP_ACTION_EOF:
        app->leaving = true;
        break;
    case ESP_ACTION_SUSPEND:
        app->suspend = true;
        break;
    case ESP_ACTION_REDRAW:
        app->redraw = true;
        break;
    case ESP_ACTION_SEARCH:
        app->searched = app->ui.wish.focused ? app->ui.wish.current : ESP_PANE_text;
        app->ui.wish.focused = app->ui.help = false;
        esp_input_replace(app->input, "/");
        break;
    case ESP_ACTION_SEARCH_NEXT:
    case ESP_ACTION_SEARCH_BACK:
        find(app, app->ui.wish.focused ? app->ui.wish.current : ESP_PANE_text,
             action == ESP_ACTION_SEARCH_NEXT ? 1 : -1);
        break;
    case ESP_ACTION_PALETTE:
        esp_palette_fill(app);
        break;
    case ESP_ACTION_HIDE:
        if (esp_ui_act(&app->ui, &app->state, action, app->canvas.width, app->canvas.height))
            esp_app_say(app, false, ":hidden none shows all panes again");
        else
            esp_app_say(app, true,
                        app->ui.wish.focused && !app->ui.help
                            ? "text and tree cannot both be hidden"
                            : "Tab focuses a pane, and x hides it then");
        break;
    default:
        esp_ui_act(&app->ui, &app->state, action, app->canvas.width, app->canvas.height);
        break;
    }
}

/* Readline empties its line after handing one over; only then can another stand there. */
static void put_back(struct esp_app *app)
{
    if (!app->put_back)
        return;
    esp_input_replace(app->input, app->put_back);
    free(app->put_back);
    app->put_back = NULL;
}

/* Does what the selected item of the palette says; keys do it wherever the focus is. */
static void choose(struct esp_app *app)
{
    const struct esp_palette_item item = *esp_palette_selected(&app->ui.palette);
    char line[128];
    snprintf(line, sizeof line, "%s", item.text);
    esp_palette_close(&app->ui.palette);
    if (!item.binding)
        run_command(app, line);
    else if (item.binding->command)
        run_command(app, item.binding->command);
    else if (item.binding->action == ESP_ACTION_INTERRUPT)
        esp_app_interrupt(app);
    else if (item.binding->action != ESP_ACTION_NONE)
        act(app, item.binding->action, esp_key_parse(item.binding->key));
    else
        esp_input_key(app->input, esp_key_parse(item.binding->key));
    put_back(app);
}

static void palette_key(struct esp_app *app, int key)
{
    app->changed = true;
    app->interrupts = 0;
    app->ui.message = NULL;
    switch (esp_palette_key(&app->ui.palette, key)) {
    case ESP_PALETTE_LEFT:
        esp_palette_close(&app->ui.palette);
        break;
    case ESP_PALETTE_CHOSE:
        choose(app);
        break;
    default:
        break;
    }
}

void esp_app_key(struct esp_app *app, int key)
{
    if (app->ui.palette.open) {
        palette_key(app, key);
        return;
    }
    const int width = app->canvas.width, height = app->canvas.height;
    const bool tiny = esp_ui_layout(&app->ui, width, height).kind == ESP_LAYOUT_TINY;
    const bool empty = esp_input_is_empty(app->input), replay = app->player != NULL;
    struct esp_when when = {.pane = app->ui.wish.focused || app->ui.help || tiny ||
                                    (replay && empty),
                            .empty = empty,
                            .step = app->ui.stepping,
                            .replay = replay};
    const struct esp_binding *binding = esp_key_binding(key, when);
    int action = binding ? binding->action : ESP_ACTION_NONE;
    app->changed = true;
    app->ui.message = NULL;
    esp_input_unlist(app->input);
    if (action == ESP_ACTION_INTERRUPT) {
        esp_app_interrupt(app);
        return;
    }
    app->interrupts = 0;
    if (binding && binding->command) {
        run_command(app, binding->command);
        put_back(app);
        return;
    }
    if (action != ESP_ACTION_NONE) {
        act(app, action, key);
        return;
    }
    if (replay && empty && key != ':')
        return; /* nobody reads a prompt */
    app->ui.wish.focused = app->ui.help = false;
    esp_input_key(app->input, key);
    put_back(app);
}

void esp_app_mouse(struct esp_app *app, struct esp_mouse mouse)
{
    app->changed = true;
    app->interrupts = 0;
    app->ui.message = NULL;
    esp_input_unlist(app->input);
    if (!app->ui.palette.open)
        esp_ui_mouse(&app->ui, &app->state, mouse, app->canvas.width, app->canvas.height);
    else if (mouse.button >= 64)
        esp_palette_key(&app->ui.palette, mouse.button == 64 ? ESP_KEY_UP : ESP_KEY_DOWN);
}

void esp_app_paste(struct esp_app *app, const char *bytes, size_t length)
{
    if (app->player && esp_input_is_empty(app->input))
        return;
    app->ui.wish.focused = app->ui.help = false;
    app->interrupts = 0;
    app->ui.message = NULL;
    esp_palette_close(&app->ui.palette);
    esp_input_paste(app->input, bytes, length);
    app->changed = true;
}

/* ------------------------------------------------------------------ the rest */

int esp_app_wake_fd(const struct esp_app *app)
{
    return app->player ? -1 : esp_worker_wake_fd(app->worker);
}

int esp_app_due(const struct esp_app *app)
{
    enum { LOOK_MS = 30 }; /* at a picture that is being drawn */
    int due = app->player ? esp_replay_wait(app) : -1;
    if (!app->export)
        return due;
    if (esp_export_job_is_done(app->export))
        return 0;
    return due >= 0 && due < LOOK_MS ? due : LOOK_MS;
}

bool esp_app_settled(struct esp_app *app)
{
    return !app->export &&
           (app->player ? !app->player->playing : esp_worker_settled(app->worker));
}

void esp_app_end_export(struct esp_app *app)
{
    char text[600];
    if (!app->export)
        return;
    int status = esp_export_job_end(app->export, text, sizeof text);
    app->export = NULL;
    esp_app_say(app, status < 0, "%s", text);
}

bool esp_app_is_in(const struct esp_app *app, enum esp_place place)
{
    return place == ESP_IN_BOTH || (place == ESP_IN_REPLAY) == (app->player != NULL);
}

/* Other models were loaded: what is on the screen are their tokens now. */
static void see_models(struct esp_app *app)
{
    esp_look_hold(&app->ui.look, &app->state, -1);
    if (app->state.loaded.anew)
        esp_prompts_retokenized(app);
    esp_worker_seen(app->worker, app->state.loaded.serial);
}

void esp_app_receive(struct esp_app *app)
{
    if (app->export && esp_export_job_is_done(app->export))
        esp_app_end_export(app);
    if (app->player) {
        esp_replay_receive(app);
        return;
    }
    struct esp_ring *ring = esp_worker_ring(app->worker);
    const struct esp_snapshot *snapshot;
    bool waited = app->state.phase == ESP_PHASE_WAITING;
    esp_worker_rest(app->worker);
    while ((snapshot = esp_ring_front(ring))) {
        const int serial = app->state.loaded.serial;
        int status = esp_state_apply(&app->state, snapshot);
        if (snapshot->type == ESP_SNAPSHOT_REFUSED)
            esp_prompts_refused(app);
        esp_ring_pop(ring);
        if (serial != app->state.loaded.serial)
            see_models(app);
        if (app->state.span_count <= app->kept)
            app->kept = -1;
        app->changed = true;
        if (status < 0)
            esp_app_say(app, true, "out of memory: not everything can be shown");
    }
    esp_ui_compare(&app->ui, app->state.second != NULL);
    if (!waited && app->state.phase == ESP_PHASE_WAITING)
        app->ui.stepping = true; /* a breakpoint, if the user did not ask for it */
    if (app->state.message_count != app->seen_messages) {
        app->seen_messages = app->state.message_count;
        esp_app_say(app, app->state.message_is_error, "%s", app->state.message);
    }
}

int esp_app_resize(struct esp_app *app, int width, int height)
{
    if (width == app->canvas.width && height == app->canvas.height)
        return 0;
    app->changed = true;
    return esp_canvas_resize(&app->canvas, width, height);
}

void esp_app_draw(struct esp_app *app)
{
    esp_input_show(app->input, &app->ui);
    esp_ui_draw(&app->canvas, &app->ui, &app->state);
    app->changed = false;
}

static int open_parts(struct esp_app *app, bool live, char *err, size_t errlen)
{
    struct esp_input_hooks hooks = {.user = app, .submit = submit, .complete = complete};
    int status = esp_canvas_open(&app->canvas, 80, 24);
    if (status == 0)
        status = esp_input_open(&app->input, &hooks, live);
    if (status == 0 && !(app->help = esp_reference_help(app->options.recording != NULL)))
        status = ESP_E_MEMORY;
    if (status < 0)
        return esp_fail(err, errlen, status, "the interface could not be opened: %s",
                        esp_status_message(status));
    app->ui.look.help = (const char *const *)app->help;
    return 0;
}

/* Reads the configuration, and starts the engine's thread with what it and the command line
 * say, or opens the recording. */
static int open_settings(struct esp_app *app, bool live, char *err, size_t errlen)
{
    const struct interface_options *options = &app->options;
    for (int i = 0; esp_setting(i); i++)
        app->given[i] = app->chosen[i] =
            options->given && esp_setting_is_given(i, options->given);
    int status = first_theme(app, options->theme, err, errlen);
    if (status == 0 && (live || options->config))
        status = esp_configuration_read(&app->config, options->config, !options->no_config, err,
                                        errlen);
    if (status == 0)
        status = esp_configuration_apply(&app->config, app, true, err, errlen);
    if (status == 0 && options->recording)
        status = esp_replay_open(app, err, errlen);
    else if (status == 0)
        status = esp_worker_open(&app->worker, &options->engine, &options->session, app->tokens,
                                 err, errlen);
    if (status == 0 && live && app->worker)
        esp_app_pace(app, PACE);
    if (status == 0)
        status = esp_configuration_apply(&app->config, app, false, err, errlen);
    if (status == 0 && live && app->player)
        esp_replay_play(app, true);
    return status;
}

int esp_app_open(struct esp_app *app, const struct interface_options *options, bool live,
                 char *err, size_t errlen)
{
    *app = (struct esp_app){.changed = true, .options = *options, .pace = PACE, .kept = -1};
    app->tokens = options->tokens > 0 ? options->tokens : NEW_TOKENS;
    esp_ui_init(&app->ui);
    int status = open_parts(app, live, err, errlen);
    if (status == 0)
        status = open_settings(app, live, err, errlen);
    if (status < 0) {
        esp_app_close(app);
        return status;
    }
    if (options->ascii)
        app->canvas.glyphs = &esp_glyphs_ascii;
    if (options->prompt && *options->prompt)
        esp_prompts_send(app, options->prompt);
    if (app->player && esp_recording_is_cut(app->player->recording))
        esp_app_say(app, true,
                    "the recording was cut off, as by a crash; it holds %d iterations",
                    esp_player_iterations(app->player));
    return 0;
}

void esp_app_close(struct esp_app *app)
{
    if (app->worker)
        esp_worker_close(app->worker);
    if (app->export) {
        esp_app_end_export(app);
        if (app->ui.message_is_error)
            esp_complain("%s", app->message);
    }
    esp_replay_close(app);
    esp_input_close(app->input);
    esp_reference_free(app->help);
    esp_configuration_free(&app->config);
    esp_palette_close(&app->ui.palette);
    esp_prompts_forget(app);
    free(app->put_back);
    free(app->clipboard);
    esp_canvas_close(&app->canvas);
    esp_state_free(&app->state);
}
