/* configuration.h - the configuration file: settings (settings.h) that apply at the start.
 *
 *     # comment
 *     theme light
 *     drafter dynatree:tauh=0.8
 *     hidden controller,stats
 *
 * One setting per line: key, blanks or '=', value. The file is $XDG_CONFIG_HOME/espalier/config
 * (default: ~/.config/espalier/config); it may be missing. Flags of the command line override
 * it. Only ":config save" writes it, completely or not at all.
 */
#ifndef ESP_CONFIGURATION_H
#define ESP_CONFIGURATION_H

#include <stdbool.h>
#include <stddef.h>

struct esp_control;

struct esp_configuration {
    char path[1024]; /* "": no folder for it is known */
    struct esp_configuration_line {
        char *key, *value;
        int number; /* line number */
    } * lines;      /* (count) */
    int count, capacity;
};

/* Reads `path`, which must exist, or if NULL the user's file, which may be missing. Without
 * `lines` it only sets the path for writing. Returns 0, or ESP_E_FILE or ESP_E_FORMAT with a
 * message that names file and line. */
int esp_configuration_read(struct esp_configuration *config, const char *path, bool lines,
                           char *err, size_t errlen);
void esp_configuration_free(struct esp_configuration *config);

/* Applies the lines with settings of the models (`models`) or all others, except settings given
 * on the command line. */
int esp_configuration_apply(const struct esp_configuration *config, struct esp_control *control,
                            bool models, char *err, size_t errlen);
/* Writes the settings that differ from their defaults. */
int esp_configuration_write(const struct esp_control *control, const char *path, char *err,
                            size_t errlen);

#endif
