/* config.c - reading, applying and writing the configuration file; see config.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "paths.h"
#include "settings.h"
#include "write_file.h"

enum { LONGEST_LINE = 4096, MOST_LINES = 1000 };

/* ------------------------------------------------------------------ reading */

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

static int read_line(struct esp_configuration *config, char *line, int number, char *err,
                     size_t errlen)
{
    char *key = line + strspn(line, " \t");
    for (size_t end = strlen(key); end > 0 && strchr(" \t\r\n", key[end - 1]);)
        key[--end] = '\0';
    if (!*key || *key == '#')
        return ESP_OK;
    size_t length = strcspn(key, " \t=");
    const char *value = key + length + strspn(key + length, " \t=");
    if (length == 0 || !*value)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s, line %d: write a setting and its value, not '%.60s'", config->path,
                        number, key);
    if (config->count == MOST_LINES)
        return esp_fail(err, errlen, ESP_E_FORMAT, "%s, line %d: more than %d settings",
                        config->path, number, MOST_LINES);
    int status = add_line(config, key, length, value, number);
    return status < 0 ? esp_fail(err, errlen, status, "no memory for %s", config->path)
                      : status;
}

static int read_lines(struct esp_configuration *config, FILE *file, char *err, size_t errlen)
{
    char line[LONGEST_LINE];
    int status = ESP_OK;
    for (int number = 1; status == ESP_OK && fgets(line, sizeof line, file); number++) {
        if (strlen(line) == sizeof line - 1)
            status = esp_fail(err, errlen, ESP_E_FORMAT, "%s, line %d: the line is too long",
                              config->path, number);
        else
            status = read_line(config, line, number, err, errlen);
    }
    if (status == ESP_OK && ferror(file))
        status = esp_fail(err, errlen, ESP_E_FILE, "%s cannot be read: %s", config->path,
                          strerror(errno));
    return status;
}

int esp_configuration_read(struct esp_configuration *config, const char *path, bool lines,
                           char *err, size_t errlen)
{
    struct stat status;
    *config = (struct esp_configuration){.count = 0};
    if (path)
        snprintf(config->path, sizeof config->path, "%s", path);
    else if (esp_user_path(config->path, sizeof config->path, ESP_USER_CONFIG, "config") < 0)
        config->path[0] = '\0';
    if (!config->path[0] || !lines)
        return ESP_OK;
    int file = open(config->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hang */
    if (file < 0 && errno == ENOENT && !path)
        return ESP_OK;
    FILE *stream = file >= 0 ? fdopen(file, "r") : NULL;
    if (!stream || fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) {
        int error = errno;
        if (stream)
            fclose(stream);
        return esp_fail(err, errlen, ESP_E_FILE, "the configuration %s cannot be read: %s",
                        config->path, stream ? "it is no regular file" : strerror(error));
    }
    int read = read_lines(config, stream, err, errlen);
    fclose(stream);
    if (read < 0)
        esp_configuration_free(config);
    return read;
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

/* ------------------------------------------------------------------ applying */

int esp_configuration_apply(const struct esp_configuration *config, struct esp_app *app,
                            bool models, char *err, size_t errlen)
{
    char origin[1100], wrong[600];
    for (int i = 0; i < config->count; i++) {
        const struct esp_configuration_line *line = &config->lines[i];
        int index = esp_setting_find(line->key, strlen(line->key));
        bool of_models = index >= 0 && esp_setting(index)->kind == ESP_SETTING_MODELS;
        if (of_models != models || (index >= 0 && app->given[index]))
            continue;
        snprintf(origin, sizeof origin, "%s, line %d: ", config->path, line->number);
        int status =
            esp_setting_change(app, line->key, line->value, origin, wrong, sizeof wrong);
        if (status < 0)
            return esp_fail(err, errlen, status, "%s%s", origin, wrong);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ writing */

/* Does the file say it? What the user never chose follows the program and the models; the
 * looks of the interface are remembered as they are. */
static bool is_written(const struct esp_app *app, int index)
{
    const struct esp_setting *setting = esp_setting(index);
    if (setting->kind == ESP_SETTING_INTERFACE || strcmp(setting->key, "pace") == 0)
        return true;
    return app->chosen[index];
}

int esp_configuration_write(const struct esp_app *app, const char *path, char *err,
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
        if (!is_written(app, i))
            continue;
        esp_setting_get(app, i, value, sizeof value);
        if (*value)
            fprintf(stream, "%s %s\n", esp_setting(i)->key, value);
    }
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
