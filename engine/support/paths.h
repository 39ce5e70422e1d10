/* paths.h - finds the program's data folders (models, themes, ...), the user's folders, and
 * the files in them that hold learned values. */
#ifndef ESP_PATHS_H
#define ESP_PATHS_H

#include "engine/espalier.h"

/* Writes to `path` the path of the item `name` of a kind ("models", "themes", "lessons",
 * "samples", "suites"); an empty name stands for the folder of that kind. These folders are
 * searched in this order: the folder that the environment variable ESPALIER_DATA names; the
 * source tree or installation of the running program; the source tree or installation of the
 * loaded library; the folder of `make install`. Returns 0, or ESP_E_FILE if there is no such
 * file or folder, if `name` is not a plain name, or if the path does not fit. */
int esp_find_data(char *path, size_t size, const char *kind, const char *name);

/* Writes the name of the `index`-th entry of the folder of a kind. Entries are ordered by the
 * number that their name begins with, then by their bytes. Themes are written without their
 * ending. Returns 0, or ESP_E_FILE past the end. */
int esp_list_data(const char *kind, int index, char *name, size_t size);

/* Works like esp_list_data() for any folder. Lists only entries with this ending, and writes
 * their names without it. */
int esp_list_folder(const char *folder, const char *ending, int index, char *name, size_t size);

enum esp_user_folder {
    ESP_USER_CONFIG, /* $XDG_CONFIG_HOME, else ~/.config */
    ESP_USER_STATE,  /* $XDG_STATE_HOME, else ~/.local/state */
};

/* Writes the path of `name` in the subfolder espalier of one of the user's folders. A relative
 * path in the environment variable is ignored, as required by the XDG base directory
 * specification. Returns 0, or ESP_E_FILE if there is no home folder or the path does not
 * fit. */
int esp_user_path(char *path, size_t size, enum esp_user_folder folder, const char *name);

/* Learned values are stored in files in ESP_USER_STATE. If writing fails, the old file stays.
 * Everything that is read is untrusted. */

/* Writes the name of the file that stores what a kind of learner (such as "sequoia") has
 * learned for `key`. Writes "" if the key is empty. */
void esp_state_name(char *name, size_t size, const char *kind, const char *key);

/* Reads file `name`, a plain name, into `text` and adds a NUL. Returns its length, or
 * ESP_E_FILE if there is no such regular file or it does not fit into `size` bytes. */
int esp_state_read(const char *name, char *text, size_t size);

/* Returns whether there is a file, or anything else, with this name. */
bool esp_state_exists(const char *name);

/* Replaces file `name`; creates the folder if needed. Returns 0 or ESP_E_FILE. */
int esp_state_write(const char *name, const char *text);

/* Replaces file `name` by `length` bytes, as esp_state_write() does; only the user may read
 * it. */
int esp_state_write_private(const char *name, const char *bytes, size_t length);

/* Returns the JSON object in file `name`. Returns NULL if there is no such object, if the file
 * has `size` bytes or more, or if the object's member "key" is not `key`. Free the object with
 * cJSON_Delete(). */
struct cJSON *esp_state_object(const char *name, size_t size, const char *key);

/* Writes an object to file `name` and frees the object. Returns whether it was written. */
bool esp_state_write_object(const char *name, struct cJSON *object);

/* Reads an array of `count` numbers, each from 0 to a million. Returns false if `array` is
 * anything else. */
bool esp_state_numbers(const struct cJSON *array, double *numbers, int count);

#endif
