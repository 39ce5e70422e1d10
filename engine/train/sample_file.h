/* sample_file.h - samples on disk, so that making them can be interrupted at any time.
 *
 * A header that says what they belong to, then one block for each piece. A block cut at the end
 * of the file is dropped and made again.
 */
#ifndef ESP_SAMPLE_FILE_H
#define ESP_SAMPLE_FILE_H

#include <stdio.h>

#include "engine/train/selector_samples.h"

struct esp_sample_header {
    char magic[8];
    uint64_t pair, text, seed; /* hashes of models and text */
    int32_t hidden[ESP_SELECTOR_STATES], rules, context;
    char names[128]; /* of the verifiers */
    struct esp_pass_times times;
};

struct esp_sample_file {
    FILE *file;
    int pieces; /* complete in the file */
    /* All samples, and the piece each belongs to. */
    float *samples;
    int *piece;
    int count, room;
    size_t size; /* floats of a sample */
};

/* Opens or creates the file. *header must have all but `times`; an existing file that belongs
 * to something else is an error, and one that does not gives its times (else times.length[0] is
 * 0, and esp_sample_file_begin() must follow). */
int esp_sample_file_open(struct esp_sample_file *file, const char *path,
                         struct esp_sample_header *header, char *err, size_t errlen);
int esp_sample_file_begin(struct esp_sample_file *file, const struct esp_sample_header *header);
void esp_sample_file_close(struct esp_sample_file *file);

/* Stores the samples of the next piece. */
int esp_sample_file_add(struct esp_sample_file *file, const float *samples, int count);

#endif
