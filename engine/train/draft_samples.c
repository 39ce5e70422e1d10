/* draft_samples.c - writes and reads the file of training samples; see draft_samples.h.
 *
 * The file consists of a magic word, the fingerprint, and a record for each piece of text
 * (teacher.h). When a record is read, its tokens are compared with the text.
 */
#include "engine/train/draft_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/json.h"
#include "engine/model/tokenizer.h"
#include "engine/support/hash.h"
#include "engine/support/open_file.h"
#include "engine/support/write_file.h"
#include "kernels/status.h"

enum { LARGEST = 256 << 20, HEADER = 16, LONG_TOKEN = 16 /* bytes; most tokens are shorter */ };
static const char MAGIC[8] = {'E', 'S', 'P', 'F', 'E', 'A', '0', '1'};

/* ------------------------------------------------------------------ the text */

struct tokens {
    int32_t *id;
    int64_t count;
};

/* Adds the tokens of a file. `most`: approximate number of tokens that are needed; 0 means
 * all. */
static int add_file(struct tokens *t, const struct esp_tokenizer *tokenizer, const char *path,
                    int64_t most, char *err, size_t errlen)
{
    char *text, whole[PATH_MAX], folder[PATH_MAX];
    size_t size;
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    int status = esp_file_read(&text, &size, whole, folder, slash ? slash + 1 : path, LARGEST,
                               err, errlen);
    if (status < 0)
        return status;
    if (most > 0 && size > (size_t)most * LONG_TOKEN)
        size = (size_t)most * LONG_TOKEN;
    int count = esp_tokenizer_encode(tokenizer, text, size, NULL, 0);
    int32_t *more =
        count > 0 ? realloc(t->id, (size_t)(t->count + count) * sizeof *more) : NULL;
    if (more) {
        t->id = more;
        esp_tokenizer_encode(tokenizer, text, size, more + t->count, count);
        t->count += count;
    }
    free(text);
    status = count < 0 ? count : count > 0 && !more ? (int)ESP_E_MEMORY : (int)ESP_OK;
    return status < 0 ? esp_fail(err, errlen, status, "%s cannot be tokenized: %s", path,
                                 esp_status_message(status))
                      : ESP_OK;
}

/* Divides the tokens into pieces. If the tokenizer has a begin-of-text token, each piece
 * begins with it. */
static int cut(struct esp_draft_samples *l, const struct tokens *t, int32_t prefix,
               int64_t most, char *err, size_t errlen)
{
    const int64_t count = most > 0 && most < t->count ? most : t->count;
    const int extra = prefix >= 0;
    if (count + extra < l->shape.length)
        l->shape.length = (int)count + extra;
    if (l->shape.length < 8)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "the text has only %d tokens; give more text with --text", (int)count);
    const int own = l->shape.length - extra;
    if (count / own > INT32_MAX / 2)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "the text is too long; give less text");
    l->count = (int)(count / own);
    l->token = malloc((size_t)l->count * (size_t)l->shape.length * sizeof *l->token);
    if (!l->token)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the text");
    for (int i = 0; i < l->count; i++) {
        int32_t *to = l->token + (size_t)i * (size_t)l->shape.length;
        if (extra)
            *to++ = prefix;
        memcpy(to, t->id + (size_t)i * (size_t)own, (size_t)own * sizeof *to);
    }
    return ESP_OK;
}

int esp_draft_samples_read(struct esp_draft_samples *l, const char *target,
                           const struct esp_teacher_shape *shape, const char *const *texts,
                           int count, int vocabulary, int64_t most, char *err, size_t errlen)
{
    struct esp_tokenizer *tokenizer;
    struct tokens tokens = {0};
    *l = (struct esp_draft_samples){.shape = *shape, .fd = -1};
    int status = esp_tokenizer_open(&tokenizer, target, err, errlen);
    for (int i = 0; i < count && status == ESP_OK; i++)
        if (most == 0 || tokens.count < most)
            status = add_file(&tokens, tokenizer, texts[i], most > 0 ? most - tokens.count : 0,
                              err, errlen);
    if (status == ESP_OK)
        status = cut(l, &tokens, esp_tokenizer_prefix(tokenizer), most, err, errlen);
    const size_t total = (size_t)l->count * (size_t)l->shape.length;
    for (size_t i = 0; i < total && status == ESP_OK; i++)
        if (l->token[i] < 0 || l->token[i] >= vocabulary)
            status = esp_fail(err, errlen, ESP_E_MISMATCH,
                              "the tokenizer gives token %d, which the model does not have",
                              l->token[i]);
    if (status == ESP_OK)
        l->fingerprint = esp_fnv(ESP_FNV_START, l->token, total * sizeof *l->token);
    esp_tokenizer_close(tokenizer);
    free(tokens.id);
    return status;
}

