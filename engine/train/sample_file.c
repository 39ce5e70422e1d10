/* sample_file.c - see sample_file.h. Numbers are in the machine's byte order, because the file
 * is a checkpoint, not a format for exchange. */
#include "engine/train/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/support/open_file.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"

static const char MAGIC[8] = "ESPNDE3\n";

static bool reserve(struct esp_sample_file *f, int more)
{
    if (f->count + more <= f->room)
        return true;
    const int room = 2 * f->room + more;
    float *samples = realloc(f->samples, (size_t)room * f->size * sizeof *samples);
    if (samples)
        f->samples = samples;
    int *piece = realloc(f->piece, (size_t)room * sizeof *piece);
    if (piece)
        f->piece = piece;
    if (!samples || !piece)
        return false;
    f->room = room;
    return true;
}

/* Counts `count` more samples as the next piece. They must already be in memory, after the
 * previous samples. */
static void take(struct esp_sample_file *f, int count)
{
    for (int i = 0; i < count; i++)
        f->piece[f->count++] = f->pieces;
    f->pieces++;
}

/* Reads blocks up to the first incomplete or invalid one, and truncates the file there. */
static int read_blocks(struct esp_sample_file *f)
{
    int32_t head[2];
    size_t end = sizeof(struct esp_sample_header);
    while (esp_read_at(f->file, head, sizeof head, end) == sizeof head &&
           head[0] == f->pieces && head[1] >= 0 && head[1] <= ESP_SAMPLE_ROOTS) {
        const size_t floats = f->size * (size_t)head[1], bytes = floats * sizeof *f->samples;
        if (!reserve(f, head[1]))
            return ESP_E_MEMORY;
        float *to = f->samples + (size_t)f->count * f->size;
        if (esp_read_at(f->file, to, bytes, end + sizeof head) != bytes)
            break;
        for (size_t i = 0; i < floats; i++)
            if (!isfinite(to[i]))
                return ESP_E_FORMAT;
        take(f, head[1]);
        end += sizeof head + bytes;
    }
    return ftruncate(f->file, (off_t)end) == 0 ? ESP_OK : ESP_E_FILE;
}

static bool belongs(const struct esp_sample_header *has, const struct esp_sample_header *wants)
{
    return has->pair == wants->pair && has->text == wants->text && has->seed == wants->seed &&
           memcmp(&has->layout, &wants->layout, sizeof has->layout) == 0 &&
           has->context == wants->context &&
           memcmp(has->names, wants->names, sizeof has->names) == 0;
}

int esp_sample_file_open(struct esp_sample_file *f, const char *path,
                         struct esp_sample_header *header, char *err, size_t errlen)
{
    struct esp_sample_header has;
    const char *wrong;
    *f = (struct esp_sample_file){.path = path, .size = esp_sample_size(&header->layout)};
    memcpy(header->magic, MAGIC, sizeof MAGIC);
    header->times.length[0] = 0;
    f->file = esp_open_regular(path, O_RDWR | O_CREAT | O_APPEND, 0666, &wrong);
    if (f->file < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "%.300s cannot be written: %s", path, wrong);
    const size_t got = esp_read_at(f->file, &has, sizeof has, 0);
    if (got == 0)
        return ESP_OK;
    if (got < sizeof has || memcmp(has.magic, MAGIC, sizeof MAGIC) != 0 ||
        !esp_pass_times_sound(&has.times))
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%.300s is not a file of samples for selectors; remove it", path);
    if (!belongs(&has, header))
        return esp_fail(
            err, errlen, ESP_E_MISMATCH,
            "%.300s belongs to a training run with other models, text, verifiers or "
            "seed; remove it, or name a different file with -o",
            path);
    header->times = has.times;
    const int status = read_blocks(f);
    return status < 0 ? esp_fail(err, errlen, status, "%.300s is damaged; remove it", path)
                      : status;
}

static int write_bytes(const struct esp_sample_file *f, const void *bytes, size_t size,
                       char *err, size_t errlen)
{
    if (esp_write_all(f->file, bytes, size))
        return ESP_OK;
    return esp_fail(err, errlen, ESP_E_FILE, "%.300s cannot be written: %s", f->path,
                    strerror(errno));
}

int esp_sample_file_begin(struct esp_sample_file *f, const struct esp_sample_header *header,
                          char *err, size_t errlen)
{
    return write_bytes(f, header, sizeof *header, err, errlen);
}

void esp_sample_file_close(struct esp_sample_file *f)
{
    if (f->file >= 0)
        close(f->file);
    free(f->samples);
    free(f->piece);
}

int esp_sample_file_add(struct esp_sample_file *f, const float *samples, int count, char *err,
                        size_t errlen)
{
    const int32_t head[2] = {f->pieces, count};
    const size_t bytes = (size_t)count * f->size * sizeof *samples;
    if (!reserve(f, count))
        return ESP_E_MEMORY;
    int status = write_bytes(f, head, sizeof head, err, errlen);
    if (status == ESP_OK)
        status = write_bytes(f, samples, bytes, err, errlen);
    if (status < 0)
        return status;
    memcpy(f->samples + (size_t)f->count * f->size, samples, bytes);
    take(f, count);
    return ESP_OK;
}
