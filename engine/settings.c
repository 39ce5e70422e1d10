/* settings.c - defines the tables of a session's settings and of an engine's options. */
#include "engine/espalier_settings.h"

#include <string.h>

#include "engine/espalier_options.h"
#include "kernels/status.h"

static const struct esp_value_info settings[ESP_VALUES] = {
#define X(kind, field, name, minimum, maximum, value, values, help)                            \
    {name,    ESP_KIND_##kind, values, help,                                                   \
     minimum, maximum,         value,  offsetof(struct esp_session_values, field)},
    ESP_SESSION_SETTINGS(X)
#undef X
};

static const struct esp_value_info options[ESP_OPTIONS] = {
#define X(group, kind, field, name, minimum, maximum, value, values, help)                     \
    {name,    ESP_KIND_##kind, values, help,                                                   \
     minimum, maximum,         value,  offsetof(struct esp_engine_options, field)},
    ESP_ENGINE_OPTIONS(X)
#undef X
};

bool esp_value_info(int index, struct esp_value_info *info)
{
    if (index < 0 || index >= ESP_VALUES)
        return false;
    *info = settings[index];
    return true;
}

int esp_value_find(const char *name)
{
    for (int i = 0; i < ESP_VALUES; i++)
        if (strcmp(settings[i].name, name) == 0)
            return i;
    return -1;
}

int esp_value_parse(struct esp_session_values *values, int index, const char *called,
                    const char *text, char *err, size_t errlen)
{
    return esp_value_read(&settings[index], values, called, text, err, errlen);
}

void esp_value_print(const struct esp_session_values *values, int index, char *text,
                     size_t size)
{
    esp_value_write(&settings[index], values, text, size);
}

void esp_values_forget_texts(struct esp_session_values *values)
{
    for (int i = 0; i < ESP_VALUES; i++)
        if (settings[i].kind == ESP_KIND_text)
            *esp_value_text(&settings[i], values) = NULL;
}

int esp_values_check(struct esp_session_values *values, char *err, size_t errlen)
{
    int status = ESP_OK;
    for (int i = 0; i < ESP_VALUES && status == ESP_OK; i++)
        status = esp_value_check(&settings[i], values, err, errlen);
    return status;
}

const struct esp_value_info *esp_engine_option(int index)
{
    return index >= 0 && index < ESP_OPTIONS ? &options[index] : NULL;
}

const struct esp_value_info *esp_engine_option_find(const char *name)
{
    int i = 0;
    while (i < ESP_OPTIONS && strcmp(options[i].name, name) != 0)
        i++;
    return esp_engine_option(i);
}
