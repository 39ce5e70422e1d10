/* pty.c - opens a pseudo-terminal, runs the program in it, and reads its output; see pty.h. */
#include "tests/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

double pty_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The process that made the folder. Its child processes must not remove the folder. */
static pid_t owner;

/* Returns the folder for the files of the programs. It is removed when this process ends. */
static const char *home(void)
{
    static char folder[64];
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s", P_tmpdir "/espalier-pty-XXXXXX");
        CHECK(mkdtemp(folder));
        owner = getpid();
    }
    return folder;
}

__attribute__((destructor)) static void remove_home(void)
{
    char command[128];
    if (owner != getpid())
        return;
    snprintf(command, sizeof command, "rm -rf %s", home());
    if (system(command) != 0)
        perror(command);
}

_Noreturn static void run(int terminal, const char *const *environment,
                          const char *const *arguments)
{
    const char *program = getenv("ESPALIER");
    const char *argv[32] = {program ? program : "build/espalier"};
    char path[128];
    int count = 1;
    setsid();
    ioctl(terminal, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++)
        dup2(terminal, i);
    snprintf(path, sizeof path, "%s/config", home());
    setenv("XDG_CONFIG_HOME", path, 1);
    snprintf(path, sizeof path, "%s/state", home());
    setenv("XDG_STATE_HOME", path, 1);
    setenv("TERM", "xterm-256color", 1);
    unsetenv("COLORTERM");
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("NO_COLOR");
    unsetenv("ESPALIER_SCRIPT");
    for (; environment && *environment; environment++)
        putenv((char *)*environment);
    while (arguments && *arguments && count < 31)
        argv[count++] = *arguments++;
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

void pty_open(struct pty *pty, int width, int height, const char *const *environment,
              const char *const *arguments)
{
    struct winsize size = {.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
    *pty = (struct pty){.pid = -1};
    home();
    pty->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    CHECK(pty->fd >= 0 && grantpt(pty->fd) == 0 && unlockpt(pty->fd) == 0);
    pty->other = open(ptsname(pty->fd), O_RDWR | O_NOCTTY);
    CHECK(pty->other >= 0 && ioctl(pty->fd, TIOCSWINSZ, &size) == 0);
    CHECK(tcgetattr(pty->other, &pty->before) == 0);
    pty->started = pty_now();
    pty->pid = fork();
    CHECK(pty->pid >= 0);
    if (pty->pid == 0)
        run(pty->other, environment, arguments);
    pty->output = calloc(1, 1);
    CHECK(pty->output);
}

void pty_close(struct pty *pty)
{
    if (pty->pid > 0) {
        kill(pty->pid, SIGKILL);
        waitpid(pty->pid, NULL, 0);
    }
    close(pty->fd);
    close(pty->other);
    free(pty->output);
}

static bool take(struct pty *pty)
{
    char bytes[65536];
    ssize_t count = read(pty->fd, bytes, sizeof bytes);
    if (count <= 0)
        return false;
    size_t needed = pty->count + (size_t)count + 1;
    if (needed > pty->capacity) {
        pty->capacity = 2 * needed;
        pty->output = realloc(pty->output, pty->capacity);
        CHECK(pty->output);
    }
    memcpy(pty->output + pty->count, bytes, (size_t)count);
    pty->count += (size_t)count;
    pty->output[pty->count] = '\0';
    return true;
}

bool pty_read(struct pty *pty, double seconds)
{
    struct pollfd ready = {.fd = pty->fd, .events = POLLIN};
    /* If this number were negative, poll() would wait forever. */
    const int milliseconds = seconds > 0 ? (int)(seconds * 1000) : 0;
    return poll(&ready, 1, milliseconds) > 0 && take(pty);
}

bool pty_wait(struct pty *pty, const char *text, double seconds)
{
    const double end = pty_now() + seconds;
    size_t length = strlen(text), from = 0;
    for (;;) {
        if (pty->count >= length && memmem(pty->output + from, pty->count - from, text, length))
            return true;
        from = pty->count > length ? pty->count - length : 0;
        double left = end - pty_now();
        if (left <= 0)
            return false;
        pty_read(pty, left < 0.05 ? left : 0.05);
    }
}

void pty_forget(struct pty *pty)
{
    pty->count = 0;
    pty->output[0] = '\0';
}

void pty_send(struct pty *pty, const char *bytes, size_t count)
{
    while (count > 0) {
        struct pollfd ready = {.fd = pty->fd, .events = POLLIN | POLLOUT};
        CHECK(poll(&ready, 1, 20000) > 0, "the program does not read its input");
        if (ready.revents & POLLIN)
            take(pty);
        ssize_t sent = ready.revents & POLLOUT ? write(pty->fd, bytes, count) : 0;
        CHECK(sent >= 0 || errno == EAGAIN);
        bytes += sent > 0 ? sent : 0;
        count -= sent > 0 ? (size_t)sent : 0;
    }
}

void pty_type(struct pty *pty, const char *text)
{
    pty_send(pty, text, strlen(text));
}

void pty_resize(struct pty *pty, int width, int height)
{
    struct winsize size = {.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
    CHECK(ioctl(pty->fd, TIOCSWINSZ, &size) == 0);
}

int pty_end(struct pty *pty, double seconds)
{
    const double end = pty_now() + seconds;
    int status;
    while (pty_now() < end) {
        pty_read(pty, 0.01);
        if (waitpid(pty->pid, &status, WNOHANG) == pty->pid) {
            while (pty_read(pty, 0))
                continue;
            pty->pid = -1;
            return status;
        }
    }
    return -1;
}

bool pty_restored(const struct pty *pty)
{
    struct termios now;
    return tcgetattr(pty->other, &now) == 0 && now.c_iflag == pty->before.c_iflag &&
           now.c_oflag == pty->before.c_oflag && now.c_cflag == pty->before.c_cflag &&
           now.c_lflag == pty->before.c_lflag &&
           memcmp(now.c_cc, pty->before.c_cc, sizeof now.c_cc) == 0;
}
