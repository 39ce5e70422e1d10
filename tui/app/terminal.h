/* terminal.h - restores the terminal in all cases; turns signals into bytes on a
 * pipe.
 *
 * Signals that ask for something (interrupt, terminate, hang up, suspend, continue, resize)
 * become bytes in a pipe that the event loop polls. Signals of a crash restore the terminal on
 * the spot, with async-signal-safe calls and a string prepared beforehand, and then kill the
 * program as they would have. So does a second SIGTERM, should the event loop hang.
 */
#ifndef ESP_TERMINAL_H
#define ESP_TERMINAL_H

#include <stddef.h>
#include <termios.h>

struct esp_terminal {
    struct termios saved;
    int signals[2];    /* pipe: [0] to poll and read signal numbers from */
    char restore[256]; /* what gives the screen back */
    size_t restore_count;
    volatile int terminating;
};

/* Fails with ESP_E_ARGUMENT if standard input and output are no terminal. */
int esp_terminal_open(struct esp_terminal *terminal, char *err, size_t errlen);
/* Gives back modes and signal handlers. */
void esp_terminal_close(struct esp_terminal *terminal);
/* What to write to the terminal on a crash. */
void esp_terminal_restore_with(struct esp_terminal *terminal, const char *text);
/* Stops the program as C-z does (`group`: with everything in its process group), until it
 * continues. */
void esp_terminal_suspend(struct esp_terminal *terminal, int group);

#endif
