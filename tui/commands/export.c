/* export.c - ":export tree.svg" writes the tree that is shown as a picture or as text;
 * ":export! tree.svg" also over a file that is there, ":export tree.svg dark" in dark colours.
 */
#include "export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "write_file.h"

/* Takes "dark" or "light" off the end of what was typed. */
static const char *take_theme(char *typed)
{
    static const char *const themes[] = {"dark", "light"};
    size_t length = strlen(typed);
    for (size_t i = 0; i < 2; i++) {
        size_t name = strlen(themes[i]);
        if (length < name || strcmp(typed + length - name, themes[i]) != 0 ||
            (length > name && typed[length - name - 1] != ' '))
            continue;
        typed[length > name ? length - name - 1 : 0] = '\0';
        return themes[i];
    }
    return NULL;
}

static void write_text(struct esp_app *app, const struct esp_export *wish, const char *path,
                       bool over)
{
    char err[512], *bytes;
    size_t length;
    int status = esp_export(wish, &bytes, &length, err, sizeof err);
    if (status == 0)
        status = esp_write_file(path, bytes, length, over, err, sizeof err);
    free(bytes);
    if (status < 0)
        esp_app_say(app, true, "%s", err);
    else
        esp_app_say(app, false, "iteration %d written to %s", wish->iteration->index, path);
}

static void draw_picture(struct esp_app *app, const struct esp_export *wish, const char *path,
                         bool over)
{
    char err[512];
    esp_app_end_export(app); /* one at a time */
    if (esp_export_job_start(&app->export, wish, path, over, err, sizeof err) < 0)
        esp_app_say(app, true, "%s", err);
    else
        esp_app_say(app, false, "drawing iteration %d", wish->iteration->index);
}

static void run(struct esp_app *app, const char *arguments)
{
    const struct esp_loaded *loaded = &app->state.loaded;
    char typed[1024], path[1024], models[256];
    const bool over = *arguments == '!';
    int stages;
    const struct esp_iteration *it =
        esp_state_iteration(&app->state, app->ui.look.iteration, &stages);
    if (!it || stages < ESP_STAGES) {
        esp_app_say(app, true,
                    it ? "this iteration has not ended yet" : "there is no tree yet");
        return;
    }
    arguments += over;
    arguments += strspn(arguments, " ");
    snprintf(models, sizeof models, loaded->draft[0] ? "%s \u2190 %s" : "%s", loaded->target,
             loaded->draft);
    snprintf(typed, sizeof typed, "%s", arguments);
    struct esp_export wish = {.iteration = it,
                              .tokens = app->state.tokens,
                              .models = models,
                              .theme = take_theme(typed),
                              .nodes = -1,
                              .ascii = app->canvas.ascii_text};
    if (*typed)
        esp_typed_path(path, sizeof path, typed);
    else
        snprintf(path, sizeof path, "iteration-%d.svg", it->index);
    wish.format = esp_export_of_path(path);
    if (wish.format < 0 || wish.format == ESP_EXPORT_JSON)
        esp_app_say(app, true, "%s does not end in .svg, .png, .dot or .txt", path);
    else if (wish.format == ESP_EXPORT_TXT)
        write_text(app, &wish, path, over);
    else
        draw_picture(app, &wish, path, over);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    esp_complete_path(before, word, false, choices);
}

const struct esp_command_ops esp_command_export = {
    .name = "export",
    .usage = "[FILE.svg|png|dot|txt] [dark]",
    .summary = "write the tree that is shown to a file; :export! FILE writes over one",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
