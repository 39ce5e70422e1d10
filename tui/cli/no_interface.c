/* no_interface.c - replaces the terminal interface in a build without ncurses. */
#include "tui/app/interface.h"

#include <stdio.h>

int interface_main(const struct esp_interface_options *options)
{
    (void)options;
    fputs("espalier: this build has no terminal interface (make headless); use espalier "
          "generate or espalier replay --plain, or build with make\n",
          stderr);
    return 1;
}
