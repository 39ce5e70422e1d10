/* picture_options.c - reads the options of a picture; see picture_options.h. */
#include "viz/picture_options.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(name, text) text,
    ESP_CAPTIONS(X)
#undef X
};

int esp_caption_find(const char *name)
{
    for (int i = 0; i < ESP_CAPTIONS_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *esp_caption_name(int caption)
{
    return names[caption];
}

double esp_aspect_of(const char *text)
{
    char *colon, *end;
    if (*text < '0' || *text > '9')
        return 0;
    const double width = strtod(text, &colon);
    if (*colon != ':' || colon[1] < '0' || colon[1] > '9')
        return 0;
    const double height = strtod(colon + 1, &end), aspect = width / height;
    return !*end && width > 0 && height > 0 && aspect >= 0.2 && aspect <= 5 ? aspect : 0;
}
