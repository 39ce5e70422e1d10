/* interface.h - opens the terminal interface. */
#ifndef ESP_INTERFACE_H
#define ESP_INTERFACE_H

#include "tui/commands/control.h"

/* Runs the interface until the user leaves it. Returns the exit code. If the environment
 * variable ESPALIER_SCRIPT names a script, runs that script without a terminal (script.h). */
int interface_main(const struct esp_interface_options *options);

#endif
