/* export_job.h - draws a picture, or makes a page, in a thread of its own; the screen goes on
 * meanwhile. */
#ifndef ESP_EXPORT_JOB_H
#define ESP_EXPORT_JOB_H

#include "sessions/recording.h"
#include "tui/model/export.h"
#include "tui/model/state.h"

struct esp_export_job;

/* Begins to draw a picture; the options are copied, and their format must be that of a picture.
 * Returns 0 or a negative status with a sentence, and then there is no job. */
int esp_export_job_start(struct esp_export_job **job, const struct esp_export_options *options,
                         const char *path, bool over, char *err, size_t errlen);
/* Begins to make a page (web_page.h) of a whole recording, which stays open until the job has
 * ended; or where that is NULL of a live session, whose models stay until then. Returns as
 * above. */
int esp_export_job_start_page(struct esp_export_job **job, struct esp_recording *recording,
                              const struct esp_state *state, const char *path, bool over,
                              char *err, size_t errlen);
/* Whether drawing has ended, well or not. */
bool esp_export_job_is_done(const struct esp_export_job *job);
/* Waits until drawing has ended, writes the file and frees the job. Returns 0 or a negative
 * status; in both cases `text` gets a sentence with the result. */
int esp_export_job_end(struct esp_export_job *job, char *text, size_t size);

#endif
