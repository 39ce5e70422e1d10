/* pty.h - runs the program in a pseudo-terminal, for tests.
 *
 * Tests get only the bytes that the program writes, not a screen. Tests that need a screen use
 * tests/terminal.sh. Each program gets empty folders for its configuration and state. If one of
 * these functions fails, the running test fails.
 */
#ifndef ESP_PTY_H
#define ESP_PTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct pty {
    pid_t pid;
    /* fd is the test's end of the terminal; other is the program's end, which stays open */
    int fd, other;
    struct termios before; /* modes of the terminal before the program ran */
    char *output;          /* `count` bytes and a NUL: the output since the last pty_forget() */
    size_t count, capacity;
    double started; /* the time (pty_now()) at which the program was started */
};

double pty_now(void); /* returns the time of a monotonic clock, in seconds */

/* Runs the program ($ESPALIER) with these arguments. Its environment has TERM=xterm-256color,
 * LC_ALL=C.UTF-8 and the given variables ("NAME=value"). `environment` can be NULL. Both lists
 * end with NULL. */
void pty_open(struct pty *pty, int width, int height, const char *const *environment,
              const char *const *arguments);
/* Kills the program if it still runs. */
void pty_close(struct pty *pty);

/* Waits at most `seconds` for output, and reads it. Returns false if there was no output. */
bool pty_read(struct pty *pty, double seconds);
/* Reads until the output contains `text`. Returns false if this takes longer than `seconds`. */
bool pty_wait(struct pty *pty, const char *text, double seconds);
void pty_forget(struct pty *pty);
/* Writes bytes, and reads the output that arrives while they are written. */
void pty_send(struct pty *pty, const char *bytes, size_t count);
void pty_type(struct pty *pty, const char *text);
void pty_resize(struct pty *pty, int width, int height);

/* Reads until the program has ended. Returns the status of waitpid(), or -1 if it does not
 * end within `seconds`. */
int pty_end(struct pty *pty, double seconds);
/* Returns whether the terminal's modes are the same as before the program ran. */
bool pty_restored(const struct pty *pty);

#endif
