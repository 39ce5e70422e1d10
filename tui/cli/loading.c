/* loading.c - opens an engine for a command. Shows a bar while a large model loads, and prints
 * a message if a device cannot be used.
 *
 * The bar and the message are written to standard error. The bar is shown only on a terminal,
 * and only if loading takes long.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/find_models.h"
#include "tui/cli/cli.h"
#include "kernels/clock.h"
#include "viz/safe.h"

enum { BAR = 30 };
static const double PATIENCE = 0.5; /* seconds */

void cli_draw_bar(FILE *file, double share)
{
    int filled = share >= 1 ? BAR : share > 0 ? (int)(share * BAR) : 0;
    fprintf(file, "\r[%.*s%*s] ", filled, "##############################", BAR - filled, "");
}

void cli_clear_bar(bool shown)
{
    if (shown)
        fputs("\r\033[K", stderr);
}

bool cli_progress(void *user, const char *what, size_t done, size_t total)
{
    struct cli_loading *l = user;
    if (!l->shown && (esp_clock() - l->start < PATIENCE || !isatty(STDERR_FILENO)))
        return true;
    l->shown = true;
    cli_draw_bar(stderr, (double)done / (double)total);
    esp_safe_print(stderr, "%s, %.0f of %.0f MB", what, (double)done / 1e6,
                   (double)total / 1e6);
    fputs("\033[K", stderr);
    return true;
}

int cli_open_engine(struct esp_engine **engine, const struct cli_options *options, char *err,
                    size_t errlen)
{
    struct esp_engine_options with = options->engine;
    struct cli_loading loading = {.start = esp_clock()};
    with.progress = cli_progress;
    with.user = &loading;
    int status = esp_engine_open(engine, &with, err, errlen);
    cli_clear_bar(loading.shown);
    if (status == ESP_OK && *esp_engine_notice(*engine))
        esp_complain("%s; using the %s backend", esp_engine_notice(*engine),
                     esp_engine_backend(*engine));
    return status;
}

void cli_choose_draft(struct cli_options *o)
{
    char err[256];
    const bool needs =
        !o->session.drafter || strcmp(o->session.drafter, "auto") == 0 ||
        esp_choice_check(o->session.drafter, o->session.verifier, o->session.values.temperature,
                         false, err, sizeof err) < 0;
    if (o->engine.target && !o->engine.draft && needs && !o->given[CLI_FLAG_seed])
        o->engine.draft = "auto";
}

int cli_take_models(struct cli_options *o)
{
    const char **models[] = {&o->engine.target, &o->engine.draft};
    int taken = 0, left = 0;
    for (int i = 0; i < o->argument_count; i++) {
        const char *argument = o->arguments[i];
        if (strcmp(argument, "-") == 0) {
            o->arguments[left++] = argument;
            continue;
        }
        if (taken == 2) {
            esp_complain("unexpected argument '%s'; a target and a draft are named already",
                         argument);
            return EXIT_USAGE;
        }
        if (*models[taken]) {
            esp_complain("unexpected argument '%s'; %s is given already", argument,
                         taken == 0 ? "--target" : "--draft");
            return EXIT_USAGE;
        }
        *models[taken++] = argument;
    }
    o->argument_count = left;
    o->given[CLI_FLAG_target] = o->engine.target != NULL;
    return -1;
}

/* Replaces the name of a model by the path that `find` finds for it. Returns false after
 * printing a message. */
static bool find_model(const char **name, char path[PATH_MAX],
                       int (*find)(char *, size_t, const char *, char *, size_t), bool later)
{
    char err[512];
    const int status =
        *name && **name ? find(path, PATH_MAX, *name, err, sizeof err) : (int)ESP_E_FILE;
    if (status == ESP_OK)
        *name = path;
    if (status == ESP_OK || !*name || !**name || (later && status == ESP_E_FILE))
        return true;
    cli_fail(err);
    return false;
}

int cli_find_models(struct cli_options *o, bool later)
{
    return find_model(&o->engine.target, o->target, esp_model_path, later) &&
                   find_model(&o->engine.draft, o->draft, esp_draft_path, later)
               ? -1
               : EXIT_BAD;
}

bool cli_find_source(struct cli_options *o)
{
    return find_model(&o->arguments[0], o->target, esp_model_path, false);
}

void cli_note_chat(const struct esp_engine *engine, const struct esp_session *session)
{
    char chosen[64] = "";
    esp_session_get(session, "chat", chosen, sizeof chosen);
    if (!esp_engine_chat(engine) && strcmp(chosen, "auto") == 0)
        fprintf(stderr,
                "espalier: the model's chat template is not one that espalier knows, so the "
                "prompt is used without a format; choose one with --chat NAME, or confirm with "
                "--chat none\n");
}

void cli_note(const struct esp_session *session)
{
    char note[300];
    if (esp_session_get(session, "notice", note, sizeof note) == ESP_OK && *note)
        fprintf(stderr, "espalier: %s\n", note);
}
