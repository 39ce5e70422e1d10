/* terminal.c - saved modes, signal handlers, job control; see terminal.h. */
#include "tui/app/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/espalier.h"
#include "kernels/status.h"
#include "tui/app/root.h"
#include "engine/support/write_file.h"

static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT};

enum { ASKING = sizeof asking / sizeof *asking, CRASHES = sizeof crashes / sizeof *crashes };

/* Async-signal-safe. */
static void restore_now(const struct esp_terminal *terminal)
{
    (void)!esp_write_all(STDOUT_FILENO, terminal->restore, terminal->restore_count);
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal->saved);
}

static void die_by(int number)
{
    if (esp_root.terminal)
        restore_now(esp_root.terminal);
    signal(number, SIG_DFL);
    raise(number);
}

static void on_crash(int number)
{
    die_by(number);
}

static void on_signal(int number)
{
    struct esp_terminal *terminal = esp_root.terminal;
    int error = errno;
    const char byte = (char)number;
    if (!terminal)
        return;
    if (number == SIGTERM && terminal->terminating++ > 0)
        die_by(number);
    if (write(terminal->signals[1], &byte, 1) < 0) {
        /* The pipe is full: the event loop has plenty of signals to read already. */
    }
    errno = error;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

int esp_terminal_open(struct esp_terminal *terminal, char *err, size_t errlen)
{
    *terminal = (struct esp_terminal){.signals = {-1, -1}};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        tcgetattr(STDIN_FILENO, &terminal->saved) < 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "the interface needs a terminal; for pipes and files there is "
                        "espalier generate");
    if (pipe2(terminal->signals, O_CLOEXEC | O_NONBLOCK) < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "no pipe for signals: %s", strerror(errno));
    esp_root.terminal = terminal;
    for (int i = 0; i < ASKING; i++)
        handle(asking[i], on_signal, SA_RESTART);
    for (int i = 0; i < CRASHES; i++)
        handle(crashes[i], on_crash, (int)(SA_RESETHAND | SA_NODEFER));
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

void esp_terminal_close(struct esp_terminal *terminal)
{
    if (esp_root.terminal != terminal)
        return;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved);
    for (int i = 0; i < ASKING; i++)
        handle(asking[i], SIG_DFL, 0);
    for (int i = 0; i < CRASHES; i++)
        handle(crashes[i], SIG_DFL, 0);
    esp_root.terminal = NULL;
    close(terminal->signals[0]);
    close(terminal->signals[1]);
}

void esp_terminal_restore_with(struct esp_terminal *terminal, const char *text)
{
    size_t count = strlen(text);
    if (count > sizeof terminal->restore)
        return;
    memcpy(terminal->restore, text, count);
    terminal->restore_count = count;
}

void esp_terminal_suspend(struct esp_terminal *terminal, int group)
{
    struct termios ours;
    tcgetattr(STDIN_FILENO, &ours);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved);
    handle(SIGTSTP, SIG_DFL, 0);
    if (group)
        kill(0, SIGTSTP);
    else
        raise(SIGTSTP);
    handle(SIGTSTP, on_signal, SA_RESTART);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &ours);
}
