/* export.c - ":export tree.svg" writes the tree that is shown as a picture or as text;
 * ":export! tree.svg" also over a file that is there, ":export tree.svg dark" in dark colours.
 * ":export page.html" writes a page that plays the whole replay, or of a live session the last
 * iterations.
 */
#include "tui/model/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/command.h"
#include "tui/model/web_page.h"
#include "engine/support/write_file.h"

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

static int write_text(struct esp_control *control, const struct esp_export_options *options,
                      const char *path, bool over)
{
    char err[512], *bytes;
    size_t length;
    int status = esp_export(options, &bytes, &length, err, sizeof err);
    if (status == 0)
        status = esp_write_file(path, bytes, length, over, err, sizeof err);
    free(bytes);
    if (status < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "iteration %d written to %s", options->iteration->index, path);
}

static int draw_picture(struct esp_control *control, const struct esp_export_options *options,
                        const char *path, bool over)
{
    char err[512];
    esp_control_end_export(control); /* one at a time */
    control->reply[0] = '\0';
    if (esp_export_job_start(&control->export, options, path, over, err, sizeof err) < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "drawing iteration %d", options->iteration->index);
}

static int write_page(struct esp_control *control, const char *path, bool over)
{
    const struct esp_player *player = control->player;
    char err[512], *bytes;
    size_t length;
    int count = player ? esp_player_iterations(player) : 0, status;
    if (player && count == 0)
        return esp_refuse(control, "this recording holds no iteration");
    if (player)
        status =
            esp_web_page(player->recording, 0, count - 1, &bytes, &length, err, sizeof err);
    else
        status =
            esp_web_page_of_state(&control->state, &bytes, &length, &count, err, sizeof err);
    if (status == 0)
        status = esp_write_file(path, bytes, length, over, err, sizeof err);
    free(bytes);
    if (status < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "a page of %d iteration%s, %.1f MB, written to %s", count,
                      count == 1 ? "" : "s", 1e-6 * (double)length, path);
}

static int run(struct esp_control *control, const char *arguments)
{
    const struct esp_loaded *loaded = &control->state.loaded;
    char typed[1024], path[1024], models[256];
    const bool over = *arguments == '!';
    int stages;
    const struct esp_iteration *it =
        esp_state_iteration(&control->state, control->ui.look.iteration, &stages);
    if (!it || stages < ESP_STAGES)
        return esp_refuse(control, it ? "this iteration has not ended yet"
                                      : "there is no tree yet");
    arguments += over;
    arguments += strspn(arguments, " ");
    snprintf(models, sizeof models, loaded->draft[0] ? "%s \u2190 %s" : "%s", loaded->target,
             loaded->draft);
    snprintf(typed, sizeof typed, "%s", arguments);
    struct esp_export_options options = {.iteration = it,
                                         .tokens = control->state.tokens,
                                         .models = models,
                                         .theme = take_theme(typed),
                                         .nodes = -1,
                                         .ascii = control->canvas->ascii_text};
    if (*typed)
        esp_typed_path(path, sizeof path, typed);
    else
        snprintf(path, sizeof path, "iteration-%d.svg", it->index);
    options.format = esp_export_of_path(path);
    if (options.format < 0 || options.format == ESP_EXPORT_JSON)
        return esp_refuse(control, "%s does not end in .svg, .png, .dot, .txt or .html", path);
    if (options.format == ESP_EXPORT_HTML)
        return write_page(control, path, over);
    return options.format == ESP_EXPORT_TXT ? write_text(control, &options, path, over)
                                            : draw_picture(control, &options, path, over);
}

static void complete(const struct esp_control *control, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)control;
    esp_complete_path(before, word, false, choices);
}

const struct esp_command_ops esp_command_export = {
    .name = "export",
    .usage = "[FILE.svg|png|dot|txt|html] [dark]",
    .summary = "save the tree that is shown as a picture for a slide (SVG, PNG) or as text, or all "
               "of them as a page (HTML); :export! FILE writes over a file",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
