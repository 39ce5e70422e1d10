/* opening.c - opens and closes the interface; see app.h. */
#include "tui/app/app_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/status.h"
#include "tui/commands/bindings.h"
#include "tui/commands/catalogue.h"
#include "tui/commands/configuration.h"
#include "tui/commands/learn_page.h"
#include "tui/commands/prompts.h"
#include "tui/commands/race_page.h"
#include "tui/commands/replay.h"
#include "tui/commands/settings.h"
#include "viz/safe.h"

enum { NEW_TOKENS = 256, PACE = 12 /* iterations per second, slow enough to watch */ };

/* Loads the named theme, which must exist. If `name` is NULL, loads the theme that fits the
 * terminal's background. */
static int first_theme(struct esp_app *app, const char *name, char *err, size_t errlen)
{
    const char *colours = getenv("COLORFGBG"),
               *background = colours ? strrchr(colours, ';') : NULL;
    bool light =
        background && (strcmp(background, ";7") == 0 || strcmp(background, ";15") == 0);
    esp_theme_plain(&app->control.settings.theme);
    snprintf(app->control.settings.theme_name, sizeof app->control.settings.theme_name, "%s",
             app->control.settings.theme.name);
    app->control.requests.new_theme = true;
    int status = esp_control_theme(&app->control,
                                   name    ? name
                                   : light ? "light"
                                           : "dark",
                                   err, errlen);
    return name ? status : 0;
}

static int open_parts(struct esp_app *app, bool live, char *err, size_t errlen)
{
    struct esp_input_hooks hooks = {.user = app,
                                    .submit = esp_app_submit,
                                    .editor = esp_app_open_editor,
                                    .complete = esp_app_complete};
    int status = esp_canvas_open(&app->canvas, 80, 24);
    if (status == 0)
        status = esp_input_open(&app->input, &hooks, live);
    if (status == 0 &&
        !(app->help = esp_catalogue_help(app->control.settings.options.recording != NULL)))
        status = ESP_E_MEMORY;
    if (status < 0)
        return esp_fail(err, errlen, status, "the interface could not be opened: %s",
                        esp_status_message(status));
    app->control.ui.look.help = (const char *const *)app->help;
    return 0;
}

/* Tells the engine thread in which library to keep the session, and which kept session to
 * continue, if any. If no session was kept before, shows a message about kept sessions. */
static int keep(struct esp_app *app)
{
    const struct esp_interface_options *options = &app->control.settings.options;
    const struct esp_resumed *resumed = options->resumed;
    struct esp_resume resume = {.session = 0};
    int count = 0;
    struct esp_text_token *text = resumed ? esp_resumed_text(resumed, &count) : NULL;
    char *message = malloc(sizeof resume + (size_t)count * sizeof *text);
    const bool whole = message && (text || !resumed);
    if (resumed) {
        resume = (struct esp_resume){
            .session = (int)resumed->session.id, .tokens = count, .iterations = resumed->count};
        memcpy(resume.vocabulary_hash, resumed->text.vocabulary_hash,
               sizeof resume.vocabulary_hash);
    }
    if (whole) {
        memcpy(message, &resume, sizeof resume);
        if (count > 0)
            memcpy(message + sizeof resume, text, (size_t)count * sizeof *text);
        ESP_WORKER_POST(app->control.worker, KEEP, .text = {message, options->library},
                        .length = sizeof resume + (size_t)count * sizeof *text,
                        .flag = app->control.settings.private);
        app->control.settings.keeps = true;
    }
    if (whole && !app->control.settings.private && access(options->library, F_OK) < 0)
        esp_app_say(app, false,
                    "sessions are kept in %.400s; espalier --resume opens the last one; "
                    "with :private on, this session is not kept",
                    options->library);
    free(message);
    free(text);
    return whole ? ESP_OK : ESP_E_MEMORY;
}

/* Reads the configuration file. Then opens the recording or, without one, starts the engine
 * thread with the settings of the file and of the command line. */
