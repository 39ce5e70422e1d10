/* paths.h - where files lie: the models and themes that come with the program, and the user's
 * own. */
#ifndef ESP_PATHS_H
#define ESP_PATHS_H

#include "espalier.h"

/* Writes the path of `name` of a kind ("models" or "themes") to `path`; an empty name stands
 * for the folder of that kind. Looked for, in this order: in the folder that the environment
 * variable ESPALIER_DATA names; in the source tree or the installation that the running
 * program, then the loaded library, lies in; where `make install` puts it. Returns 0, or
 * ESP_E_FILE if there is no such file or folder, if `name` is not a plain name, or if the path
 * does not fit. */
int esp_find_data(char *path, size_t size, const char *kind, const char *name);

/* Writes the name of the `index`-th entry of that folder, in alphabetical order: folders of
 * models, files of themes without their ending. Returns 0, or ESP_E_FILE past the end. */
int esp_list_data(const char *kind, int index, char *name, size_t size);

/* The same of any folder, of its entries with this ending, which is left out of the name. */
int esp_list_folder(const char *folder, const char *ending, int index, char *name, size_t size);

enum esp_user_folder {
    ESP_USER_CONFIG, /* $XDG_CONFIG_HOME, else ~/.config */
    ESP_USER_STATE,  /* $XDG_STATE_HOME, else ~/.local/state */
};

/* Writes the path of `name` in the folder espalier of one of the user's folders. (A relative
 * variable is to be ignored, says the XDG base directory specification.) Returns 0, or
 * ESP_E_FILE if there is no home folder or the path does not fit. */
int esp_user_path(char *path, size_t size, enum esp_user_folder folder, const char *name);

#endif
