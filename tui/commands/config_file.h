/* config_file.h - the configuration file: settings (settings.h) that hold from the start.
 *
 *     # comment
 *     theme light
 *     drafter dynatree:tauh=0.8
 *     hidden controller,stats
 *
 * One setting per line: its key, blanks (or '='), its value. The file is
 * $XDG_CONFIG_HOME/espalier/config, ~/.config if that variable is not set; it need not be
 * there. What the command line says goes before what the file says. It is written only when
 * asked to, by ":config save", as a whole or not at all (config_settings.h).
 */
#ifndef ESP_CONFIG_FILE_H
#define ESP_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
