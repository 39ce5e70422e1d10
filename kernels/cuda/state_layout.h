/* state_layout.h - defines how the states of recurrent layers are stored on the device.
 *
 * A block of mixer.cu computes ESP_STATE_COLUMNS value columns of a head. Each of its threads
 * has one column in registers, but only every ESP_STATE_SLICES-th key of this column. In
 * memory, the j-th numbers of all threads of a block are adjacent: (layer, head, block, keys of
 * a thread, thread).
 */
#ifndef ESP_CUDA_STATE_LAYOUT_H
#define ESP_CUDA_STATE_LAYOUT_H

#include "kernels/cuda/cuda.h"

enum {
    ESP_STATE_COLUMNS = 16,
    ESP_STATE_SLICES = 8,
    ESP_STATE_THREADS = ESP_STATE_COLUMNS * ESP_STATE_SLICES,
    ESP_STATE_LEVELS = 33 /* even a plan of 2^31 groups has fewer levels */
};

/* Returns how many numbers are stored for the input of a row (struct esp_cuda_states). */
static inline size_t esp_cuda_input_stride(const struct esp_cuda_states *s)
{
    return s->width + 2 * s->rates + s->key_values + s->values;
}

#endif
