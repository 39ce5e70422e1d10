/* config_settings.c - settings from the configuration file and back; see config_settings.h. */
#include "tui/commands/config_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/paths.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"
#include "tui/commands/bindings.h"
#include "tui/commands/settings.h"

/* ------------------------------------------------------------------ applying */

int esp_configuration_apply(const struct esp_configuration *config, struct esp_control *control,
                            bool models, char *err, size_t errlen)
{
    char origin[1100], wrong[600];
    for (int i = 0; i < config->count; i++) {
        const struct esp_configuration_line *line = &config->lines[i];
        snprintf(origin, sizeof origin, "%s, line %d: ", config->path, line->number);
        if (strcmp(line->key, "bind") == 0) {
            if (models || esp_bindings_set(control, line->value, wrong, sizeof wrong) == 0)
                continue;
            return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s%s", origin, wrong);
        }
        int index = esp_setting_find(line->key, strlen(line->key));
        bool of_models = index >= 0 && esp_setting(index)->kind == ESP_SETTING_MODELS;
        if (of_models != models || (index >= 0 && control->options.given[index]))
            continue;
        int status =
            esp_setting_change(control, line->key, line->value, origin, wrong, sizeof wrong);
        if (status < 0)
            return esp_fail(err, errlen, status, "%s%s", origin, wrong);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ writing */

/* Does the file say it? What the user never chose follows the program and the models; the
 * looks of the interface are remembered as they are. */
static bool is_written(const struct esp_control *control, int index)
{
    const struct esp_setting *setting = esp_setting(index);
    if (setting->kind == ESP_SETTING_INTERFACE || strcmp(setting->key, "pace") == 0)
        return true;
    return control->chosen[index];
}

int esp_configuration_write(const struct esp_control *control, const char *path, char *err,
                            size_t errlen)
{
    char *text = NULL, value[1200];
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (!stream)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for %s", path);
    fputs("# Written by :config save of espalier. Keys are those of :set; see "
          "espalier-interface(7).\n",
          stream);
    for (int i = 0; esp_setting(i); i++) {
        if (!is_written(control, i))
            continue;
        esp_setting_get(control, i, value, sizeof value);
        if (*value)
            fprintf(stream, "%s %s\n", esp_setting(i)->key, value);
    }
    const struct esp_own_keys *own = &control->ui.own_keys;
    for (int i = 0; i < own->count; i++)
        fprintf(stream, "bind %s %s\n", own->binding[i].key,
                esp_bindings_text(&own->binding[i], value, sizeof value));
    bool failed = ferror(stream);
    failed = fclose(stream) != 0 || failed;
    int status;
    if (failed) {
        status = esp_fail(err, errlen, ESP_E_MEMORY, "no memory for %s", path);
    } else {
        esp_make_folders(path);
        status = esp_write_file(path, text, length, true, err, errlen);
    }
    free(text);
    return status;
}
