/* config.h - the configuration file: settings (settings.h) that hold from the start.
 *
 *     # comment
 *     theme light
 *     drafter dynatree:tauh=0.8
 *     hidden controller,stats
 *
 * One setting per line: its key, blanks (or '='), its value. The file is
 * $XDG_CONFIG_HOME/espalier/config, ~/.config if that variable is not set; it need not be
 * there. What the command line says goes before what the file says. It is written only when
 * asked to, by ":config save", as a whole or not at all.
 */
#ifndef ESP_CONFIG_H
#define ESP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct esp_app;

struct esp_configuration_line {
    char *key, *value;
    int number; /* of the line */
};

struct esp_configuration {
    char path[1024]; /* "": there is no place for one */
    struct esp_configuration_line *lines;
    int count;
};

/* Reads `path`, which must be there; NULL: the user's file, if it is there. Without `lines`
 * finds only where it is to be written. Returns 0 or ESP_E_FILE, ESP_E_FORMAT with a sentence
 * that names file and line. */
int esp_configuration_read(struct esp_configuration *config, const char *path, bool lines,
                           char *err, size_t errlen);
void esp_configuration_free(struct esp_configuration *config);

/* Applies the lines whose setting is of the models (`models`), or the others; not those that
 * the command line set. */
int esp_configuration_apply(const struct esp_configuration *config, struct esp_app *app,
                            bool models, char *err, size_t errlen);

/* Writes the settings that are not what they are by themselves. */
int esp_configuration_write(const struct esp_app *app, const char *path, char *err,
                            size_t errlen);

#endif
