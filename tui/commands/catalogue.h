/* catalogue.h - lists all keys, commands and settings, for the help pane and the manual.
 *
 * Both come from the tables that the program uses (keys.def, commands.def, settings.c), so they
 * are complete.
 */
#ifndef ESP_CATALOGUE_H
#define ESP_CATALOGUE_H

#include <stdbool.h>
#include <stdio.h>

/* Lines of the help pane for a live session or a replay, NULL at the end. Headings start in
 * column 0. NULL: no memory. */
char **esp_catalogue_help(bool replay);
void esp_catalogue_free(char **lines);

/* The sections KEYS, COMMANDS and SETTINGS of man/espalier-interface.7. */
void esp_catalogue_mdoc(FILE *file);

#endif
