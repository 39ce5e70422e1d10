/* interrupt.c - handles Ctrl-C, SIGTERM and SIGHUP.
 *
 * By default the program removes incomplete files and ends immediately. A command that stores
 * partial results ends cleanly after the first signal, and immediately after the second. If
 * SIGTERM or SIGHUP was ignored at the start, it stays ignored, because nohup needs this.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "engine/support/part_file.h"
#include "tui/cli/cli.h"
#include "viz/safe.h"

volatile sig_atomic_t cli_interrupted;

/* `ending` is the signal that ends the program. `told` is true if tell() has reported a removed
 * file. */
static volatile sig_atomic_t ending, told;

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags}, before;
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    if (number == SIGINT ||
        (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN))
        sigaction(number, &action, NULL);
}

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* Prints that the file `whole` was not written. This function is async-signal-safe. */
static void tell(const char *whole)
{
    struct esp_safe_unit shown;
    if (!told && isatty(STDERR_FILENO))
        say("\r\033[K"); /* clear a progress bar on this line */
    say(ending == SIGINT    ? "espalier: interrupted: "
        : ending == SIGTERM ? "espalier: ended by SIGTERM: "
                            : "espalier: ended by SIGHUP: ");
    for (size_t left = strlen(whole), n; left > 0; whole += n, left -= n) {
        n = esp_safe_next(whole, left, 0, &shown);
        say(shown.text);
    }
    say(" was not written\n");
    told = 1;
}

static void end(int number)
{
    ending = number;
    esp_part_files_remove(tell);
    if (told)
        _exit(128 + number);
    signal(number, SIG_DFL);
    raise(number);
}

void cli_clean_up_at_end(void)
{
    const int flags = (int)(SA_RESETHAND | SA_NODEFER);
    handle(SIGINT, end, flags);
    handle(SIGTERM, end, flags);
    handle(SIGHUP, end, flags);
}

static void note(int number)
{
    cli_interrupted = number;
    cli_clean_up_at_end();
}

void cli_catch_interrupt(void)
{
    handle(SIGINT, note, 0);
}

void cli_catch_end(void)
{
    handle(SIGINT, note, 0);
    handle(SIGTERM, note, 0);
    handle(SIGHUP, note, 0);
}
