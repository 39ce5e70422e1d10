/* export_job.c - a thread around esp_export(); see export_job.h.
 *
 * The tree that is shown and the models whose tokens it holds may go while the picture is
 * drawn. So the iteration becomes its line of a recording first, in the thread that asks, and
 * the picture is made of that alone. The file is written by the thread that asks, too.
 */
#include "export_job.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "error.h"
#include "write_file.h"

struct esp_export_job {
    pthread_t thread;
    atomic_bool done;
    struct esp_export wish;
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
    job->status = esp_export(&job->wish, &job->bytes, &job->length, job->err, sizeof job->err);
    atomic_store(&job->done, true);
    return NULL;
}

/* Signals are the interface's business. */
static int start_thread(struct esp_export_job *job)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&job->thread, NULL, draw, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? ESP_E_MEMORY : ESP_OK;
}

static void destroy(struct esp_export_job *job)
{
    free(job->line);
    free(job->bytes);
    free(job);
}

int esp_export_job_start(struct esp_export_job **started, const struct esp_export *wish,
                         const char *path, bool over, char *err, size_t errlen)
{
    struct esp_export line = *wish;
    struct esp_export_job *job = calloc(1, sizeof *job);
    *started = NULL;
    if (!job)
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory for the picture");
    line.format = ESP_EXPORT_JSON;
    job->wish = *wish;
    job->iteration = wish->iteration->index;
    job->over = over;
    snprintf(job->path, sizeof job->path, "%s", path);
    snprintf(job->models, sizeof job->models, "%s", wish->models ? wish->models : "");
    int status = esp_export(&line, &job->line, &job->wish.line_length, err, errlen);
    job->wish.line = job->line;
    job->wish.models = job->models;
    job->wish.iteration = NULL;
    if (status == ESP_OK && (status = start_thread(job)) < 0)
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
