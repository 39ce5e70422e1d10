/* terminal.h - restores the terminal no matter how the program ends, and turns signals into
 * bytes in a pipe.
 *
 * Signals that require an action (interrupt, terminate, hang up, suspend, continue, resize)
 * become bytes in a pipe that the event loop polls. If the program crashes, the signal handler
 * restores the terminal. It uses only async-signal-safe calls and a string that was prepared
 * before. Then the signal kills the program as usual.
 *
 * SIGTERM and SIGHUP end the program within three seconds. This holds even during a long pass
 * and while models load. It also holds while the program waits for another program, or for a
 * terminal that nobody reads. After three seconds SIGALRM restores the terminal and ends the
 * program, even after esp_terminal_close(). A second SIGTERM does so immediately. A running
 * editor also gets the signal, and is killed when the program ends. Recordings are complete,
 * because each line is written to the file as soon as it exists.
 */
#ifndef ESP_TERMINAL_H
#define ESP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct esp_terminal {
    struct termios saved;
    int signals[2];    /* a pipe of signal numbers; [0] is its end for reading */
    char restore[256]; /* bytes that restore the screen */
    size_t restore_count;
};

/* Saves the modes and installs the signal handlers. Returns 0, or a negative status with a
 * message. The status is ESP_E_ARGUMENT if standard input or output is not a terminal. */
int esp_terminal_open(struct esp_terminal *terminal, char *err, size_t errlen);
/* Restores the modes, and the default handlers of all signals except SIGTERM and SIGHUP. These
 * two keep their handlers, because the program may still be writing its files. */
void esp_terminal_close(struct esp_terminal *terminal);
/* Sets the bytes that restore the terminal. The handler writes them if the program crashes. */
void esp_terminal_restore_with(struct esp_terminal *terminal, const char *text);
/* Suspends the program, as C-z does, until it is continued. If `group` is true, suspends its
 * whole process group. If a signal ends the program while it is suspended, the terminal stays
 * in its original modes. */
void esp_terminal_suspend(struct esp_terminal *terminal, int group);
/* Returns false if the program is in the background and must not change the terminal. */
bool esp_terminal_is_ours(void);

#endif
