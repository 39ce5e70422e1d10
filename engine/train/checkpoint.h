/* checkpoint.h - saves the state of a training run to a file and loads it.
 *
 * The state is the weights, AdamW's moments, the number of steps done and the losses so far.
 * The next step depends only on these and on the settings, which the fingerprint identifies,
 * so resuming from a checkpoint gives bit-identical results.
 */
#ifndef ESP_TRAIN_CHECKPOINT_H
#define ESP_TRAIN_CHECKPOINT_H

#include <stdint.h>

#include "engine/train/parameters.h"

struct esp_progress_state {
    int64_t step, steps; /* step: number of steps done; steps: total number */
    float *loss;         /* (steps) loss of each step so far */
};

/* Writes the file. If that fails, no incomplete file is left. */
int esp_checkpoint_write(const char *path, uint64_t fingerprint,
                         const struct esp_parameters *parameters,
                         const struct esp_progress_state *state, char *err, size_t errlen);

/* Reads the file into parameters and a state that have the same sizes. Returns ESP_E_MISMATCH
 * if the file belongs to another training run, and ESP_E_FORMAT if it is damaged. */
int esp_checkpoint_read(const char *path, uint64_t fingerprint,
                        struct esp_parameters *parameters, struct esp_progress_state *state,
                        char *err, size_t errlen);

#endif
