/* terminal.c - saves the terminal's modes, handles signals, suspends the program; see
 * terminal.h. */
#include "tui/app/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/status.h"
#include "kernels/system.h"
#include "tui/app/root.h"
#include "engine/support/part_file.h"

static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT};

enum { ASKING = sizeof asking / sizeof *asking, CRASHES = sizeof crashes / sizeof *crashes };
enum { PATIENCE = 3 /* seconds that the program has to end after SIGTERM */ };

bool esp_terminal_is_ours(void)
{
    const pid_t group = tcgetpgrp(STDIN_FILENO);
    return group < 0 || group == getpgrp();
}

/* The functions up to on_signal() are async-signal-safe. */

/* Writes all bytes in one call if the terminal accepts that. Another thread may be writing a
 * frame, and the bytes of the frame must not mix with these bytes. If nobody reads the
 * terminal, it accepts no more bytes. Then this function gives up after a while. */
static void write_if_read(const char *bytes, size_t count)
{
    enum { TRIES = 30, MILLISECONDS = 10 };
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    if (flags < 0)
        return;
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    for (int tries = 0; count > 0 && tries < TRIES; tries++) {
        const ssize_t written = write(STDOUT_FILENO, bytes, count);
        if (written < 0 && errno != EAGAIN && errno != EINTR)
            break;
        if (written < 0) {
            poll(NULL, 0, MILLISECONDS);
            continue;
        }
        bytes += written;
        count -= (size_t)written;
    }
    fcntl(STDOUT_FILENO, F_SETFL, flags);
}

static void restore_now(const struct esp_terminal *terminal)
{
    if (!esp_terminal_is_ours())
        return;
    write_if_read(terminal->restore, terminal->restore_count);
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal->saved);
}

static void say_nothing(const char *whole)
{
    (void)whole;
}

static void leave_nothing_behind(void)
{
    if (esp_root.editor > 0)
        kill(esp_root.editor, SIGKILL);
    if (esp_root.terminal)
        restore_now(esp_root.terminal);
    esp_part_files_remove(say_nothing);
}

static void die_by(int number)
{
    leave_nothing_behind();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_crash(int number)
{
    die_by(number);
}

static void on_alarm(int number)
{
    (void)number;
    leave_nothing_behind();
    _exit(128 + esp_root.ending);
}

/* Begins to end the program. From now on, the process must not be suspended by C-z, or because
 * it uses the terminal from the background. */
static void begin_to_end(int number)
{
    esp_root.ending = number;
    signal(SIGTSTP, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    alarm(PATIENCE);
    if (esp_root.editor > 0)
        kill(esp_root.editor, number);
}

static void on_signal(int number)
{
    struct esp_terminal *terminal = esp_root.terminal;
    int error = errno;
    const char byte = (char)number;
    if (number == SIGTERM || number == SIGHUP) {
        if (esp_root.ending && number == SIGTERM)
            die_by(number);
        else if (!esp_root.ending)
            begin_to_end(number);
    }
    if (terminal && write(terminal->signals[1], &byte, 1) < 0) {
        /* The pipe is full, so this byte is lost. The other bytes wake the event loop. */
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
    sigset_t alarms;
    *terminal = (struct esp_terminal){.signals = {-1, -1}};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        tcgetattr(STDIN_FILENO, &terminal->saved) < 0)
        return esp_fail(
            err, errlen, ESP_E_ARGUMENT,
            "the interface needs a terminal; for pipes and files use espalier generate");
    if (esp_pipe(terminal->signals, false) < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "cannot make a pipe for signals: %s",
                        strerror(errno));
    esp_root.terminal = terminal;
    for (int i = 0; i < ASKING; i++)
        handle(asking[i], on_signal, SA_RESTART);
    for (int i = 0; i < CRASHES; i++)
        handle(crashes[i], on_crash, (int)(SA_RESETHAND | SA_NODEFER));
    handle(SIGALRM, on_alarm, 0);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

void esp_terminal_close(struct esp_terminal *terminal)
{
    if (esp_root.terminal != terminal)
        return;
    if (esp_terminal_is_ours())
        tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved);
    for (int i = 0; i < ASKING; i++)
        if (asking[i] != SIGTERM && asking[i] != SIGHUP) /* the program may still write files */
            handle(asking[i], SIG_DFL, 0);
    for (int i = 0; i < CRASHES; i++)
        handle(crashes[i], SIG_DFL, 0);
    if (esp_root.ending)
        signal(SIGTSTP, SIG_IGN); /* with the default handler, C-z would stop the program while
                                     it ends */
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
    if (!esp_root.ending)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &ours);
}
