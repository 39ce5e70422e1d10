/* stream.c - reads the matrices of streamed layers for every pass; see stream.h.
 *
 * The order of reading is fixed: the streamed layers from the first to the last, over and over.
 * So the reading thread needs no requests: it reads the next layer as soon as a buffer is free.
 * Layer n of this endless sequence is read into buffer n % BUFFERS. Two counters describe the
 * progress: layers 0..read-1 of the sequence have been read, layers 0..used-1 are no longer
 * needed, and read - used is at most BUFFERS.
 *
 * The matrices of a layer are mostly adjacent in the file, so a layer consists of one or a few
 * ranges. Each range is read in large pieces. O_DIRECT (esp_open_direct()) bypasses the page
 * cache: with a model larger than memory, that cache would always contain the wrong layers and
 * displace other data. If a file system refuses O_DIRECT, ranges are read normally and then
 * dropped from the page cache.
 *
 * The same layers stay in memory for every pass. An LRU cache would miss every time, because a
 * pass returns to a layer only after all other layers. Resident layers are spread evenly among
 * the streamed layers, so that the disk can continue to read while resident layers are
 * computed.
 */
#include "kernels/cpu/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"
#include "kernels/system.h"

enum { BUFFERS = 2, PAGE = 4096, PIECE = 16 << 20, GAP = 1 << 16 };

struct file {
    struct esp_tensor_file *source; /* the file, which is opened again by its path */
    int fd;
    bool direct;
    struct stat about; /* size and time when the file was opened, to notice changes */
    char path[256];    /* for error messages */
};

struct matrix {
    struct esp_tensor stored; /* the data is in a buffer while the layer is held */
    struct matrix *scales_of; /* if these are scales: the matrix that they belong to */
    int file;
    size_t begin, end; /* the bytes of the file that contain the matrix */
    size_t at;         /* where the matrix begins in the buffer */
};

/* A range of a file that consists of whole pages and contains adjacent matrices. */
struct range {
    int file;
    size_t begin, end;
    size_t needed; /* bytes of this range that must be read; a file may end within a page */
    size_t at;     /* position in the buffer */
};

struct layer {
    struct matrix **matrix; /* (matrices); after planning, sorted by position in the files */
    struct range *range;    /* (ranges) */
    int matrices, ranges;
    size_t bytes;
    bool streamed;
};

struct esp_cpu_stream {
    struct layer *layer; /* (layers) */
    struct file *file;   /* (files) */
    int *order;          /* (streamed) indices of the streamed layers, ascending */
    int layers, files, streamed;
    char *buffer[BUFFERS];

    pthread_mutex_t pass; /* is locked during a pass */
    pthread_t thread;
    bool threaded; /* true if a separate thread reads; otherwise esp_cpu_stream_hold() reads */

    pthread_mutex_t lock; /* protects the following members */
    pthread_cond_t was_read, was_used;
    int64_t read, used;
    double bytes, seconds;
    bool stop, failed;
    char failure[400];
};

/* ------------------------------------------------------------------ which bytes to read */

struct esp_cpu_stream *esp_cpu_stream_open(int layers)
{
    struct esp_cpu_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->layers = layers;
    s->layer = calloc((size_t)layers, sizeof *s->layer);
    s->order = calloc((size_t)layers, sizeof *s->order);
    pthread_mutex_init(&s->pass, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->was_read, NULL);
    pthread_cond_init(&s->was_used, NULL);
    if (!s->layer || !s->order) {
        esp_cpu_stream_close(s);
        return NULL;
    }
    return s;
}

/* Returns the index of a file in s->file. Adds the file if it is new. Returns -1 if there is
 * not enough memory. */
static int find_file(struct esp_cpu_stream *s, struct esp_tensor_file *source)
{
    for (int i = 0; i < s->files; i++)
        if (s->file[i].source == source)
            return i;
    struct file *files = realloc(s->file, ((size_t)s->files + 1) * sizeof *files);
    if (!files)
        return -1;
    s->file = files;
    files[s->files] = (struct file){.source = source, .fd = -1};
    snprintf(files[s->files].path, sizeof files[0].path, "%s",
             source->path ? source->path : "the model's file");
    return s->files++;
}

