/* cast.h - a replay as an asciicast (version 2), a file that players of recorded terminals
 * show.
 *
 * The frames are those of `espalier replay`: the same player paces them, on a clock that is not
 * waited for, and the same functions draw them. Only what changed from frame to frame is in the
 * file. Markers of the recording become markers of the asciicast. The same recording and
 * options give the same bytes.
 */
#ifndef ESP_CAST_H
#define ESP_CAST_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/view/theme.h"

struct esp_cast_options {
    const char *recording; /* path */
    int width, height;     /* 0: as recorded, or 120 x 36 */
    double speed, idle;    /* as those of struct esp_player */
    const struct esp_theme *theme;
    bool ascii;
};

/* Makes the whole file in memory; the caller frees *bytes. Returns 0 or a negative status with
 * a sentence. */
int esp_cast_make(const struct esp_cast_options *options, char **bytes, size_t *length,
                  char *err, size_t errlen);

#endif
