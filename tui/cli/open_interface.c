/* open_interface.c - opens the interface for a command, or with a kept session (`espalier
 * --resume`). When the user types `:resume`, opens it again with another session. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/status.h"
#include "sessions/library_export.h"
#include "tui/app/interface.h"
#include "tui/cli/cli.h"
#include "tui/commands/settings.h"

/* Returns whether a flag for this setting was given. */
static bool is_said(const struct cli_options *o, const char *setting)
{
    if (strcmp(setting, "model") == 0 || strcmp(setting, "draft") == 0)
        return o->given[CLI_FLAG_target] || o->given[CLI_FLAG_draft];
    return cli_is_given(o, strcmp(setting, "n") == 0 ? "tokens" : setting);
}

/* Opens the interface again with the session or recording that the user wants to resume. */
static int open_next(const struct cli_options *o, char *next)
{
    struct esp_interface_options again = {.session = o->session, .tokens = o->tokens};
    again.session.values.baseline = true;
    const int code = cli_resume(&again, o, next);
    free(next);
    return code;
}

int cli_open_interface(struct esp_interface_options *with, const struct cli_options *o)
{
    struct cli_options chosen = *o;
    char library[PATH_MAX], *next = NULL;
    const char *script = getenv("ESPALIER_SCRIPT");
    cli_choose_draft(&chosen);
    with->engine = chosen.engine;
    with->ascii = o->ascii;
    with->theme = o->theme;
    with->config = o->config;
    with->no_config = o->no_config;
    with->private = o->private;
    if (!with->library && esp_library_path(library, sizeof library) == ESP_OK)
        with->library = library;
    with->next = script && *script ? NULL : &next;
    for (int i = 0; esp_setting(i); i++)
        with->given[i] = with->given[i] || is_said(o, esp_setting(i)->key);
    const int code = interface_main(with);
    return next ? open_next(o, next) : code;
}

/* ------------------------------------------------------------------ kept sessions */

static bool is_recording(const char *which)
{
    struct stat about;
    return which && stat(which, &about) == 0 && S_ISREG(about.st_mode);
}

/* Copies the settings of the kept session to the options, except settings that flags give. */
static void take_settings(struct esp_interface_options *with, const struct cli_options *o,
                          const struct esp_recording_header *header)
{
    struct esp_session_values *values = &with->session.values;
    const struct esp_session_values given = *values;
    struct esp_value_info info;
    *values = header->values;
    for (int i = 0; esp_value_info(i, &info); i++) {
        char text[256], err[256];
        if (!cli_is_given(o, info.name) || info.kind == ESP_KIND_text)
            continue;
        esp_value_print(&given, i, text, sizeof text);
        esp_value_parse(values, i, info.name, text, err, sizeof err);
    }
    values->baseline = given.baseline;
    if (!o->given[CLI_FLAG_drafter])
        with->session.drafter = header->drafter;
    if (!o->given[CLI_FLAG_verifier])
        with->session.verifier = header->verifier;
    for (int i = 0; esp_setting(i); i++)
        with->given[i] = with->given[i] || esp_setting(i)->kind == ESP_SETTING_SESSION;
}

/* Copies the paths of the session's models to the options, unless flags name models. Returns
 * false if the file of the target no longer exists. */
static bool take_models(struct cli_options *o, const struct esp_kept_session *session)
{
    if (o->given[CLI_FLAG_target] || o->given[CLI_FLAG_draft])
        return true;
    if (!*session->target_path || access(session->target_path, R_OK) < 0)
        return false;
    o->engine.target = session->target_path;
    if (*session->draft_path && access(session->draft_path, R_OK) == 0)
        o->engine.draft = session->draft_path;
    o->given[CLI_FLAG_target] = o->given[CLI_FLAG_draft] = true;
    return true;
}

/* Writes the session's current text to a temporary recording and replays it. This needs no
 * models. */
static int replay(struct esp_interface_options *with, const struct cli_options *o,
                  const char *library, const struct esp_kept_session *session)
{
    char err[700], path[] = "/tmp/espalier-XXXXXX", notice[700];
    const int file = mkstemp(path);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (!stream)
        return cli_fail("cannot make a temporary file in /tmp for the replay");
    int status = esp_library_export_path(library, session->id, -1, stream, err, sizeof err);
    if (fclose(stream) != 0 && status == ESP_OK)
        status = esp_fail(err, sizeof err, ESP_E_FILE, "%s could not be written", path);
    snprintf(notice, sizeof notice,
             "the models of session %lld (%.60s) were not found, so it is only replayed",
             (long long)session->id, session->target);
    with->recording = path;
    with->speed = 1;
    with->idle = ESP_IDLE_DEFAULT;
    with->notice = notice;
    const int code = status < 0 ? cli_code(status, err) : cli_open_interface(with, o);
    unlink(path);
    return code;
}

int cli_resume(struct esp_interface_options *with, const struct cli_options *o,
               const char *which)
{
    char library[PATH_MAX], err[700];
    struct esp_resumed *resumed = NULL;
    struct cli_options chosen = *o;
    int status = esp_library_path(library, sizeof library);
    if (status < 0)
        return cli_fail("there is no home folder, so no sessions are kept");
    if (is_recording(which)) {
        status = cli_import(library, which, err, sizeof err);
        which = NULL; /* the imported session is now the last one */
    }
    if (status == ESP_OK)
        status = esp_resumed_open(&resumed, library, which, err, sizeof err);
    if (status < 0)
        return cli_code(status, err);
    with->library = library;
    int code;
    if (take_models(&chosen, &resumed->session)) {
        take_settings(with, o, &resumed->header);
        with->resumed = resumed;
        code = cli_open_interface(with, &chosen);
    } else {
        code = replay(with, o, library, &resumed->session);
    }
    esp_resumed_close(resumed);
    return code;
}
