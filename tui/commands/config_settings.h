/* config_settings.h - applies and writes the configuration file (config_file.h). */
#ifndef ESP_CONFIG_SETTINGS_H
#define ESP_CONFIG_SETTINGS_H

#include "tui/commands/control.h"

/* Applies the lines with settings of the models (`models`) or all others, except settings given
 * on the command line. */
int esp_configuration_apply(const struct esp_configuration *config, struct esp_control *control,
                            bool models, char *err, size_t errlen);

/* Writes the settings that differ from their defaults. */
int esp_configuration_write(const struct esp_control *control, const char *path, char *err,
                            size_t errlen);

#endif
