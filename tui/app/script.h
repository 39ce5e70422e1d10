/* script.h - drives the interface from a file, without a terminal.
 *
 * For tests and for pictures: keys go the same way as from a terminal, and the screen is drawn
 * into the same canvas, which is written out as text. One instruction per line; '#' starts a
 * comment.
 *
 *     size WxH              size of the screen; also later, as a resize
 *     glyphs full|plain|ascii
 *     type TEXT             the characters of TEXT, up to the end of the line
 *     key NAME...           keys by name: Enter, Tab, F2, C-c, M-f, Up, ...
 *     paste TEXT            as a bracketed paste; \n stands for a newline
 *     mouse BUTTON X Y      0: the left one, 64, 65: the wheel up, down; cells count from 0
 *     wait                  until the engine has nothing left to do, or waits in step mode;
 *                           in a replay, which does not play by itself, until it stops
 *     dump FILE             the screen as text ("-": standard output)
 *     styles FILE           one letter per cell for its style
 *     mdoc FILE             keys and commands as sections of a manual page
 */
#ifndef ESP_SCRIPT_H
#define ESP_SCRIPT_H

#include "tui/app/app.h"

/* Runs a script; returns the exit code. Prints what is wrong with it, if something is. */
int esp_script_run(const char *path, const struct esp_interface_options *options);

#endif
