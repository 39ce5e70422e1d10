/* copy.c - ":copy" copies the text to the terminal's clipboard (escape sequence OSC 52).
 *
 * A terminal that does not know the sequence ignores it without an answer. Many terminals limit
 * the text to a few tens of kilobytes.
 */
#include "tui/commands/command.h"

#include <string.h>

enum { MOST = 74994 /* bytes in the longest sequence that xterm and others accept */ };

static int run(struct esp_control *control, const char *arguments)
{
    const struct esp_state *state = &control->state;
    const bool last = strcmp(arguments, "last") == 0;
    if (!last && *arguments)
        return esp_refuse(control,
                          "write :copy, or :copy last for the text after the last prompt");
    size_t start = last ? esp_state_last_answer(state) : 0, length = state->byte_count - start;
    if (length == 0)
        return esp_refuse(control, "there is no text to copy");
    if (length > MOST / 4 * 3)
        return esp_refuse(control,
                          "%zu bytes are too many for a terminal's clipboard; write them to a "
                          "file with :save FILE",
                          length);
    return esp_control_copy(control, state->bytes + start, length);
}

const struct esp_command_ops esp_command_copy = {
    .name = "copy",
    .usage = "[last]",
    .summary = "copy the text to the terminal's clipboard",
    .in = ESP_IN_BOTH,
    .run = run,
    .offers = {{"last", "the text after the last prompt"}},
};
