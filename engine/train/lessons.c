/* lessons.c - the file of training samples; see lessons.h.
 *
 * The file: a magic word, the fingerprint, then a record for each piece (teacher.h). Reading a
 * record compares its tokens with the text.
 */
#include "engine/train/lessons.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/json.h"
#include "engine/model/tokenizer.h"
#include "engine/support/open_file.h"
#include "engine/support/write_file.h"
#include "engine/train/checkpoint.h"
#include "kernels/status.h"

enum { LARGEST = 256 << 20, HEADER = 16, LONG_TOKEN = 16 /* bytes, on average */ };
static const char MAGIC[8] = {'E', 'S', 'P', 'F', 'E', 'A', '0', '1'};

/* ------------------------------------------------------------------ the text */

struct tokens {
    int32_t *id;
    int64_t count;
};

/* most: number of tokens to read; 0: all. */
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
    if (count < 0 || (count > 0 && !more))
        return esp_fail(err, errlen, count < 0 ? count : ESP_E_MEMORY,
                        "%s cannot be tokenized: %s", path,
                        esp_status_message(count < 0 ? count : ESP_E_MEMORY));
    return ESP_OK;
}

/* Divides the tokens into pieces, each after the tokenizer's first token if it has one. */
static int cut(struct esp_lessons *l, const struct tokens *t, int32_t prefix, int64_t most,
               char *err, size_t errlen)
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

static int check_tokens(const struct esp_lessons *l, int vocabulary, char *err, size_t errlen)
{
    const size_t count = (size_t)l->count * (size_t)l->shape.length;
    for (size_t i = 0; i < count; i++)
        if (l->token[i] < 0 || l->token[i] >= vocabulary)
            return esp_fail(err, errlen, ESP_E_MISMATCH,
                            "the tokenizer gives token %d, which the model does not have",
                            l->token[i]);
    return ESP_OK;
}

int esp_lessons_read(struct esp_lessons *l, const char *target,
                     const struct esp_teacher_shape *shape, const char *const *texts, int count,
                     int vocabulary, int64_t most, char *err, size_t errlen)
{
    struct esp_tokenizer *tokenizer;
    struct tokens tokens = {0};
    *l = (struct esp_lessons){.shape = *shape, .fd = -1};
    int status = esp_tokenizer_open(&tokenizer, target, err, errlen);
    for (int i = 0; i < count && status == ESP_OK; i++)
        if (most == 0 || tokens.count < most)
            status = add_file(&tokens, tokenizer, texts[i], most > 0 ? most - tokens.count : 0,
                              err, errlen);
    if (status == ESP_OK)
        status = cut(l, &tokens, esp_tokenizer_prefix(tokenizer), most, err, errlen);
    if (status == ESP_OK)
        status = check_tokens(l, vocabulary, err, errlen);
    if (status == ESP_OK)
        l->fingerprint =
            esp_fingerprint(ESP_FINGERPRINT, l->token,
                            (size_t)l->count * (size_t)l->shape.length * sizeof *l->token);
    esp_tokenizer_close(tokenizer);
    free(tokens.id);
    return status;
}

void esp_lessons_close(struct esp_lessons *l)
{
    if (l->fd >= 0)
        close(l->fd);
    free(l->token);
    *l = (struct esp_lessons){.fd = -1};
}

/* ------------------------------------------------------------------ the file */

static size_t record_size(const struct esp_lessons *l)
{
    struct esp_training_sample lesson;
    if (esp_lesson_open(&lesson, &l->shape) < 0)
        return 0;
    const size_t size = lesson.bytes;
    esp_lesson_close(&lesson);
    return size;
}

/* Opens a complete file of this training. */
static bool open_made(struct esp_lessons *l, const char *path, uint64_t fingerprint)
{
    char header[HEADER];
    const char *wrong;
    struct stat about;
    const size_t size = HEADER + (size_t)l->count * record_size(l);
    l->fd = esp_open_regular(path, O_RDONLY, 0, &wrong);
    if (l->fd < 0)
        return false;
    if (fstat(l->fd, &about) == 0 && (size_t)about.st_size == size &&
        pread(l->fd, header, HEADER, 0) == HEADER && memcmp(header, MAGIC, sizeof MAGIC) == 0 &&
        memcmp(header + sizeof MAGIC, &fingerprint, sizeof fingerprint) == 0)
        return true;
    close(l->fd);
    l->fd = -1;
    return false;
}