static int open_settings(struct esp_app *app, bool live, char *err, size_t errlen)
{
    const struct esp_interface_options *options = &app->control.settings.options;
    for (int i = 0; esp_setting(i); i++)
        app->control.settings.chosen[i] = options->given[i];
    int status = first_theme(app, options->theme, err, errlen);
    if (status == 0 && (live || options->config))
        status = esp_configuration_read(&app->control.settings.config, options->config,
                                        !options->no_config, err, errlen);
    if (status == 0)
        status = esp_configuration_apply(&app->control.settings.config, &app->control, true,
                                         err, errlen);
    if (status == 0 && options->recording)
        status = esp_replay_open(&app->control, err, errlen);
    else if (status == 0)
        status = esp_worker_open(&app->control.worker, &options->engine, &options->session,
                                 app->control.settings.tokens, err, errlen);
    if (status == 0 && live && app->control.worker)
        esp_control_pace(&app->control, PACE);
    if (status == 0)
        status = esp_configuration_apply(&app->control.settings.config, &app->control, false,
                                         err, errlen);
    if (status == 0 && app->control.worker && options->library && keep(app) < 0)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the kept session");
    if (status == 0 && live && app->control.player)
        esp_replay_play(&app->control, true);
    return status;
}

int esp_app_open(struct esp_app *app, const struct esp_interface_options *options, bool live,
                 char *err, size_t errlen)
{
    *app = (struct esp_app){
        .searched = -1,
        .rated_at = -1,
        .control = {
            .settings = {.mouse = true, .private = options->private, .options = *options},
            .prompts = {.kept = -1},
            .requests = {.changed = true},
            .pace = PACE}};
    app->control.canvas = &app->canvas;
    app->control.state.has_branches = !options->recording;
    esp_branches_open(&app->control.state.branches);
    app->control.settings.tokens = options->tokens > 0 ? options->tokens : NEW_TOKENS;
    esp_ui_init(&app->control.ui);
    int status = open_parts(app, live, err, errlen);
    if (status == 0)
        status = open_settings(app, live, err, errlen);
    if (status < 0) {
        esp_app_close(app);
        return status;
    }
    if (options->ascii)
        app->canvas.glyphs = &esp_glyphs_ascii;
    if (options->race_recordings[0])
        status = esp_race_page_read(&app->control, options->race_recordings, err, errlen);
    else if (options->race)
        status = esp_race_page_open(&app->control, options->race);
    else if (options->lesson)
        status = esp_learn_page_open(&app->control, options->lesson);
    if (status < 0) {
        if (*app->control.reply)
            snprintf(err, errlen, "%s", app->control.reply);
        esp_app_close(app);
        return status;
    }
    if (options->prompt && *options->prompt)
        esp_prompts_send(&app->control, options->prompt);
    if (options->notice)
        esp_app_say(app, true, "%s", options->notice);
    else if (app->control.player && esp_recording_is_cut(app->control.player->recording))
        esp_app_say(app, true,
                    "the recording ends early, as after a crash; it has %d iterations",
                    esp_player_iterations(app->control.player));
    return 0;
}

bool esp_app_close(struct esp_app *app)
{
    esp_control_page(&app->control, NULL, NULL);
    if (app->control.requests.export) { /* the export may still read the models' tokens */
        esp_app_show_reply(app, esp_control_end_export(&app->control));
        if (app->control.ui.message_is_error)
            esp_complain("%s", app->message);
    }
    const bool ended = !app->control.worker || esp_worker_close(app->control.worker);
    esp_replay_close(&app->control);
    esp_input_close(app->input);
    esp_catalogue_free(app->help);
    esp_configuration_free(&app->control.settings.config);
    esp_palette_close(&app->control.ui.palette);
    esp_bindings_free(&app->control.ui.own_keys);
    esp_prompts_forget(&app->control.prompts);
    free(app->prompt);
    for (int i = 0; i < ESP_MOST_SETTINGS; i++)
        free(app->control.settings.said[i]);
    free(app->control.requests.line);
    free(app->control.requests.clipboard);
    esp_canvas_close(&app->canvas);
    esp_state_free(&app->control.state);
    return ended;
}
