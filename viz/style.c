/* style.c - lists the keys and default attributes of the styles; see style.h. */
#include "viz/style.h"

#include <string.h>

static const struct {
    const char *key;
    int attributes;
} styles[ESP_STYLE_COUNT] = {
#define X(name, key, attributes) {key, attributes},
    ESP_STYLES(X)
#undef X
};

const char *esp_style_key(int style)
{
    return styles[style].key;
}

int esp_style_attributes(int style)
{
    return styles[style].attributes;
}

int esp_style_find(const char *key)
{
    for (int i = 0; i < ESP_STYLE_COUNT; i++)
        if (strcmp(styles[i].key, key) == 0)
            return i;
    return -1;
}
