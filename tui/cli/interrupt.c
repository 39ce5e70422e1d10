/* interrupt.c - commands that end in good order at Ctrl-C, and at once at the second. */
#include <signal.h>

#include "tui/cli/cli.h"

volatile sig_atomic_t cli_interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    cli_interrupted = 1;
}

void cli_catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
}
