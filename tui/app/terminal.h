/* terminal.h - restores the terminal in all cases; turns signals into bytes on a
 * pipe.
 *
 * Signals that ask for something (interrupt, terminate, hang up, suspend, continue, resize)
 * become bytes in a pipe that the event loop polls. Signals of a crash restore the terminal on
 * the spot, with async-signal-safe calls and a string prepared beforehand, and then kill the
 * program as they would have.
 *
 * SIGTERM and SIGHUP end the program within three seconds, whatever it waits for: a long pass
 * of the engine, models that are loaded, a helper, an editor, a pipe or a terminal that nobody
 * reads. When they are over, SIGALRM restores the terminal and ends the program on the spot,
 * also where this file has been closed already; a second SIGTERM does so at once. An
 * editor that has the terminal gets the signal, too, and is killed in the end. A recording has
 * all its lines by then, since none waits in memory.
 */
#ifndef ESP_TERMINAL_H
#define ESP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct esp_terminal {
    struct termios saved;
    int signals[2];    /* pipe: [0] to poll and read signal numbers from */
    char restore[256]; /* what gives the screen back */
    size_t restore_count;
};

/* Fails with ESP_E_ARGUMENT if standard input and output are no terminal. */
int esp_terminal_open(struct esp_terminal *terminal, char *err, size_t errlen);
/* Gives back modes and signal handlers. */
void esp_terminal_close(struct esp_terminal *terminal);
/* What to write to the terminal on a crash. */
void esp_terminal_restore_with(struct esp_terminal *terminal, const char *text);
/* Stops the program as C-z does (`group`: with everything in its process group), until it
 * continues. If a signal ends it, the terminal is not taken again. */
void esp_terminal_suspend(struct esp_terminal *terminal, int group);
/* False: the program is in the background, and the terminal is somebody else's to change. */
bool esp_terminal_is_ours(void);

#endif
