/* library_export.h - writes a text of a kept session as a recording. */
#ifndef ESP_LIBRARY_EXPORT_H
#define ESP_LIBRARY_EXPORT_H

#include <stdio.h>

#include "sessions/library.h"

/* Writes the text of a branch as a recording; -1 means the current text. Kept iterations are
 * written unchanged, and all other tokens are written as prompts. If the text ends within the
 * tokens of an iteration, a rewind event follows that iteration. Returns 0, or a negative
 * status with a sentence in err. If the log is damaged, the text before the damage is written,
 * and the status is ESP_E_FORMAT. */
int esp_library_export(struct esp_library *library, int64_t id, int branch, FILE *file,
                       char *err, size_t errlen);
/* Opens the library at `path`, and then does the same as esp_library_export(). */
int esp_library_export_path(const char *path, int64_t id, int branch, FILE *file, char *err,
                            size_t errlen);

#endif
