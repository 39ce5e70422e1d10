/* sample_file.c - see sample_file.h. Numbers have this machine's byte order: the file is a
 * checkpoint, no exchange format. */
#include "engine/train/sample_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Reads blocks up to the first incomplete or invalid one. */
static int read_blocks(struct esp_sample_file *f)
{
    int32_t head[2];
    long end = ftell(f->file);
    while (fread(head, sizeof head, 1, f->file) == 1 && head[0] == f->pieces && head[1] >= 0 &&
           head[1] <= ESP_SAMPLE_ROOTS) {
        float *to;
        if (!reserve(f, head[1]))
            return ESP_E_MEMORY;
        to = f->samples + (size_t)f->count * f->size;
        if (fread(to, f->size * sizeof *to, (size_t)head[1], f->file) != (size_t)head[1])
            break;
        for (size_t i = 0; i < f->size * (size_t)head[1]; i++)
            if (!isfinite(to[i]))
                return ESP_E_FORMAT;
        for (int i = 0; i < head[1]; i++)
            f->piece[f->count++] = f->pieces;
        f->pieces++;
        end = ftell(f->file);
    }
    clearerr(f->file);
    if (end < 0 || fseek(f->file, end, SEEK_SET) != 0 || ftruncate(fileno(f->file), end) != 0)
        return ESP_E_FILE;
    return ESP_OK;
}

static bool belongs(const struct esp_sample_header *has, const struct esp_sample_header *wants)
{
    return has->pair == wants->pair && has->text == wants->text && has->seed == wants->seed &&
           memcmp(has->hidden, wants->hidden, sizeof has->hidden) == 0 &&
           has->rules == wants->rules && has->context == wants->context &&
           memcmp(has->names, wants->names, sizeof has->names) == 0;
}

int esp_sample_file_open(struct esp_sample_file *f, const char *path,
                         struct esp_sample_header *header, char *err, size_t errlen)
{
    struct esp_sample_header has;
    const struct esp_sample_layout layout = {
        {header->hidden[0], header->hidden[1], header->hidden[2]}, header->rules};
    *f = (struct esp_sample_file){.size = esp_sample_size(&layout)};
    memcpy(header->magic, MAGIC, sizeof MAGIC);
    header->times.length[0] = 0;
    f->file = fopen(path, "r+b");
    if (!f->file && errno == ENOENT)
        f->file = fopen(path, "w+b");
    if (!f->file)
        return esp_fail(err, errlen, ESP_E_FILE, "%.300s cannot be written: %s", path,
                        strerror(errno));
    const size_t got = fread(&has, 1, sizeof has, f->file);
    int status = ESP_OK;
    if (got == 0)
        return ESP_OK;
    if (got < sizeof has || memcmp(has.magic, MAGIC, sizeof MAGIC) != 0 ||
        !esp_pass_times_sound(&has.times))
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%.300s holds no samples of a training; remove it", path);
    else if (!belongs(&has, header))
        status = esp_fail(err, errlen, ESP_E_MISMATCH,
                          "%.300s belongs to a training with other models, text, verifiers or "
                          "seed; remove it, or give another -o",
                          path);
    if (status == ESP_OK) {
        header->times = has.times;
        status = read_blocks(f);
        if (status < 0)
            esp_fail(err, errlen, status, "%.300s is damaged; remove it", path);
    }
    if (status < 0)
        esp_sample_file_close(f);
    return status;
}

int esp_sample_file_begin(struct esp_sample_file *f, const struct esp_sample_header *header)
{
    const bool written = fseek(f->file, 0, SEEK_SET) == 0 &&
                         fwrite(header, sizeof *header, 1, f->file) == 1 &&
                         fflush(f->file) == 0;
    return written ? ESP_OK : ESP_E_FILE;
}

void esp_sample_file_close(struct esp_sample_file *f)
{
    if (f->file)
        fclose(f->file);
    free(f->samples);
    free(f->piece);
    memset(f, 0, sizeof *f);
}

int esp_sample_file_add(struct esp_sample_file *f, const float *samples, int count)
{
    const int32_t head[2] = {f->pieces, count};
    if (!reserve(f, count))
        return ESP_E_MEMORY;
    if (fwrite(head, sizeof head, 1, f->file) != 1 ||
        fwrite(samples, f->size * sizeof *samples, (size_t)count, f->file) != (size_t)count ||
        fflush(f->file) != 0)
        return ESP_E_FILE;
    memcpy(f->samples + (size_t)f->count * f->size, samples,
           (size_t)count * f->size * sizeof *samples);
    for (int i = 0; i < count; i++)
        f->piece[f->count++] = f->pieces;
    f->pieces++;
    return ESP_OK;
}