void esp_draft_samples_close(struct esp_draft_samples *l)
{
    if (l->fd >= 0)
        close(l->fd);
    free(l->token);
    *l = (struct esp_draft_samples){.fd = -1};
}

/* ------------------------------------------------------------------ the file */

/* Opens the file if it is complete and has this fingerprint. */
static bool open_made(struct esp_draft_samples *l, const char *path, uint64_t fingerprint)
{
    char header[HEADER];
    const char *wrong;
    const size_t size = HEADER + (size_t)l->count * esp_training_sample_bytes(&l->shape);
    snprintf(l->path, sizeof l->path, "%s", path);
    l->fd = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (l->fd < 0)
        return false;
    if (lseek(l->fd, 0, SEEK_END) == (off_t)size &&
        esp_read_at(l->fd, header, HEADER, 0) == HEADER &&
        memcmp(header, MAGIC, sizeof MAGIC) == 0 &&
        memcmp(header + sizeof MAGIC, &fingerprint, sizeof fingerprint) == 0)
        return true;
    close(l->fd);
    l->fd = -1;
    return false;
}

/* Makes all samples and writes them to the file. */
static int teach_all(const struct esp_draft_samples *l, int file, uint64_t fingerprint,
                     struct esp_teacher *teacher, esp_draft_samples_progress *progress,
                     void *user, char *err, size_t errlen)
{
    const size_t length = (size_t)l->shape.length;
    struct esp_training_sample sample;
    int status = esp_training_sample_open(&sample, &l->shape);
    if (status < 0)
        return esp_fail(err, errlen, status, "not enough memory for a piece of the text");
    bool written = esp_write_all(file, MAGIC, sizeof MAGIC) &&
                   esp_write_all(file, (const char *)&fingerprint, sizeof fingerprint);
    for (int i = 0; i < l->count && status == ESP_OK && written; i++) {
        memcpy(sample.token, l->token + (size_t)i * length, length * sizeof *l->token);
        status = esp_teacher_teach(teacher, &sample, err, errlen);
        if (status == ESP_OK)
            written = esp_write_all(file, sample.memory, sample.bytes);
        if (status == ESP_OK && written && progress && !progress(user, i + 1, l->count))
            status = esp_fail(err, errlen, ESP_E_CANCELLED, "interrupted");
    }
    if (!written)
        status = esp_fail(err, errlen, ESP_E_FILE, "%s cannot be written: %s", l->path,
                          strerror(errno));
    esp_training_sample_close(&sample);
    return status;
}

int esp_draft_samples_make(struct esp_draft_samples *l, const char *path, uint64_t fingerprint,
                           const struct esp_model *target, int threads,
                           esp_draft_samples_progress *progress, void *user, char *err,
                           size_t errlen)
{
    struct esp_writing writing;
    struct esp_teacher *teacher;
    if (open_made(l, path, fingerprint))
        return ESP_OK;
    int status = esp_teacher_open(&teacher, target, &l->shape, threads, err, errlen);
    if (status < 0)
        return status;
    status = esp_write_begin(&writing, path, true, err, errlen);
    if (status == ESP_OK) {
        status = teach_all(l, writing.file, fingerprint, teacher, progress, user, err, errlen);
        const int ended = esp_write_end(&writing, status == ESP_OK, err, errlen);
        status = status < 0 ? status : ended;
    }
    esp_teacher_close(teacher);
    if (status == ESP_OK && !open_made(l, path, fingerprint))
        status = esp_fail(err, errlen, ESP_E_FILE, "%s changed while it was written", path);
    return status;
}

int esp_draft_samples_get(const struct esp_draft_samples *l, int index,
                          struct esp_training_sample *sample, char *err, size_t errlen)
{
    const size_t at = HEADER + (size_t)index * sample->bytes, length = (size_t)l->shape.length;
    bool good = esp_read_at(l->fd, sample->memory, sample->bytes, at) == sample->bytes &&
                memcmp(l->token + (size_t)index * length, sample->token,
                       length * sizeof *l->token) == 0;
    for (int i = 0; i < sample->roots * sample->nodes && good; i++) {
        const int k = l->shape.k, node = i % sample->nodes, parent = sample->node_parent[i];
        good = sample->node_token[i] >= 0 && sample->node_token[i] < l->shape.vocabulary &&
               (node < k ? parent == -1 : parent >= 0 && parent / k == node / k - 1);
    }
    if (!good)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s is damaged: remove it; the next run will make it again", l->path);
    return ESP_OK;
}
