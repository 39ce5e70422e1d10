/* configuration.h - the configuration file: settings (settings.h) that are applied at the
 * start.
 *
 *     # comment
 *     theme light
 *     drafter dynatree:tauh=0.8
 *     hidden controller,stats
 *
 * Each line has one setting: its key, blanks or '=', and its value. The file is
 * $XDG_CONFIG_HOME/espalier/config (default: ~/.config/espalier/config), and it can be missing.
 * Flags of the command line override it. Only ":config save" writes the file. If writing fails,
 * the old file stays.
 */
#ifndef ESP_CONFIGURATION_H
#define ESP_CONFIGURATION_H

#include <stdbool.h>
#include <stddef.h>

struct esp_control;

struct esp_configuration {
    char path[1024]; /* path of the file; "" if the user has no folder for it */
    struct esp_configuration_line {
        char *key, *value;
        int number; /* line number */
    } * lines;      /* (count) */
    int count, capacity;
};

/* Reads `path`, which must exist. If `path` is NULL, reads the user's file, which can be
 * missing. If `lines` is false, reads nothing and only sets config->path, so that the file can
 * be written later. Returns 0, or ESP_E_FILE or ESP_E_FORMAT with a message that names the file
 * and the line. */
int esp_configuration_read(struct esp_configuration *config, const char *path, bool lines,
                           char *err, size_t errlen);
void esp_configuration_free(struct esp_configuration *config);

/* Applies the lines that set models if `models` is true, and otherwise all other lines. Skips
 * settings that were given on the command line. Returns 0, or a negative status with a
 * message. */
int esp_configuration_apply(const struct esp_configuration *config, struct esp_control *control,
                            bool models, char *err, size_t errlen);
/* Writes all settings of the interface, the other settings that the user chose, and the bound
 * keys. Returns 0 or a negative status with a message. */
int esp_configuration_write(const struct esp_control *control, const char *path, char *err,
                            size_t errlen);

#endif
