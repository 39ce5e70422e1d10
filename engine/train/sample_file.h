/* sample_file.h - stores the selector's samples in a file, so that sampling can be interrupted
 * at any time.
 *
 * The file has a header, which identifies models, text and seed, then one block for each piece
 * of the text. An incomplete block at the end of the file is dropped and sampled again.
 */
#ifndef ESP_SAMPLE_FILE_H
#define ESP_SAMPLE_FILE_H

#include "engine/train/selector_samples.h"

struct esp_sample_header {
    char magic[8];
    uint64_t pair, text, seed; /* pair: hash of the models; text: hash of the text */
    struct esp_sample_layout layout;
    int32_t context;
    char names[128]; /* names of the verifiers */
    struct esp_pass_times times;
};

struct esp_sample_file {
    int file; /* -1 means not open */
    const char *path;
    int pieces; /* number of pieces that are complete in the file */
    /* All samples, and for each sample the index of its piece. */
    float *samples;
    int *piece;
    int count, room;
    size_t size; /* number of floats per sample */
};

/* Opens or creates the file; close it even if this fails. `path` must outlive *file. The
 * caller sets all of *header except magic and `times`. If the file exists, its header must
 * equal *header; then its times are read into *header. For a new file, times.length[0] is set
 * to 0, and the caller must measure the times and call esp_sample_file_begin(). */
int esp_sample_file_open(struct esp_sample_file *file, const char *path,
                         struct esp_sample_header *header, char *err, size_t errlen);
int esp_sample_file_begin(struct esp_sample_file *file, const struct esp_sample_header *header,
                          char *err, size_t errlen);
void esp_sample_file_close(struct esp_sample_file *file);

/* Writes the samples of the next piece to the file and adds them to the samples in memory. */
int esp_sample_file_add(struct esp_sample_file *file, const float *samples, int count,
                        char *err, size_t errlen);

#endif
