/* library_export.h - writes a text of a kept session as a recording. */
#ifndef ESP_LIBRARY_EXPORT_H
#define ESP_LIBRARY_EXPORT_H

#include <stdio.h>

#include "sessions/library.h"

/* Writes the text of a branch (-1 means the current text) as a recording: kept iterations
 * unchanged, and all other tokens as prompts. If the text has only some of the tokens of an
 * iteration, a rewind event follows that iteration. Returns 0, or a negative status with a
 * sentence in err. If the log is damaged, the status is ESP_E_FORMAT, and the text before the
 * damage is written, if there is any. */
int esp_library_export(struct esp_library *library, int64_t id, int branch, FILE *file,
                       char *err, size_t errlen);
/* Does the same with the library at `path`. */
int esp_library_export_path(const char *path, int64_t id, int branch, FILE *file, char *err,
                            size_t errlen);

#endif
