/* export_job.c - runs esp_export() or esp_export_page() in a thread; see export_job.h.
 *
 * The iteration and the models can be freed during the export. Therefore the calling thread
 * first writes the iteration as a line of a recording, and the picture is made from that line
 * alone. For a page of a recording, the new thread opens its own reader. For a page of a live
 * session, it uses a copy of the iterations in memory, and the token texts of the models. The
 * calling thread writes the file.
 */
#include "tui/model/export_job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/support/write_file.h"
#include "kernels/status.h"
#include "sessions/event_json.h"
#include "tui/model/export_all.h"
#include "tui/model/quiet_thread.h"

struct esp_export_job {
    pthread_t thread;
    atomic_bool done;
    int (*make)(struct esp_export_job *job);
    /* The following members are for a picture. */
    struct esp_export_options options;
    int iteration; /* index of the iteration */
    char models[256];
    char *line; /* the iteration as a line of a recording */
    /* The following members are for a page. */
    struct esp_recording *recording; /* the caller owns it; NULL: the page shows `state` */
    struct esp_state *state;         /* a copy */
    int iterations;                  /* number of iterations on the page */

    char path[1024];
    bool over;
    char *bytes; /* (length) the contents of the file */
    size_t length;
    int status;
    char err[512];
};

static int draw_picture(struct esp_export_job *job)
{
    return esp_export(&job->options, &job->bytes, &job->length, job->err, sizeof job->err);
}

static int make_page(struct esp_export_job *job)
{
    struct esp_recording *again;
    char *err = job->err;
    const size_t errlen = sizeof job->err;
    if (!job->recording)
        return esp_export_page_of_state(job->state, &job->bytes, &job->length, &job->iterations,
                                        err, errlen);
    int status = esp_recording_open_again(&again, job->recording, err, errlen);
    if (status < 0)
        return status;
    status =
        esp_export_page(again, 0, job->iterations - 1, &job->bytes, &job->length, err, errlen);
    esp_recording_close(again);
    return status;
}

static void *run(void *user)
{
    struct esp_export_job *job = user;
    job->status = job->make(job);
    atomic_store(&job->done, true);
    return NULL;
}

static void destroy(struct esp_export_job *job)
{
    if (job->state)
        esp_state_free(job->state);
    free(job->state);
    free(job->line);
    free(job->bytes);
    free(job);
}

/* Starts the thread of a complete job, or frees the job if `status` is negative. */
static int start(struct esp_export_job **started, struct esp_export_job *job, int status,
                 char *err, size_t errlen)
{
    if (status == ESP_OK && (status = esp_quiet_thread(&job->thread, run, job)) < 0)
        esp_fail(err, errlen, status, "could not start a thread for the export");
    if (status < 0)
        destroy(job);
    else
        *started = job;
    return status;
}

static struct esp_export_job *new_job(int (*make)(struct esp_export_job *), const char *path,
                                      bool over)
{
    struct esp_export_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->make = make;
    job->over = over;
    snprintf(job->path, sizeof job->path, "%s", path);
    return job;
}

int esp_export_job_start(struct esp_export_job **started,
                         const struct esp_export_options *options, const char *path, bool over,
                         char *err, size_t errlen)
{
    const struct esp_event event = {.type = ESP_EVENT_ITERATION,
                                    .iteration = options->iteration};
    struct esp_line line = {.length = 0};
    struct esp_export_job *job = new_job(draw_picture, path, over);
    *started = NULL;
    if (!job)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the picture");
    job->options = *options;
    job->iteration = options->iteration->index;
    snprintf(job->models, sizeof job->models, "%s", options->models ? options->models : "");
    int status = esp_event_to_json(&line, &event, NULL, &options->tokens);
    if (status < 0)
        esp_fail(err, errlen, status, "the iteration cannot be exported: %s",
                 esp_status_message(status));
    job->options.line = job->line = line.text;
    job->options.line_length = line.length;
    job->options.models = job->models;
    job->options.iteration = NULL;
    return start(started, job, status, err, errlen);
}

int esp_export_job_start_page(struct esp_export_job **started, struct esp_recording *recording,
                              const struct esp_state *state, const char *path, bool over,
                              char *err, size_t errlen)
{
    struct esp_export_job *job = new_job(make_page, path, over);
    int status = job ? ESP_OK : ESP_E_MEMORY;
    *started = NULL;
    if (job && recording) {
        job->recording = recording;
        job->iterations = esp_recording_iterations(recording);
    } else if (job) {
        job->state = calloc(1, sizeof *job->state);
        status = job->state ? esp_state_copy(job->state, state) : ESP_E_MEMORY;
    }
    if (status < 0)
        esp_fail(err, errlen, status, "not enough memory for the page");
    return job ? start(started, job, status, err, errlen) : status;
}

bool esp_export_job_is_done(const struct esp_export_job *job)
{
    return atomic_load(&job->done);
}

int esp_export_job_end(struct esp_export_job *job, char *text, size_t size)
{
    pthread_join(job->thread, NULL);
    int status = job->status;
    if (status < 0)
        snprintf(text, size, "%s", job->err);
    else
        status = esp_write_file(job->path, job->bytes, job->length, job->over, text, size);
    if (status == ESP_OK && job->make == draw_picture)
        snprintf(text, size, "iteration %d written to %s", job->iteration, job->path);
    else if (status == ESP_OK)
        snprintf(text, size, "a page of %d iteration%s, %.1f MB, written to %s",
                 job->iterations, job->iterations == 1 ? "" : "s", 1e-6 * (double)job->length,
                 job->path);
    destroy(job);
    return status;
}
