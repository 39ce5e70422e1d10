/* copy.c - ":copy" hands the text to the terminal's clipboard (escape sequence OSC 52).
 *
 * Whether a terminal takes it cannot be asked; those that do not know the sequence drop it.
 * Many take no more than some tens of kilobytes.
 */
#include "command.h"

#include <string.h>

enum { MOST = 74994 /* bytes of the sequence that xterm and others take */ };

static void run(struct esp_app *app, const char *arguments)
{
    const struct esp_state *state = &app->state;
    const bool last = strcmp(arguments, "last") == 0;
    if (!last && *arguments) {
        esp_app_say(app, true, "write :copy, or :copy last for what followed the last prompt");
        return;
    }
    size_t start = last ? esp_state_last_answer(state) : 0, length = state->byte_count - start;
    if (length == 0)
        esp_app_say(app, true, "there is no text to copy");
    else if (length > MOST / 4 * 3)
        esp_app_say(app, true,
                    "%zu bytes are more than clipboards of terminals take; "
                    ":save FILE writes them",
                    length);
    else
        esp_app_copy(app, state->bytes + start, length);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    if (!*before)
        esp_choices_offer(choices, word, "last", "what followed the last prompt");
}

const struct esp_command_ops esp_command_copy = {
    .name = "copy",
    .usage = "[last]",
    .summary = "copy the text to the terminal's clipboard",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
