/* interface.h - the terminal interface, as the command line opens it. */
#ifndef ESP_INTERFACE_H
#define ESP_INTERFACE_H

#include "tui/commands/control.h"

/* Runs until the user leaves and returns the exit code. With ESPALIER_SCRIPT in the environment
 * it opens no terminal but obeys the script of that name (script.h). */
int interface_main(const struct esp_interface_options *options);

#endif
