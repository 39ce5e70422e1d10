/* draft_samples.h - makes and reads a file of training samples: pieces of text with the
 * target's hidden states and trees. */
#ifndef ESP_DRAFT_SAMPLES_H
#define ESP_DRAFT_SAMPLES_H

#include "engine/train/teacher.h"

struct esp_draft_samples {
    struct esp_teacher_shape shape;
    int32_t *token; /* (count, length) */
    int count;
    int fd; /* the file of samples; -1 means not open */
    char path[4096];
    uint64_t fingerprint; /* hash of the tokens */
};

/* Reads and tokenizes the files and divides them into pieces of shape->length tokens. If there
 * are fewer tokens, they become one piece, and samples->shape.length is set to its length. Uses
 * at most `most` tokens; 0 means all. */
int esp_draft_samples_read(struct esp_draft_samples *samples, const char *target,
                           const struct esp_teacher_shape *shape, const char *const *texts,
                           int count, int vocabulary, int64_t most, char *err, size_t errlen);
void esp_draft_samples_close(struct esp_draft_samples *samples);

/* Called after each piece. Return false to stop. */
typedef bool esp_draft_samples_progress(void *user, int64_t done, int64_t total);

/* Runs the target over all pieces and stores the samples at `path`, unless a file with this
 * fingerprint is already there. Then opens the file. A new file appears only when it is
 * complete. */
int esp_draft_samples_make(struct esp_draft_samples *samples, const char *path,
                           uint64_t fingerprint, const struct esp_model *target, int threads,
                           esp_draft_samples_progress *progress, void *user, char *err,
                           size_t errlen);

/* Reads sample `index` into a sample that esp_training_sample_open() opened. */
int esp_draft_samples_get(const struct esp_draft_samples *samples, int index,
                          struct esp_training_sample *sample, char *err, size_t errlen);

#endif
