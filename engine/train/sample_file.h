/* sample_file.h - the selector's samples on disk; sampling can be interrupted at any time.
 *
 * A header identifies models, text and seed; then follows one block for each piece. An
 * incomplete block at the end of the file is dropped and sampled again.
 */
#ifndef ESP_SAMPLE_FILE_H
#define ESP_SAMPLE_FILE_H

#include "engine/train/selector_samples.h"

struct esp_sample_header {
    char magic[8];
    uint64_t pair, text, seed; /* hashes of models and text */
    struct esp_sample_layout layout;
    int32_t context;
    char names[128]; /* of the verifiers */
    struct esp_pass_times times;
};

struct esp_sample_file {
    int file; /* -1: not open */
    const char *path;
    int pieces; /* complete in the file */
    /* All samples, and the piece each belongs to. */
    float *samples;
    int *piece;
    int count, room;
    size_t size; /* floats of a sample */
};

/* Opens or creates the file; close it also if that fails. `path` must outlive it. *header must
 * have all but `times`. An existing file with another header is an error; otherwise its times
 * are read. For a new file times.length[0] is 0, and esp_sample_file_begin() must follow. */
int esp_sample_file_open(struct esp_sample_file *file, const char *path,
                         struct esp_sample_header *header, char *err, size_t errlen);
int esp_sample_file_begin(struct esp_sample_file *file, const struct esp_sample_header *header,
                          char *err, size_t errlen);
void esp_sample_file_close(struct esp_sample_file *file);

/* Stores the samples of the next piece. */
int esp_sample_file_add(struct esp_sample_file *file, const float *samples, int count,
                        char *err, size_t errlen);

#endif
