/* catalogue.h - all keys, commands and settings, as the help pane and the manual list them.
 *
 * Both are made from the tables that the program obeys (keys.def, commands.def, settings.c), so
 * that neither can lack one.
 */
#ifndef ESP_CATALOGUE_H
#define ESP_CATALOGUE_H

#include <stdbool.h>
#include <stdio.h>

/* Lines of the help pane, of what holds in a live session or in a replay; NULL at the end. NULL
 * if memory is short. Headings start in column 0. */
char **esp_catalogue_help(bool replay);
void esp_catalogue_free(char **lines);

/* The sections KEYS, COMMANDS and SETTINGS of man/espalier-interface.7. */
void esp_catalogue_mdoc(FILE *file);

#endif