/* Returns the size of a row's scales in bytes if they are stored separately: one per block. */
static size_t scale_bytes(const struct esp_tensor *t)
{
    return (size_t)(t->columns / esp_dtype_block(t->dtype));
}

/* Returns the size in bytes from the first to the last stored row, without separate scales. */
static size_t stored_bytes(const struct esp_tensor *t)
{
    const size_t last = (size_t)t->first + (size_t)t->rows - 1, block = (size_t)t->block;
    const size_t at = last / block * (size_t)t->stride + last % block;
    const size_t bytes = esp_dtype_row_bytes(t->dtype, t->columns);
    if (t->transposed)
        return (((size_t)t->columns - 1) * (size_t)t->transposed + at + 1) *
               esp_dtype_block_bytes(t->dtype);
    return (at + 1) * (t->scales ? bytes - scale_bytes(t) : bytes);
}

/* Adds a matrix, or the scales of a matrix, to the layer. */
static struct matrix *add_matrix(struct esp_cpu_stream *s, struct layer *l,
                                 const struct esp_tensor *tensor,
                                 struct esp_tensor_file *source)
{
    struct matrix **all = realloc(l->matrix, ((size_t)l->matrices + 1) * sizeof *all);
    struct matrix *m = calloc(1, sizeof *m);
    const int file = find_file(s, source);
    if (all)
        l->matrix = all;
    if (!all || !m || file < 0) {
        free(m);
        return NULL;
    }
    m->stored = *tensor;
    m->stored.source = m->stored.scale_source = NULL;
    m->file = file;
    m->begin = tensor->offset;
    m->end = tensor->offset + stored_bytes(tensor);
    all[l->matrices++] = m;
    return m;
}

static struct matrix *add_scales(struct esp_cpu_stream *s, struct layer *l, struct matrix *of,
                                 const struct esp_tensor *tensor)
{
    struct matrix *m = add_matrix(s, l, tensor, tensor->scale_source);
    if (m) {
        const size_t rows =
            stored_bytes(tensor) /
            (esp_dtype_row_bytes(tensor->dtype, tensor->columns) - scale_bytes(tensor));
        m->scales_of = of;
        m->begin = tensor->scale_offset;
        m->end = m->begin + rows * scale_bytes(tensor);
    }
    return m;
}

