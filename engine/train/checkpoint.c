/* checkpoint.c - writes and reads checkpoints; see checkpoint.h.
 *
 * The file consists of a header, the losses, the weights, the first and second moments, and a
 * hash of all these. Numbers are in the machine's byte order.
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

/* Hashes words of eight bytes, because checkpoints are large. This is eight times as fast as
 * hashing single bytes. */
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
    const size_t size = size_of(p->total, s->steps), hashed = size - sizeof(uint64_t);
    char *bytes = malloc(size);
    if (!bytes)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to write %s", path);
    struct header *header = (struct header *)bytes;
    float *loss = (float *)(header + 1);
    *header = (struct header){
        .fingerprint = fingerprint, .total = p->total, .step = s->step, .steps = s->steps};
    memcpy(header->magic, MAGIC, sizeof MAGIC);
    memcpy(loss, s->loss, (size_t)s->steps * sizeof *loss);
    memcpy(loss + s->steps, p->value, 3 * p->total * sizeof *loss);
    const uint64_t hash = hash_words(bytes, hashed);
    memcpy(bytes + hashed, &hash, sizeof hash);
    int status = esp_write_file(path, bytes, size, true, err, errlen);
    free(bytes);
    return status;
}

/* Returns whether the file is a complete checkpoint of a training run of `steps` steps. */
static bool is_whole(int fd, char *bytes, size_t size, int64_t steps)
{
    const size_t hashed = size - sizeof(uint64_t);
    const struct header *header = (const struct header *)bytes;
    uint64_t hash;
    if (lseek(fd, 0, SEEK_END) != (off_t)size || esp_read_at(fd, bytes, size, 0) != size)
        return false;
    memcpy(&hash, bytes + hashed, sizeof hash);
    return memcmp(header->magic, MAGIC, sizeof MAGIC) == 0 &&
           hash == hash_words(bytes, hashed) && header->step >= 0 && header->step <= steps;
}

int esp_checkpoint_read(const char *path, uint64_t fingerprint, struct esp_parameters *p,
                        struct esp_progress_state *s, char *err, size_t errlen)
{
    const size_t size = size_of(p->total, s->steps);
    const char *wrong;
    char *bytes = malloc(size);
    const struct header *header = (const struct header *)bytes;
    if (!bytes)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to read %s", path);
    int status = ESP_OK, fd = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (fd < 0)
        status = esp_fail(err, errlen, ESP_E_FILE, "%s %s", path, wrong);
    else if (!is_whole(fd, bytes, size, s->steps))
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%s is damaged or belongs to another training run: train without "
                          "--resume",
                          path);
    else if (header->fingerprint != fingerprint || header->total != p->total ||
             header->steps != s->steps)
        status = esp_fail(err, errlen, ESP_E_MISMATCH,
                          "%s belongs to a training run with other models, text or settings: "
                          "give that run's models, text and settings, or train without "
                          "--resume",
                          path);
    if (fd >= 0)
        close(fd);
    if (status == ESP_OK) {
        const float *loss = (const float *)(header + 1);
        memcpy(s->loss, loss, (size_t)s->steps * sizeof *loss);
        memcpy(p->value, loss + s->steps, 3 * p->total * sizeof *loss);
        s->step = header->step;
    }
    free(bytes);
    return status;
}
