/* terminal.h - restores the terminal in all cases; turns signals into bytes in a pipe.
 *
 * Signals that require an action (interrupt, terminate, hang up, suspend, continue, resize)
 * become bytes in a pipe that the event loop polls. For signals of a crash, the handler
 * restores the terminal with async-signal-safe calls and a prepared string, and the signal then
 * kills the program as usual.
 *
 * SIGTERM and SIGHUP end the program within three seconds, even during a long pass, while
 * models load, or while it waits for a helper program, an editor, a pipe or a terminal that
 * nobody reads. After three seconds SIGALRM restores the terminal and ends the program, even
 * after esp_terminal_close(). A second SIGTERM does so immediately. A running editor also gets
 * the signal and is killed at the end. Recordings are complete, because no line waits in
 * memory.
 */
#ifndef ESP_TERMINAL_H
#define ESP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct esp_terminal {
    struct termios saved;
    int signals[2];    /* pipe: [0] to poll and read signal numbers from */
    char restore[256]; /* bytes that restore the screen */
    size_t restore_count;
};

/* Saves the modes and installs the signal handlers. Returns 0 or a negative status with a
 * message; ESP_E_ARGUMENT if standard input or output is not a terminal. */
int esp_terminal_open(struct esp_terminal *terminal, char *err, size_t errlen);
/* Restores the modes, and the default handlers of all signals except SIGTERM and SIGHUP,
 * because the program may still be writing its files. */
void esp_terminal_close(struct esp_terminal *terminal);
/* Sets the bytes to write to the terminal on a crash. */
void esp_terminal_restore_with(struct esp_terminal *terminal, const char *text);
/* Suspends the program, or its whole process group (`group`), as C-z does, until it is
 * continued. If a signal ends the program, it does not take the terminal back. */
void esp_terminal_suspend(struct esp_terminal *terminal, int group);
/* Returns false if the program is in the background and must not change the terminal. */
bool esp_terminal_is_ours(void);

#endif
