/* recorder.c - events to the end of a file, whatever happens to it; see recorder.h.
 *
 * Writing to a pipe that nobody reads any more raises SIGPIPE, and to a file that may not grow
 * SIGXFSZ; either would end the program. Both are held back around each write and taken off
 * the thread before they are let in again. Files are opened without blocking, so that a pipe
 * that is full is waited for with a limit.
 */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "event_json.h"

enum { PATIENCE_MS = 1000 };

struct esp_recorder {
    int fd;
    char *path;
    ssize_t (*write)(int fd, const void *bytes, size_t length);
    struct esp_tokens tokens;
    struct timespec start;
    struct esp_layers layers; /* of the iteration that runs */
    struct esp_line line;
    off_t written; /* bytes of whole lines */
    bool generating;
    char why[128]; /* it is suspended */
    char trouble[512];
};

/* ------------------------------------------------------------------ the header */

/* FNV-1a over the length and the bytes of every token. */
static void hash_vocabulary(char *to, size_t size, const struct esp_engine *engine, int count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < count; i++) {
        size_t length = 0;
        const char *bytes = esp_token_bytes(engine, i, &length);
        hash = (hash ^ (length & 0xff)) * 0x100000001b3u;
        for (size_t j = 0; bytes && j < length; j++)
            hash = (hash ^ (unsigned char)bytes[j]) * 0x100000001b3u;
    }
    snprintf(to, size, "fnv1a:%016" PRIx64, hash);
}

static void describe_model(struct esp_recorded_model *model, const struct esp_model_info *info)
{
    snprintf(model->name, sizeof model->name, "%s", info->name ? info->name : "");
    snprintf(model->architecture, sizeof model->architecture, "%s",
             info->architecture ? info->architecture : "");
    snprintf(model->dtype, sizeof model->dtype, "%s", info->dtype ? info->dtype : "");
    model->parameters = info->parameters;
}

/* The value of a setting as a number; 0 if there is none. */
static double setting(const struct esp_session *session, const char *key)
{
    char value[64] = "";
    esp_session_get(session, key, value, sizeof value);
    return strtod(value, NULL);
}

void esp_recording_describe(struct esp_recording_header *h, const struct esp_engine *engine,
                            const struct esp_session *session)
{
    struct esp_model_info info;
    char value[64] = "";
    if (esp_engine_target(engine, &info)) {
        describe_model(&h->target, &info);
        h->vocabulary = info.vocabulary;
    }
    if (esp_engine_draft(engine, &info))
        describe_model(&h->draft, &info);
    hash_vocabulary(h->vocabulary_hash, sizeof h->vocabulary_hash, engine, h->vocabulary);
    esp_session_get(session, "drafter", h->drafter, sizeof h->drafter);
    esp_session_get(session, "verifier", h->verifier, sizeof h->verifier);
    esp_session_get(session, "order", h->order, sizeof h->order);
    h->temperature = setting(session, "temp");
    h->top_p = setting(session, "top_p");
    h->top_k = (int)setting(session, "top_k");
    esp_session_get(session, "seed", value, sizeof value);
    h->seed = strtoull(value, NULL, 10);
    esp_session_get(session, "lossy", value, sizeof value);
    h->lossy = *value == 'y';
    esp_session_get(session, "baseline", value, sizeof value);
    h->baseline = strcmp(value, "on") == 0;
    snprintf(h->backend, sizeof h->backend, "%s", esp_engine_backend(engine));
    snprintf(h->device, sizeof h->device, "%s", esp_engine_device(engine));
    h->load_seconds = esp_engine_load_seconds(engine);
}

/* ------------------------------------------------------------------ writing */

/* write(), but a signal that it raises does not reach the program. */
static ssize_t write_quietly(struct esp_recorder *r, const char *bytes, size_t length)
{
    const struct timespec now = {.tv_sec = 0};
    sigset_t ours, before, pending;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) || sigismember(&pending, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    ssize_t n = r->write(r->fd, bytes, length);
    int error = errno;
    if (n < 0 && (error == EPIPE || error == EFBIG) && !was_pending)
        while (sigtimedwait(&ours, NULL, &now) > 0)
            continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

/* Returns 0, or what errno says. */
static int write_all(struct esp_recorder *r, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write_quietly(r, bytes, length);
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
            continue;
        }
        if (n == 0)
            return ENOSPC;
        if (errno == EINTR)
            continue;
        struct pollfd ready = {.fd = r->fd, .events = POLLOUT};
        if (errno != EAGAIN)
            return errno;
        if (poll(&ready, 1, PATIENCE_MS) == 0)
            return ETIMEDOUT;
    }
    return 0;
}

/* What of the last line got into the file is taken back: a reader would leave it out, too, but
 * another tool might not. */
