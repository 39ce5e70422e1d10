/* resume.c - ":resume" opens a kept session in order to continue it. In a replay, it first
 * turns the recording into a kept session. */
#include <stdlib.h>
#include <string.h>

#include "tui/commands/command.h"

/* A callback that gets each kept session, the newest first. Chooses the first session that no
 * program has open, and then returns true to end the list. */
static int take_other(void *user, const struct esp_kept_session *session)
{
    int64_t *id = user;
    if (!session->open)
        *id = session->id;
    return *id > 0;
}

/* Finds the session that the user means and writes its number to `to`. Returns 0, or a negative
 * status after a reply to the user. */
static int find(struct esp_control *control, const char *which, char *to, size_t size)
{
    struct esp_library *library;
    struct esp_kept_session session = {.id = 0};
    char err[512];
    int status = esp_library_open(&library, control->settings.options.library, ESP_LIBRARY_READ,
                                  err, sizeof err);
    if (status == ESP_OK && *which)
        status = esp_library_find(library, which, &session, err, sizeof err);
    else if (status == ESP_OK)
        status = esp_library_list(library, take_other, &session.id, err, sizeof err);
    esp_library_close(library);
    if (status < 0)
        return esp_refuse(control, "%s", err);
    if (session.open)
        return esp_refuse(control, "session %lld is already open, here or in another program",
                          (long long)session.id);
    if (session.id == 0)
        return esp_refuse(control, "no other session is kept");
    snprintf(to, size, "%lld", (long long)session.id);
    return ESP_OK;
}

static int run(struct esp_control *control, const char *arguments)
{
    const struct esp_interface_options *options = &control->settings.options;
    char which[32];
    if (!options->library || !options->next)
        return esp_refuse(control, ":resume is not available here; start espalier --resume");
    const bool replayed = control->player && !*arguments;
    if (!replayed && find(control, arguments, which, sizeof which) < 0)
        return ESP_E_ARGUMENT;
    *options->next = strdup(replayed ? options->recording : which);
    control->requests.leaving = true;
    return ESP_OK;
}

/* ------------------------------------------------------------------ completion */

static int offer(void *user, const struct esp_kept_session *session)
{
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)session->id);
    if (!session->open)
        esp_choices_offer(user, *session->name ? session->name : number, session->words);
    return 0;
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    struct esp_library *library;
    char err[512];
    const char *path = control->settings.options.library;
    if (*choices->before || !path ||
        esp_library_open(&library, path, ESP_LIBRARY_READ, err, sizeof err) < 0)
        return;
    esp_library_list(library, offer, choices, err, sizeof err);
    esp_library_close(library);
}

const struct esp_command_ops esp_command_resume = {
    .name = "resume",
    .usage = "[SESSION]",
    .summary = "continue a kept session (Tab lists them; default: the session before "
               "this one), or the recording that is shown",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
