/* script.h - drives the interface from a file, without a terminal.
 *
 * Scripts are for tests and for pictures in the documentation. Keys and drawing work as on a
 * terminal, but the canvas is written to a file as text. Each line has one instruction; '#'
 * starts a comment.
 *
 *     size WxH              size of the screen; may be changed later
 *     glyphs full|plain|ascii
 *     type TEXT             type the characters of TEXT, up to the end of the line
 *     key NAME...           press keys: Enter, Tab, F2, C-c, M-f, Up, ...
 *     paste TEXT            paste TEXT (bracketed paste); \n stands for a newline
 *     mouse BUTTON X Y      button 0: left, 64: wheel up, 65: wheel down; X and Y from 0
 *     wait                  wait until the engine is idle or waits in step mode; in a replay,
 *                           wait until the playback stops
 *     dump FILE             write the screen as text ("-": to standard output)
 *     styles FILE           write a letter for the style of each cell
 *     mdoc FILE             write keys and commands as sections of a manual page
 */
#ifndef ESP_SCRIPT_H
#define ESP_SCRIPT_H

#include "tui/app/app.h"

/* Runs a script and returns the exit code. Writes errors in the script to standard error. */
int esp_script_run(const char *path, const struct esp_interface_options *options);

#endif
