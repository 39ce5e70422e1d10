/* break.c - ":break rejected" enters step mode after an iteration that rejects all drafts. */
#include "tui/commands/command.h"

#include <stdlib.h>
#include <string.h>

static int run(struct esp_control *control, const char *arguments)
{
    struct esp_breakpoints breakpoints = {.path = 0};
    if (strncmp(arguments, "path ", 5) == 0 && atoi(arguments + 5) > 0)
        breakpoints.path = atoi(arguments + 5);
    else if (strcmp(arguments, "rejected") == 0)
        breakpoints.rejected = true;
    else if (strcmp(arguments, "threshold") == 0)
        breakpoints.threshold = true;
    else if (strcmp(arguments, "off") != 0)
        return esp_refuse(control, "write :break path NUMBER, :break rejected, :break "
                                   "threshold or :break off");
    esp_mailbox_break(esp_worker_mailbox(control->worker), breakpoints);
    if (breakpoints.path > 0)
        return esp_answer(control,
                          "step mode begins when a path of more than %d token%s is accepted",
                          breakpoints.path, breakpoints.path == 1 ? "" : "s");
    return esp_answer(control, "%s",
                      breakpoints.rejected    ? "step mode begins when all drafts are rejected"
                      : breakpoints.threshold ? "step mode begins when a threshold moves"
                                              : "step mode begins only with F5");
}

const struct esp_command_ops esp_command_break = {
    .name = "break",
    .usage = "path N|rejected|threshold|off",
    .summary = "enter step mode after an iteration in which the given event happens",
    .run = run,
    .offers = {{"path", "a path longer than NUMBER tokens is accepted"},
               {"rejected", "no drafted token is accepted"},
               {"threshold", "the controller moves a threshold"},
               {"off", "never"}},
};