static void suspend(struct esp_recorder *r, const char *why)
{
    struct stat info;
    snprintf(r->why, sizeof r->why, "%s", why);
    esp_fail(r->trouble, sizeof r->trouble, ESP_E_FILE,
             "recording to %s is suspended: %s; the generation goes on", r->path, why);
    if (fstat(r->fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > r->written &&
        ftruncate(r->fd, r->written) < 0)
        return;
}

static void write_line(struct esp_recorder *r)
{
    int error = r->line.failed ? ENOMEM : write_all(r, r->line.text, r->line.length);
    if (error == 0)
        r->written += (off_t)r->line.length;
    else
        suspend(r, error == ETIMEDOUT ? "nobody reads what is written" : strerror(error));
    r->line.length = 0;
}

/* Seconds since the recording was begun, in whole microseconds. */
static double now(const struct esp_recorder *r)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    long microseconds = (at.tv_nsec - r->start.tv_nsec) / 1000;
    return (double)((at.tv_sec - r->start.tv_sec) * 1000000 + microseconds) / 1e6;
}

void esp_recorder_event(struct esp_recorder *r, const struct esp_event *given)
{
    struct esp_event event = *given;
    int status = ESP_OK;
    if (*r->trouble)
        return;
    event.time = now(r);
    switch (event.type) {
    case ESP_EVENT_LAYER:
        status = esp_layers_note(&r->layers, &event);
        break;
    case ESP_EVENT_STAGE:
        break;
    case ESP_EVENT_ITERATION:
        status = esp_layers_finish(&r->layers, event.iteration);
        if (status == ESP_OK)
            status = esp_event_to_json(&r->line, &event, &r->layers, &r->tokens);
        esp_layers_begin(&r->layers);
        break;
    default:
        status = esp_event_to_json(&r->line, &event, NULL, &r->tokens);
        break;
    }
    if (status < 0)
        suspend(r, esp_status_message(status));
    else if (r->line.length > 0)
        write_line(r);
    if (event.type == ESP_EVENT_ITERATION)
        r->generating = true;
    else if (event.type != ESP_EVENT_LAYER && event.type != ESP_EVENT_STAGE)
        r->generating = r->generating && event.type != ESP_EVENT_END;
}

void esp_recorder_end(struct esp_recorder *r, const char *why)
{
    if (r->generating)
        esp_recorder_event(r, &(struct esp_event){.type = ESP_EVENT_END, .text = why});
}

const char *esp_recorder_trouble(const struct esp_recorder *r)
{
    return r->trouble;
}

/* ------------------------------------------------------------------ opening and closing */

static int open_file(struct esp_recorder *r, bool force, bool *made, char *err, size_t errlen)
{
    const int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK;
    struct stat info;
    r->fd = open(r->path, flags | O_CREAT | O_EXCL, 0666);
    *made = r->fd >= 0;
    if (!*made && errno == EEXIST) {
        if (stat(r->path, &info) == 0 && S_ISREG(info.st_mode) && !force)
            return esp_fail(err, errlen, ESP_E_FILE,
                            "%s exists; give another name, or ask to overwrite it (--force, :record!)",
                            r->path);
        r->fd = open(r->path, flags | O_TRUNC);
    }
    if (r->fd < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "cannot write %s: %s", r->path,
                        errno == ENXIO ? "nobody reads from it" : strerror(errno));
    return ESP_OK;
}

static void write_header(struct esp_recorder *r, const struct esp_recording_header *given)
{
    struct esp_recording_header header = *given;
    struct timespec at;
    struct tm utc;
    header.major = ESP_RECORDING_MAJOR;
    header.minor = ESP_RECORDING_MINOR;
    snprintf(header.program, sizeof header.program, "espalier %s", ESP_VERSION);
    clock_gettime(CLOCK_REALTIME, &at);
    if (gmtime_r(&at.tv_sec, &utc))
        strftime(header.started, sizeof header.started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    esp_header_to_json(&r->line, &header);
    write_line(r);
}

static void destroy(struct esp_recorder *r)
{
    if (r->fd >= 0)
        close(r->fd);
    esp_layers_free(&r->layers);
    esp_line_free(&r->line);
    free(r->path);
    free(r);
}

int esp_recorder_open(struct esp_recorder **recorder, const struct esp_recorder_options *o,
                      const struct esp_recording_header *header, char *err, size_t errlen)
{
    struct esp_recorder *r = calloc(1, sizeof *r);
    bool made = false;
    *recorder = NULL;
    if (!r || !(r->path = strdup(o->path))) {
        free(r);
        return esp_fail(err, errlen, ESP_E_MEMORY, "no memory to record to %s", o->path);
    }
    r->write = o->write ? o->write : write;
    r->tokens = o->tokens;
    clock_gettime(CLOCK_MONOTONIC, &r->start);
    int status = open_file(r, o->force, &made, err, errlen);
    if (status == ESP_OK)
        write_header(r, header);
    if (*r->trouble)
        status = esp_fail(err, errlen, ESP_E_FILE, "cannot write %s: %s", r->path, r->why);
    if (status < 0) {
        if (made)
            unlink(r->path);
        destroy(r);
        return status;
    }
    *recorder = r;
    return ESP_OK;
}

int esp_recorder_close(struct esp_recorder *r, char *err, size_t errlen)
{
    int status = ESP_OK;
    if (!r)
        return ESP_OK;
    if (*r->trouble)
        status = esp_fail(err, errlen, ESP_E_FILE, "%s", r->trouble);
    else if (close(r->fd) < 0)
        status =
            esp_fail(err, errlen, ESP_E_FILE, "cannot write %s: %s", r->path, strerror(errno));
    if (!*r->trouble)
        r->fd = -1;
    destroy(r);
    return status;
}
