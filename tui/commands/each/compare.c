/* compare.c - ":compare ar" runs a second drafter and verifier over the same text, to compare
 * them with the drafter and verifier of the session. */
#include "tui/commands/command.h"

#include <stdio.h>
#include <string.h>

/* Starts or ends a comparison: "DRAFTER", "DRAFTER VERIFIER" or "off". */
static int choose(struct esp_control *control, const char *arguments)
{
    char drafter[256];
    const size_t length = strcspn(arguments, " ");
    const char *verifier = arguments + length + strspn(arguments + length, " ");
    if (strchr(verifier, ' ') || length >= sizeof drafter)
        return esp_refuse(control,
                          "write :compare DRAFTER[:key=value,...] [VERIFIER], or :compare off");
    snprintf(drafter, sizeof drafter, "%.*s", (int)length, arguments);
    ESP_WORKER_POST(
        control->worker, COMPARE,
        .text = {strcmp(arguments, "off") == 0 ? NULL : drafter, *verifier ? verifier : NULL});
    return ESP_OK;
}

static int run(struct esp_control *control, const char *arguments)
{
    const struct esp_state *second = control->state.compared;
    if (!*arguments && second)
        return esp_answer(control,
                          "now comparing with drafter %s, verifier %s; :compare off ends the "
                          "comparison",
                          second->loaded.drafter, second->loaded.verifier);
    if (!*arguments)
        return esp_answer(control, "name a drafter: :compare ar compares with plain decoding");
    return choose(control, arguments);
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    const char *blank = strchr(choices->before, ' ');
    if (blank) {
        esp_complete_spec(ESP_VERIFIERS, blank + strspn(blank, " "), choices);
        return;
    }
    if (control->state.compared && !*choices->before)
        esp_choices_offer(choices, "off", "end the comparison");
    esp_complete_spec(ESP_DRAFTERS, choices->before, choices);
}

const struct esp_command_ops esp_command_compare = {
    .name = "compare",
    .usage = "DRAFTER [VERIFIER]|off",
    .summary = "run a second drafter over the same text, side by side",
    .run = run,
    .complete = complete,
};
