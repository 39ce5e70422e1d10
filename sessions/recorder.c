/* recorder.c - appends events to a file, and stops at the first failure; see recorder.h.
 *
 * Writing to a pipe without a reader raises SIGPIPE, and writing beyond the maximum file size
 * raises SIGXFSZ. Either signal would end the program. Therefore both are blocked during each
 * write, and a pending signal is removed before they are unblocked. Files are opened with
 * O_NONBLOCK, because the recorder must not wait forever for a full pipe. A file has only one
 * recorder at a time, because two recorders would mix their lines.
 */
#include "sessions/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "kernels/status.h"
#include "kernels/system.h"
#include "sessions/event_json.h"

enum { PATIENCE_MS = 1000, PRIVATE = 0600 /* mode of a new file, minus the umask */ };

struct esp_recorder {
    int fd;
    char *path;
    ssize_t (*write)(int fd, const void *bytes, size_t length);
    struct esp_tokens tokens;
    double start;
    struct esp_layers layers; /* layers of the tree of the current iteration */
    struct esp_line line;
    off_t written; /* number of bytes in the complete lines of the file */
    bool generating;
    char why[128];     /* the reason why the recording is suspended */
    char trouble[512]; /* a sentence with this reason, or "" if recording is not suspended */
};

/* ------------------------------------------------------------------ the header */

/* Returns the FNV-1a hash over the length and the bytes of every token. */
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

void esp_recording_describe(struct esp_recording_header *h, const struct esp_engine *engine,
                            const struct esp_session *session)
{
    struct esp_model_info info;
    struct esp_session_options now;
    if (esp_engine_target(engine, &info)) {
        describe_model(&h->target, &info);
        h->vocabulary = info.vocabulary;
    }
    if (esp_engine_draft(engine, &info))
        describe_model(&h->draft, &info);
    hash_vocabulary(h->vocabulary_hash, sizeof h->vocabulary_hash, engine, h->vocabulary);
    esp_session_get(session, "drafter", h->drafter, sizeof h->drafter);
    esp_session_get(session, "verifier", h->verifier, sizeof h->verifier);
    esp_session_current(session, &now);
    h->values = now.values;
    esp_values_forget_texts(&h->values);
    h->lossy = esp_session_is_lossy(session);
    snprintf(h->backend, sizeof h->backend, "%s", esp_engine_backend(engine));
    snprintf(h->device, sizeof h->device, "%s", esp_engine_device(engine));
    h->context = esp_engine_context(engine);
    h->load_seconds = esp_engine_load_seconds(engine);
}

/* ------------------------------------------------------------------ writing */

/* Works like write(), but the program does not receive the signals that the write raises. */
static ssize_t write_quietly(struct esp_recorder *r, const char *bytes, size_t length)
{
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
        esp_take_signals(&ours);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

/* Writes all bytes, and waits while a pipe is full. Returns 0, or an errno value. This value is
 * ETIMEDOUT if the pipe was full for a second. */
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

/* Ends the recording because of a failure. Removes an incomplete last line from the file:
 * espalier ignores such a line, but other tools might not. */
static void suspend(struct esp_recorder *r, const char *why)
{
    struct stat info;
    snprintf(r->why, sizeof r->why, "%s", why);
    esp_fail(r->trouble, sizeof r->trouble, ESP_E_FILE,
             "recording to %s is suspended: %s; the generation continues", r->path, why);
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
        suspend(r, error == ETIMEDOUT ? "its reader has stalled" : strerror(error));
    r->line.length = 0;
}

/* Returns the seconds since the start of the recording, rounded to microseconds. */
static double now(const struct esp_recorder *r)
{
    return floor((esp_clock() - r->start) * 1e6) / 1e6;
}

void esp_recorder_event(struct esp_recorder *r, const struct esp_event *given)
{
    struct esp_event event = *given;
    int status = ESP_OK;
    if (*r->trouble || given->type == ESP_EVENT_STAGE)
        return;
    event.time = now(r);
    if (event.type == ESP_EVENT_LAYER) {
        status = esp_layers_note(&r->layers, &event);
    } else {
        const bool tree = event.type == ESP_EVENT_ITERATION;
        if (tree)
            status = esp_layers_finish(&r->layers, event.iteration);
        if (status == ESP_OK)
            status = esp_event_to_json(&r->line, &event, tree ? &r->layers : NULL, &r->tokens);
        if (tree)
            esp_layers_begin(&r->layers);
        r->generating = tree || (r->generating && event.type != ESP_EVENT_END);
    }
    if (status < 0)
        suspend(r, esp_status_message(status));
    else if (r->line.length > 0)
        write_line(r);
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

/* Locks the file for this recorder, if the file system supports locks. Closing the file
 * releases the lock, even if the program is killed. */
static bool lock(const struct esp_recorder *r)
{
    return flock(r->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

static int refuse(const struct esp_recorder *r, const char *why, char *err, size_t errlen)
{
    return esp_fail(err, errlen, ESP_E_FILE, "cannot write %s: %s", r->path, why);
}

/* Returns the reason why a file cannot be opened. */
static const char *reason(void)
{
    return errno == ENXIO ? "nobody reads from it" : strerror(errno);
}

/* Opens an existing pipe or device. With `force`, also opens an existing file and empties it,
 * unless another recorder writes to it. */
static int reopen(struct esp_recorder *r, int flags, bool force, char *err, size_t errlen)
{
    struct stat info;
    if (stat(r->path, &info) == 0 && S_ISREG(info.st_mode) && !force)
        return esp_fail(
            err, errlen, ESP_E_FILE,
            "%s exists; give another name, or ask to overwrite it (--force, :record!)",
            r->path);
    r->fd = open(r->path, flags);
    if (r->fd < 0 || fstat(r->fd, &info) < 0)
        return refuse(r, reason(), err, errlen);
    if (!S_ISREG(info.st_mode))
        return ESP_OK;
    if (!force)
        return refuse(r, "another program has just created it", err, errlen);
    if (!lock(r))
        return refuse(r, "another session records to it; give another name", err, errlen);
    fchmod(r->fd, info.st_mode & PRIVATE); /* can fail if the file belongs to another user */
    return ftruncate(r->fd, 0) < 0 ? refuse(r, strerror(errno), err, errlen) : (int)ESP_OK;
}

/* Creates the file, or opens an existing file. Only its owner may read a recording, because it
 * contains prompts. */
static int open_file(struct esp_recorder *r, bool force, bool *made, char *err, size_t errlen)
{
    const int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK;
    r->fd = open(r->path, flags | O_CREAT | O_EXCL, PRIVATE);
    *made = r->fd >= 0 && lock(r);
    if (*made)
        return ESP_OK;
    if (r->fd >= 0)
        return refuse(r, "another session records to it; give another name", err, errlen);
    return errno == EEXIST ? reopen(r, flags, force, err, errlen)
                           : refuse(r, reason(), err, errlen);
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
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to record to %s",
                        o->path);
    }
    r->write = o->write ? o->write : write;
    r->tokens = o->tokens;
    r->start = esp_clock();
    int status = open_file(r, o->force, &made, err, errlen);
    if (status == ESP_OK)
        write_header(r, header);
    if (*r->trouble)
        status = refuse(r, r->why, err, errlen);
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
        status = refuse(r, strerror(errno), err, errlen);
    if (!*r->trouble)
        r->fd = -1;
    destroy(r);
    return status;
}
