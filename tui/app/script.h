/* script.h - drives the interface from a file, without a terminal.
 *
 * For tests and pictures: keys and drawing work as on a terminal; the canvas is written as
 * text. One instruction per line; '#' starts a comment.
 *
 *     size WxH              size of the screen; later: a resize
 *     glyphs full|plain|ascii
 *     type TEXT             the characters of TEXT, up to the end of the line
 *     key NAME...           keys by name: Enter, Tab, F2, C-c, M-f, Up, ...
 *     paste TEXT            as a bracketed paste; \n stands for a newline
 *     mouse BUTTON X Y      button 0: left, 64: wheel up, 65: wheel down; cells from 0
 *     wait                  until the engine is idle or waits in step mode; in a replay, until
 *                           it stops
 *     dump FILE             the screen as text ("-": standard output)
 *     styles FILE           one letter per cell for its style
 *     mdoc FILE             keys and commands as sections of a manual page
 */
#ifndef ESP_SCRIPT_H
#define ESP_SCRIPT_H

#include "tui/app/app.h"

/* Runs a script. Prints errors in it. Returns the exit code. */
int esp_script_run(const char *path, const struct esp_interface_options *options);

#endif
