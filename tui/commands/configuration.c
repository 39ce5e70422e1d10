/* configuration.c - reads, applies and writes the configuration file; see configuration.h. */
#include "tui/commands/configuration.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/support/paths.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"
#include "sessions/grow.h"
#include "tui/commands/bindings.h"
#include "tui/commands/settings.h"
#include "tui/model/line_file.h"

enum { MOST_LINES = 1000 };

/* ------------------------------------------------------------------ reading */

static int read_line(void *user, struct esp_file_line *line)
{
    struct esp_configuration *config = user;
    size_t length = strcspn(line->text, " \t=");
    const char *value = line->text + length + strspn(line->text + length, " \t=");
    if (length == 0 || !*value)
        return esp_wrong_line(line, "write a setting and its value, not '%.60s'", line->text);
    if (config->count == MOST_LINES)
        return esp_wrong_line(line, "more than %d settings", MOST_LINES);
    struct esp_configuration_line added = {strndup(line->text, length), strdup(value),
                                           line->number};
    if (!added.key || !added.value ||
        esp_grow(&config->lines, config->count, &config->capacity, sizeof added) < 0) {
        free(added.key);
        free(added.value);
        return esp_fail(line->err, line->errlen, ESP_E_MEMORY, "not enough memory for %s",
                        config->path);
    }
    config->lines[config->count++] = added;
    return ESP_OK;
}

int esp_configuration_read(struct esp_configuration *config, const char *path, bool lines,
                           char *err, size_t errlen)
{
    *config = (struct esp_configuration){.count = 0};
    if (path)
        snprintf(config->path, sizeof config->path, "%s", path);
    else if (esp_user_path(config->path, sizeof config->path, ESP_USER_CONFIG, "config") < 0)
        config->path[0] = '\0';
    if (!config->path[0] || !lines)
        return ESP_OK;
    if (!path && access(config->path, F_OK) < 0 && errno == ENOENT)
        return ESP_OK;
    int status = esp_line_file_read(config->path, read_line, config, err, errlen);
    if (status < 0)
        esp_configuration_free(config);
    return status;
}

void esp_configuration_free(struct esp_configuration *config)
{
    for (int i = 0; i < config->count; i++) {
        free(config->lines[i].key);
        free(config->lines[i].value);
    }
    free(config->lines);
    config->lines = NULL;
    config->count = config->capacity = 0;
}

/* ------------------------------------------------------------------ applying */

int esp_configuration_apply(const struct esp_configuration *config, struct esp_control *control,
                            bool models, char *err, size_t errlen)
{
    char origin[1100], wrong[600];
    for (int i = 0; i < config->count; i++) {
        const struct esp_configuration_line *line = &config->lines[i];
        snprintf(origin, sizeof origin, "%s, line %d: ", config->path, line->number);
        if (strcmp(line->key, "bind") == 0) {
            if (models ||
                esp_bindings_set(&control->ui.own_keys, line->value, wrong, sizeof wrong) == 0)
                continue;
            return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s%s", origin, wrong);
        }
        int index = esp_setting_find(line->key, strlen(line->key));
        bool of_models = index >= 0 && esp_setting(index)->kind == ESP_SETTING_MODELS;
        if (of_models != models || (index >= 0 && control->settings.options.given[index]))
            continue;
        int status =
            esp_setting_change(control, line->key, line->value, origin, wrong, sizeof wrong);
        if (status < 0)
            return esp_fail(err, errlen, status, "%s%s", origin, wrong);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ writing */

/* Returns whether the setting is written to the file. Settings of the interface are always
 * written. All other settings are written only if the user chose them, because their defaults
 * depend on the program and the models. */
static bool is_written(const struct esp_control *control, int index)
{
    const struct esp_setting *setting = esp_setting(index);
    if (setting->kind == ESP_SETTING_INTERFACE || strcmp(setting->key, "pace") == 0)
        return true;
    if (strcmp(setting->key, "expect") == 0) /* an expected text belongs to a single answer */
        return false;
    return control->settings.chosen[index];
}

int esp_configuration_write(const struct esp_control *control, const char *path, char *err,
                            size_t errlen)
{
    char *text = NULL, value[1200];
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (!stream)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", path);
    fputs("# Written by :config save of espalier. The keys are the same as for :set; see "
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
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %s", path);
    } else {
        esp_make_folders(path);
        status = esp_write_file(path, text, length, true, err, errlen);
    }
    free(text);
    return status;
}
