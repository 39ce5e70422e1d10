/* export_job.h - exports a picture or a page in a background thread. */
#ifndef ESP_EXPORT_JOB_H
#define ESP_EXPORT_JOB_H

#include "sessions/recording.h"
#include "tui/model/state.h"
#include "viz/export.h"

struct esp_export_job;

/* Starts to draw a picture. The format must be a format for pictures. Copies the options.
 * Returns 0, or a negative status with a message; then there is no job. */
int esp_export_job_start(struct esp_export_job **job, const struct esp_export_options *options,
                         const char *path, bool over, char *err, size_t errlen);
/* Starts to make a page (export_all.h) of a whole recording. If `recording` is NULL, makes a
 * page of the live session. The recording must stay open, or the models must stay loaded, until
 * the job has ended. */
int esp_export_job_start_page(struct esp_export_job **job, struct esp_recording *recording,
                              const struct esp_state *state, const char *path, bool over,
                              char *err, size_t errlen);
/* Returns whether the job has ended, successfully or not. */
bool esp_export_job_is_done(const struct esp_export_job *job);
/* Waits for the end of the job, writes the file and frees the job. Returns 0 or a negative
 * status. Writes a message to `text` in both cases. */
int esp_export_job_end(struct esp_export_job *job, char *text, size_t size);

#endif
