/* resume.c - `espalier --resume`: the interface with a kept session, or with a recording, which becomes
 * one. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/find_models.h"
#include "kernels/status.h"
#include "sessions/library_export.h"
#include "tui/app/interface.h"
#include "tui/cli/cli.h"
#include "tui/commands/settings.h"
#include "tui/worker/keeper.h"

/* ------------------------------------------------------------------ recordings */

/* The last complaint of the keeper. */
static void hear(void *user, bool trouble, const char *sentence)
{
    if (trouble)
        snprintf(user, 700, "%s", sentence);
}

/* The path of the model that a recording names; "": unknown. */
static void find_model(const char *name, char *path, size_t size)
{
    char err[512];
    if (!*name || esp_model_path(path, size, name, err, sizeof err) < 0)
        *path = '\0';
}

static int feed(struct esp_keeper *keeper, struct esp_recording *recording, char *err,
                size_t errlen)
{
    const struct esp_event *event;
    int status = ESP_OK;
    for (int i = 0; i < esp_recording_events(recording) && status == ESP_OK; i++) {
        status = esp_recording_read(recording, i, &event, err, errlen);
        if (status == ESP_OK)
            esp_keeper_event(keeper, event);
    }
    return status;
}

/* Adds a recording to the library. */
static int import(const char *library, const char *file, char *err, size_t errlen)
{
    char target[PATH_MAX], draft[PATH_MAX], trouble[700] = "";
    struct esp_recording *recording;
    struct esp_keeper *keeper;
    int status = esp_recording_open(&recording, file, err, errlen);
    if (status < 0)
        return status;
    const struct esp_recording_header *header = esp_recording_header(recording);
    const struct esp_tokens tokens = {esp_recording_token_text, recording};
    find_model(header->target.name, target, sizeof target);
    find_model(header->draft.name, draft, sizeof draft);
    if (esp_keeper_open(&keeper, library, 0, hear, trouble) < 0) {
        status = esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the recording");
    } else {
        esp_keeper_private(keeper, false);
        esp_keeper_models(keeper, header, target, draft, &tokens, false);
        status = feed(keeper, recording, err, errlen);
        esp_keeper_close(keeper);
    }
    if (status == ESP_OK && *trouble)
        status = esp_fail(err, errlen, ESP_E_FILE, "%s", trouble);
    esp_recording_close(recording);
    return status;
}

static bool is_recording(const char *which)
{
    struct stat about;
    return which && stat(which, &about) == 0 && S_ISREG(about.st_mode);
}

/* ------------------------------------------------------------------ settings */

/* Takes the session's settings, except those that flags give. */
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

/* Takes the session's models unless flags name some. False: its target is not there any more. */
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

/* ------------------------------------------------------------------ opening */

/* Shows the session's text without its models, from a recording in a file of its own. */
static int replay(struct esp_interface_options *with, const struct cli_options *o,
                  const char *library, const struct esp_kept_session *session)
{
    char err[700], path[] = "/tmp/espalier-XXXXXX", notice[700];
    const int file = mkstemp(path);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (!stream)
        return cli_fail("no file can be made below /tmp for the replay");
    int status = esp_library_export_path(library, session->id, -1, stream, err, sizeof err);
    if (fclose(stream) != 0 && status == ESP_OK)
        status = esp_fail(err, sizeof err, ESP_E_FILE, "%s could not be written", path);
    snprintf(notice, sizeof notice,
             "the models of session %lld (%.60s) are not there, so it is only replayed",
             (long long)session->id, session->target);
    with->recording = path;
    with->speed = 1;
    with->idle = ESP_IDLE_DEFAULT;
    with->notice = notice;
    const int code = status < 0 ? cli_code(status, err) : cli_open_interface(with, o);
    unlink(path);
    return code;
}

int cli_resume(struct esp_interface_options *with, const struct cli_options *o, const char *which)
{
    char library[PATH_MAX], err[700];
    struct esp_resumed *resumed = NULL;
    struct cli_options chosen = *o;
    int status = esp_library_path(library, sizeof library);
    if (status < 0)
        return cli_fail("there is no home folder, so no sessions are kept");
    if (is_recording(which)) {
        status = import(library, which, err, sizeof err);
        which = NULL; /* the last one now */
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
