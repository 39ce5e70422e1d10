/* checkpoint.c - writes and reads checkpoints; see checkpoint.h.
 *
 * The file: a header, the losses, values, first and second moments, and a hash of all of it.
 * Numbers have this machine's byte order.
 */
#include "engine/train/checkpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/support/hash.h"
#include "engine/support/open_file.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"

static const char MAGIC[8] = {'E', 'S', 'P', 'T', 'R', 'N', '0', '1'};

struct header {
    char magic[8];
    uint64_t fingerprint, total;
    int64_t step, steps;
};

/* Words instead of bytes: eight times as fast, and checkpoints are large. */
static uint64_t hash_words(const char *bytes, size_t size)
{
    uint64_t hash = ESP_FNV_START, word;
    for (size_t i = 0; i < size; i += sizeof word) {
        word = 0;
        memcpy(&word, bytes + i, size - i < sizeof word ? size - i : sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

static size_t size_of(uint64_t total, int64_t steps)
{
    return sizeof(struct header) + ((size_t)steps + 3 * (size_t)total) * sizeof(float) +
           sizeof(uint64_t);
}

int esp_checkpoint_write(const char *path, uint64_t fingerprint, const struct esp_parameters *p,
                         const struct esp_progress_state *s, char *err, size_t errlen)
{
    struct header header = {
        .fingerprint = fingerprint, .total = p->total, .step = s->step, .steps = s->steps};
    const size_t size = size_of(p->total, s->steps), hashed = size - sizeof(uint64_t);
    char *bytes = malloc(size);
    if (!bytes)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to write %s", path);
    float *loss = (float *)(bytes + sizeof header);
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    memcpy(bytes, &header, sizeof header);
    memcpy(loss, s->loss, (size_t)s->steps * sizeof *loss);
    memcpy(loss + s->steps, p->value, 3 * p->total * sizeof *loss);
    const uint64_t hash = hash_words(bytes, hashed);
    memcpy(bytes + hashed, &hash, sizeof hash);
    int status = esp_write_file(path, bytes, size, true, err, errlen);
    free(bytes);
    return status;
}

static int read_bytes(const char *path, char *bytes, size_t size, char *err, size_t errlen)
{
    const char *wrong;
    int fd = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (fd < 0)
        return esp_fail(err, errlen, ESP_E_FILE, "%s %s", path, wrong);
    const bool whole = esp_file_has_size(fd, size) && esp_read_at(fd, bytes, size, 0) == size;
    close(fd);
    return whole ? ESP_OK : ESP_E_FORMAT;
}

int esp_checkpoint_read(const char *path, uint64_t fingerprint, struct esp_parameters *p,
                        struct esp_progress_state *s, char *err, size_t errlen)
{
    const size_t size = size_of(p->total, s->steps), hashed = size - sizeof(uint64_t);
    struct header header;
    uint64_t hash;
    char *bytes = malloc(size);
    if (!bytes)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to read %s", path);
    int status = read_bytes(path, bytes, size, err, errlen);
    if (status == ESP_OK) {
        memcpy(&header, bytes, sizeof header);
        memcpy(&hash, bytes + hashed, sizeof hash);
        if (memcmp(header.magic, MAGIC, sizeof MAGIC) != 0 ||
            hash != hash_words(bytes, hashed) || header.step < 0 || header.step > s->steps)
            status = ESP_E_FORMAT;
        else if (header.fingerprint != fingerprint || header.total != p->total ||
                 header.steps != s->steps)
            status = ESP_E_MISMATCH;
    }
    if (status == ESP_E_FORMAT)
        esp_fail(err, errlen, status,
                 "%s is damaged or of another training: train without --resume", path);
    if (status == ESP_E_MISMATCH)
        esp_fail(err, errlen, status,
                 "%s is of a training with other models, text or settings: give the same ones, "
                 "or train without --resume",
                 path);
    if (status == ESP_OK) {
        const float *loss = (const float *)(bytes + sizeof header);
        memcpy(s->loss, loss, (size_t)s->steps * sizeof *loss);
        memcpy(p->value, loss + s->steps, 3 * p->total * sizeof *loss);
        s->step = header.step;
    }
    free(bytes);
    return status;
}
