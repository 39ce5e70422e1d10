/* interface.h - opens the terminal interface. */
#ifndef ESP_INTERFACE_H
#define ESP_INTERFACE_H

#include "tui/commands/control.h"

/* Runs until the user leaves. Returns the exit code. If the environment variable
 * ESPALIER_SCRIPT names a script, runs that script instead, without a terminal (script.h). */
int interface_main(const struct esp_interface_options *options);

#endif
