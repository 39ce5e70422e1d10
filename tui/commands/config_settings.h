/* config_settings.h - the settings that a configuration file (config_file.h) holds. */
#ifndef ESP_CONFIG_SETTINGS_H
#define ESP_CONFIG_SETTINGS_H

#include "tui/commands/control.h"

/* Applies the lines whose setting is of the models (`models`), or the others; not those that
 * the command line set. */
int esp_configuration_apply(const struct esp_configuration *config, struct esp_control *control,
                            bool models, char *err, size_t errlen);

/* Writes the settings that are not what they are by themselves. */
int esp_configuration_write(const struct esp_control *control, const char *path, char *err,
                            size_t errlen);

#endif
