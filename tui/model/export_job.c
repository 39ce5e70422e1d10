/* export_job.c - a thread around esp_export(); see export_job.h.
 *
 * The iteration and the models may be freed while the picture is drawn. So the calling thread
 * first turns the iteration into a line of a recording, and the picture is made from that line
 * alone. The calling thread also writes the file.
 */
#include "tui/model/export_job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/status.h"
#include "tui/model/quiet_thread.h"
#include "engine/support/write_file.h"

struct esp_export_job {
    pthread_t thread;
    atomic_bool done;
    struct esp_export_options options;
    int iteration; /* its index */
    char models[256], path[1024];
    bool over;
    char *line, *bytes; /* of the recording; of the picture */
    size_t length;      /* of the picture */
    int status;
    char err[512];
};

static void *draw(void *user)
{
    struct esp_export_job *job = user;
    job->status =
        esp_export(&job->options, &job->bytes, &job->length, job->err, sizeof job->err);
    atomic_store(&job->done, true);
    return NULL;
}

static void destroy(struct esp_export_job *job)
{
    free(job->line);
    free(job->bytes);
    free(job);
}

int esp_export_job_start(struct esp_export_job **started,
                         const struct esp_export_options *options, const char *path, bool over,
                         char *err, size_t errlen)
{
    struct esp_export_options line = *options;
    struct esp_export_job *job = calloc(1, sizeof *job);
    *started = NULL;
    if (!job)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the picture");
    line.format = ESP_EXPORT_JSON;
    job->options = *options;
    job->iteration = options->iteration->index;
    job->over = over;
    snprintf(job->path, sizeof job->path, "%s", path);
    snprintf(job->models, sizeof job->models, "%s", options->models ? options->models : "");
    int status = esp_export(&line, &job->line, &job->options.line_length, err, errlen);
    job->options.line = job->line;
    job->options.models = job->models;
    job->options.iteration = NULL;
    if (status == ESP_OK && (status = esp_quiet_thread(&job->thread, draw, job)) < 0)
        esp_fail(err, errlen, status, "no thread for the picture");
    if (status < 0)
        destroy(job);
    else
        *started = job;
    return status;
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
    if (status == ESP_OK)
        snprintf(text, size, "iteration %d written to %s", job->iteration, job->path);
    destroy(job);
    return status;
}