int esp_cpu_stream_add(struct esp_cpu_stream *s, int layer, const struct esp_tensor *tensor,
                       const struct esp_tensor **stored, char *err, size_t errlen)
{
    struct layer *l = &s->layer[layer];
    if (!tensor->source || tensor->stored_rows > 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "layers can be streamed only from a file, but this model was made "
                        "larger in memory: write it to a file with `espalier inflate` first");
    struct matrix *m = add_matrix(s, l, tensor, tensor->source);
    if (!m || (tensor->scales && !add_scales(s, l, m, tensor)))
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the model's layers");
    *stored = &m->stored;
    return ESP_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct matrix *x = *(struct matrix *const *)a, *y = *(struct matrix *const *)b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Merges the matrices of a layer into ranges. */
static bool plan_layer(struct layer *l)
{
    l->range = calloc((size_t)l->matrices + 1, sizeof *l->range);
    if (!l->range)
        return false;
    if (l->matrices > 0)
        qsort(l->matrix, (size_t)l->matrices, sizeof *l->matrix, by_place);
    for (int i = 0; i < l->matrices; i++) {
        struct matrix *m = l->matrix[i];
        struct range *r = l->ranges > 0 ? &l->range[l->ranges - 1] : NULL;
        if (!r || r->file != m->file || m->begin > r->end + GAP) {
            r = &l->range[l->ranges++];
            *r = (struct range){
                .file = m->file, .begin = m->begin / PAGE * PAGE, .at = l->bytes};
            r->end = r->begin;
        }
        m->at = r->at + (m->begin - r->begin);
        if (m->end > r->begin + r->needed)
            r->needed = m->end - r->begin;
        r->end = r->begin + (r->needed + PAGE - 1) / PAGE * PAGE;
        l->bytes = r->at + (r->end - r->begin);
    }
    return true;
}

int esp_cpu_stream_plan(struct esp_cpu_stream *s, char *err, size_t errlen)
{
    for (int i = 0; i < s->layers; i++)
        if (!plan_layer(&s->layer[i]))
            return esp_fail(err, errlen, ESP_E_MEMORY,
                            "not enough memory for the model's layers");
    return ESP_OK;
}

void esp_cpu_stream_choose(struct esp_cpu_stream *s, int count)
{
    s->streamed = 0;
    for (int i = 0; i < s->layers; i++) {
        s->layer[i].streamed = esp_layer_is_streamed(i, s->layers, count);
        if (s->layer[i].streamed)
            s->order[s->streamed++] = i;
    }
}

bool esp_cpu_stream_has(const struct esp_cpu_stream *s, int layer)
{
    return s && s->layer[layer].streamed;
}

static size_t buffer_bytes(const struct esp_cpu_stream *s)
{
    size_t most = 0;
    for (int i = 0; i < s->streamed; i++) {
        const size_t bytes = s->layer[s->order[i]].bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t esp_cpu_stream_buffer_bytes(const struct esp_cpu_stream *s)
{
    return BUFFERS * buffer_bytes(s);
}

/* ------------------------------------------------------------------ reading */

static bool open_file(struct file *file)
{
    file->fd = esp_open_direct(file->source->fd, &file->direct);
    return file->fd >= 0 && fstat(file->fd, &file->about) == 0;
}

static bool as_it_was(const struct file *file)
{
    struct stat now;
    return fstat(file->fd, &now) == 0 && now.st_size == file->about.st_size &&
           now.st_mtim.tv_sec == file->about.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == file->about.st_mtim.tv_nsec;
}

/* Writes the message that esp_cpu_stream_failure() returns. */
static bool fail(struct esp_cpu_stream *s, const struct file *file, int error)
{
    pthread_mutex_lock(&s->lock);
    if (error)
        esp_fail(s->failure, sizeof s->failure, ESP_E_FILE,
                 "%s: cannot read the layers that do not fit in memory: %s", file->path,
                 strerror(error));
    else
        esp_fail(s->failure, sizeof s->failure, ESP_E_FILE,
                 "%s changed while its layers were read for every pass: start again when the "
                 "file is "
                 "complete",
                 file->path);
    pthread_mutex_unlock(&s->lock);
    return false;
}

static bool stopped(struct esp_cpu_stream *s)
{
    pthread_mutex_lock(&s->lock);
    const bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static bool read_range(struct esp_cpu_stream *s, const struct range *r, char *buffer)
{
    struct file *file = &s->file[r->file];
    const size_t size = r->end - r->begin;
    for (size_t done = 0; done < r->needed && !stopped(s);) {
        const size_t piece = size - done < PIECE ? size - done : PIECE;
        const ssize_t n =
            pread(file->fd, buffer + r->at + done, piece, (off_t)(r->begin + done));
        if (n < 0 && errno == EINVAL && file->direct) {
            file->direct = false;
            fcntl(file->fd, F_SETFL, 0);
        } else if (n < 0 && errno != EINTR) {
            return fail(s, file, errno);
        } else if (n == 0) {
            return fail(s, file, 0);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    if (!file->direct)
        esp_drop_cached(file->fd, (off_t)r->begin, (off_t)size);
    return as_it_was(file) || fail(s, file, 0);
}

/* Reads the next layer into a buffer, which must be free. */
static void read_next(struct esp_cpu_stream *s)
{
    const struct layer *l = &s->layer[s->order[s->read % s->streamed]];
    char *buffer = s->buffer[s->read % BUFFERS];
    const double start = esp_clock();
    bool good = true;
    for (int i = 0; i < l->ranges && good; i++)
        good = read_range(s, &l->range[i], buffer);
    const double seconds = esp_clock() - start;
    pthread_mutex_lock(&s->lock);
    s->failed = !good;
    s->read += good;
    s->bytes += (double)l->bytes;
    s->seconds += seconds;
    pthread_cond_broadcast(&s->was_read);
    pthread_mutex_unlock(&s->lock);
}

static void *read_on(void *arg)
{
    struct esp_cpu_stream *s = arg;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        while (!s->stop && s->read - s->used == BUFFERS)
            pthread_cond_wait(&s->was_used, &s->lock);
        const bool end = s->stop || s->failed;
        pthread_mutex_unlock(&s->lock);
        if (end)
            return NULL;
        read_next(s);
    }
}

int esp_cpu_stream_start(struct esp_cpu_stream *s, char *err, size_t errlen)
{
    const size_t bytes = buffer_bytes(s);
    for (int i = 0; i < BUFFERS; i++) {
        void *memory = NULL;
        if (posix_memalign(&memory, PAGE, bytes) != 0)
            return esp_fail(err, errlen, ESP_E_MEMORY,
                            "not enough memory for two layers of %.1f MB", (double)bytes / 1e6);
        s->buffer[i] = memory;
        esp_cpu_use_huge_pages(memory, bytes);
        memset(memory, 0, bytes); /* so that the first reads do not wait for page faults */
    }
    for (int i = 0; i < s->files; i++)
        if (!open_file(&s->file[i]))
            return esp_fail(err, errlen, ESP_E_FILE, "%s: cannot be opened again: %s",
                            s->file[i].path, strerror(errno));
    sigset_t all, before; /* the reading thread does not handle signals */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->threaded = pthread_create(&s->thread, NULL, read_on, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ESP_OK;
}

void esp_cpu_stream_close(struct esp_cpu_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->was_used);
    pthread_mutex_unlock(&s->lock);
    if (s->threaded)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->was_used);
    pthread_cond_destroy(&s->was_read);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->pass);
    for (int i = 0; i < s->layers && s->layer; i++) {
        for (int k = 0; k < s->layer[i].matrices; k++)
            free(s->layer[i].matrix[k]);
        free(s->layer[i].matrix);
        free(s->layer[i].range);
    }
    for (int i = 0; i < s->files; i++)
        if (s->file[i].fd >= 0)
            close(s->file[i].fd);
    for (int i = 0; i < BUFFERS; i++)
        free(s->buffer[i]);
    free(s->file);
    free(s->layer);
    free(s->order);
    free(s);
}

/* ------------------------------------------------------------------ a pass */

void esp_cpu_stream_begin(struct esp_cpu_stream *s)
{
    if (s)
        pthread_mutex_lock(&s->pass);
}

void esp_cpu_stream_end(struct esp_cpu_stream *s)
{
    if (s)
        pthread_mutex_unlock(&s->pass);
}

int esp_cpu_stream_hold(struct esp_cpu_stream *s, int layer)
{
    if (!esp_cpu_stream_has(s, layer))
        return ESP_OK;
    if (!s->threaded && s->read == s->used && !s->failed)
        read_next(s);
    pthread_mutex_lock(&s->lock);
    while (s->read == s->used && !s->failed)
        pthread_cond_wait(&s->was_read, &s->lock);
    const bool there = s->read > s->used;
    const char *buffer = s->buffer[s->used % BUFFERS];
    pthread_mutex_unlock(&s->lock);
    if (!there)
        return ESP_E_FILE;
    const struct layer *l = &s->layer[layer];
    for (int i = 0; i < l->matrices; i++) {
        struct matrix *m = l->matrix[i];
        if (m->scales_of)
            m->scales_of->stored.scales = buffer + m->at;
        else
            m->stored.data = buffer + m->at;
    }
    return ESP_OK;
}

void esp_cpu_stream_release(struct esp_cpu_stream *s, int layer)
{
    if (!esp_cpu_stream_has(s, layer))
        return;
    pthread_mutex_lock(&s->lock);
    s->used++;
    pthread_cond_signal(&s->was_used);
    pthread_mutex_unlock(&s->lock);
}

const char *esp_cpu_stream_failure(const struct esp_cpu_stream *s)
{
    return s->failure;
}

void esp_cpu_stream_count(struct esp_cpu_stream *s, struct esp_streamed *streamed)
{
    pthread_mutex_lock(&s->lock);
    while (s->threaded && s->read < BUFFERS && !s->failed)
        pthread_cond_wait(&s->was_read, &s->lock);
    streamed->bytes = s->bytes;
    streamed->seconds = s->seconds;
    pthread_mutex_unlock(&s->lock);
    streamed->layers = s->layers;
    streamed->resident = s->layers - s->streamed;
    streamed->buffer_bytes = esp_cpu_stream_buffer_bytes(s);
    streamed->pass_bytes = 0;
    for (int i = 0; i < s->streamed; i++)
        streamed->pass_bytes += s->layer[s->order[i]].bytes;
}