static void set_tokens(const struct esp_lessons *l, int index,
                       struct esp_training_sample *lesson)
{
    memcpy(lesson->token, l->token + (size_t)index * (size_t)l->shape.length,
           (size_t)l->shape.length * sizeof *l->token);
}

static int teach_all(struct esp_lessons *l, int file, const char *path,
                     struct esp_teacher *teacher, esp_lessons_progress *progress, void *user,
                     char *err, size_t errlen)
{
    struct esp_training_sample lesson;
    int status = esp_lesson_open(&lesson, &l->shape);
    if (status < 0)
        return esp_fail(err, errlen, status, "not enough memory for a piece of the text");
    for (int i = 0; i < l->count && status == ESP_OK; i++) {
        set_tokens(l, i, &lesson);
        status = esp_teacher_teach(teacher, &lesson, err, errlen);
        if (status == ESP_OK && !esp_write_all(file, lesson.memory, lesson.bytes))
            status = esp_fail(err, errlen, ESP_E_FILE, "%s cannot be written: %s", path,
                              strerror(errno));
        if (status == ESP_OK && progress && !progress(user, i + 1, l->count))
            status = esp_fail(err, errlen, ESP_E_CANCELLED, "interrupted");
    }
    esp_lesson_close(&lesson);
    return status;
}

int esp_lessons_make(struct esp_lessons *l, const char *path, uint64_t fingerprint,
                     const struct esp_model *target, int threads,
                     esp_lessons_progress *progress, void *user, char *err, size_t errlen)
{
    struct esp_writing writing;
    struct esp_teacher *teacher;
    if (open_made(l, path, fingerprint)) {
        snprintf(l->path, sizeof l->path, "%s", path);
        return ESP_OK;
    }
    int status = esp_teacher_open(&teacher, target, &l->shape, threads, err, errlen);
    if (status < 0)
        return status;
    status = esp_write_begin(&writing, path, true, err, errlen);
    if (status == ESP_OK) {
        if (!esp_write_all(writing.file, MAGIC, sizeof MAGIC) ||
            !esp_write_all(writing.file, (const char *)&fingerprint, sizeof fingerprint))
            status = esp_fail(err, errlen, ESP_E_FILE, "%s cannot be written: %s", path,
                              strerror(errno));
        if (status == ESP_OK)
            status = teach_all(l, writing.file, path, teacher, progress, user, err, errlen);
        const int ended = esp_write_end(&writing, status == ESP_OK, err, errlen);
        status = status < 0 ? status : ended;
    }
    esp_teacher_close(teacher);
    if (status == ESP_OK && !open_made(l, path, fingerprint))
        status = esp_fail(err, errlen, ESP_E_FILE, "%s changed while it was written", path);
    snprintf(l->path, sizeof l->path, "%s", path);
    return status;
}

int esp_lessons_get(const struct esp_lessons *l, int index, struct esp_training_sample *lesson,
                    char *err, size_t errlen)
{
    char *to = lesson->memory;
    size_t done = 0;
    while (done < lesson->bytes) {
        const size_t at = HEADER + (size_t)index * lesson->bytes + done;
        ssize_t got = pread(l->fd, to + done, lesson->bytes - done, (off_t)at);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    const int32_t *token = l->token + (size_t)index * (size_t)l->shape.length;
    bool good = done == lesson->bytes &&
                memcmp(token, lesson->token, (size_t)l->shape.length * sizeof *token) == 0;
    for (int i = 0; i < lesson->roots * lesson->nodes && good; i++) {
        const int k = l->shape.k, node = i % lesson->nodes, parent = lesson->node_parent[i];
        good = lesson->node_token[i] >= 0 && lesson->node_token[i] < l->shape.vocabulary &&
               (node < k ? parent == -1 : parent >= 0 && parent / k == node / k - 1);
    }
    if (!good)
        return esp_fail(err, errlen, ESP_E_FORMAT,
                        "%s is damaged: remove it, and the next run makes it again", l->path);
    return ESP_OK;
}
