/* cast.h - writes a replay as an asciicast (version 2), the file format of asciinema.
 *
 * The frames are the same as in `espalier replay`, because the same player computes their times
 * and the same functions draw them. However, the player does not wait between frames. The file
 * contains only the changes between frames. Markers of the recording become markers of the
 * asciicast. The same recording and options give the same bytes.
 */
#ifndef ESP_CAST_H
#define ESP_CAST_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/view/theme.h"

struct esp_cast_options {
    const char *recording; /* path of the recording */
    int width, height;     /* 0: the recorded size, or 120 x 36 if it is unknown */
    double speed, idle;    /* as in struct esp_player */
    const struct esp_theme *theme;
    bool ascii;
};

/* Makes the whole file in memory; the caller frees *bytes. Returns 0 or a negative status with
 * a message. */
int esp_cast_make(const struct esp_cast_options *options, char **bytes, size_t *length,
                  char *err, size_t errlen);

#endif
