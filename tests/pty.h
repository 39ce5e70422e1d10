/* pty.h - the program in a terminal of its own, for tests: bytes in, bytes out.
 *
 * There is no terminal behind it, only what the program writes; tests that need a screen use
 * tests/terminal.sh. Each program gets empty folders for its configuration and its state. What
 * goes wrong here fails the running test.
 */
#ifndef ESP_PTY_H
#define ESP_PTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct pty {
    pid_t pid;
    int fd, other;         /* this end; that of the program, kept open */
    struct termios before; /* modes of the terminal before the program ran */
    char *output;          /* (count), and a NUL; what it wrote since the last pty_forget() */
    size_t count, capacity;
    double started; /* pty_now() */
};

double pty_now(void); /* seconds, monotonic */

/* Runs the program ($ESPALIER) with these arguments; `environment` ("NAME=value", NULL: none)
 * comes on top of TERM=xterm-256color and LC_ALL=C.UTF-8. Both lists end with NULL. */
void pty_open(struct pty *pty, int width, int height, const char *const *environment,
              const char *const *arguments);
/* Kills the program if it still runs. */
void pty_close(struct pty *pty);

/* Reads what comes within `seconds`, at least once; false if nothing did. */
bool pty_read(struct pty *pty, double seconds);
/* Reads until the output holds `text`; false if it does not within `seconds`. */
bool pty_wait(struct pty *pty, const char *text, double seconds);
void pty_forget(struct pty *pty);
/* Writes; output that comes meanwhile is read. */
void pty_send(struct pty *pty, const char *bytes, size_t count);
void pty_type(struct pty *pty, const char *text);
void pty_resize(struct pty *pty, int width, int height);

/* Reads until the program has ended, and returns what waitpid() says; -1 if it does not end
 * within `seconds`. */
int pty_end(struct pty *pty, double seconds);
/* Are the modes those of before? */
bool pty_restored(const struct pty *pty);

#endif
