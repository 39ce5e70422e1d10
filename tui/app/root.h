/* root.h - the only mutable global variable. Signal handlers and readline's callbacks need it
 * to find their data, because they cannot get a pointer to the data as an argument. */
#ifndef ESP_ROOT_H
#define ESP_ROOT_H

#include <signal.h>
#include <sys/types.h>

struct esp_root {
    struct esp_terminal *terminal;
    struct esp_input *input;
    volatile sig_atomic_t ending; /* the signal that ends the program, or 0 */
    volatile pid_t editor;        /* the running editor, or 0 */
};

extern struct esp_root esp_root;

#endif
