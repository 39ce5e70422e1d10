/* config_file.c - see config_file.h. */
#include "tui/commands/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/status.h"
#include "tui/model/line_file.h"
#include "engine/support/paths.h"

enum { MOST_LINES = 1000 };

static int add_line(struct esp_configuration *config, const char *key, size_t length,
                    const char *value, int number)
{
    size_t size = ((size_t)config->count + 1) * sizeof *config->lines;
    struct esp_configuration_line *grown = realloc(config->lines, size);
    if (!grown)
        return ESP_E_MEMORY;
    config->lines = grown;
    struct esp_configuration_line *line = &grown[config->count];
    *line = (struct esp_configuration_line){strndup(key, length), strdup(value), number};
    if (line->key && line->value) {
        config->count++;
        return ESP_OK;
    }
    free(line->key);
    free(line->value);
    return ESP_E_MEMORY;
}

static int read_line(void *user, struct esp_file_line *line)
{
    struct esp_configuration *config = user;
    size_t length = strcspn(line->text, " \t=");
    const char *value = line->text + length + strspn(line->text + length, " \t=");
    if (length == 0 || !*value)
        return esp_wrong_line(line, "write a setting and its value, not '%.60s'", line->text);
    if (config->count == MOST_LINES)
        return esp_wrong_line(line, "more than %d settings", MOST_LINES);
    int status = add_line(config, line->text, length, value, line->number);
    return status < 0
               ? esp_fail(line->err, line->errlen, status, "no memory for %s", config->path)
               : status;
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
    config->count = 0;
}
