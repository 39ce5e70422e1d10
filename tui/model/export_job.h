/* export_job.h - exports a picture or a page in a background thread. */
#ifndef ESP_EXPORT_JOB_H
#define ESP_EXPORT_JOB_H

#include "sessions/recording.h"
#include "tui/model/state.h"
#include "viz/export.h"

struct esp_export_job;

/* Starts to draw a picture; the format must be one for pictures. The options are copied.
 * Returns 0, or a negative status with a message and no job. */
int esp_export_job_start(struct esp_export_job **job, const struct esp_export_options *options,
                         const char *path, bool over, char *err, size_t errlen);
/* Starts to make a page (export_all.h) of a whole recording or, if that is NULL, of a live
 * session. Keep the recording open, or the models loaded, until the job has ended. */
int esp_export_job_start_page(struct esp_export_job **job, struct esp_recording *recording,
                              const struct esp_state *state, const char *path, bool over,
                              char *err, size_t errlen);
/* Returns whether the job has ended, successfully or not. */
bool esp_export_job_is_done(const struct esp_export_job *job);
/* Waits for the end of the job, writes the file and frees the job. Returns 0 or a negative
 * status; `text` gets a message in both cases. */
int esp_export_job_end(struct esp_export_job *job, char *text, size_t size);

#endif
