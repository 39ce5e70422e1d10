/* catalogue.h - lists all keys, commands and settings, for the help pane and the manual.
 *
 * The lists come from the tables that the program itself uses (keys.def, commands.def,
 * settings.c), so they are complete.
 */
#ifndef ESP_CATALOGUE_H
#define ESP_CATALOGUE_H

#include <stdbool.h>
#include <stdio.h>

/* Returns the lines of the help pane, with NULL at the end. They describe a replay if `replay`
 * is true, and a live session otherwise. Headings start in column 0. Returns NULL if there is
 * no memory. */
char **esp_catalogue_help(bool replay);
void esp_catalogue_free(char **lines);

/* Writes the sections KEYS, COMMANDS and SETTINGS of man/espalier-interface.7. */
void esp_catalogue_mdoc(FILE *file);

#endif
