/* export_job.h - draws a picture in a thread of its own; the screen goes on meanwhile. */
#ifndef ESP_EXPORT_JOB_H
#define ESP_EXPORT_JOB_H

#include "export.h"

struct esp_export_job;

/* Begins to draw what `wish` asks for, which is copied; it must be a picture. Returns 0 or a
 * negative status with a sentence, and then there is no job. */
int esp_export_job_start(struct esp_export_job **job, const struct esp_export *wish,
                         const char *path, bool over, char *err, size_t errlen);
/* Is it drawn, or has it failed? */
bool esp_export_job_is_done(const struct esp_export_job *job);
/* Waits until it is, writes it to its file and frees the job. Returns 0 or a negative status;
 * either way a sentence says what became of it. */
int esp_export_job_end(struct esp_export_job *job, char *text, size_t size);

#endif
