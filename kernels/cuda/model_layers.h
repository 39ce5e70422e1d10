/* model_layers.h - launches the kernels for all layers of a model, from the embedding to the
 * logits. */
#ifndef ESP_CUDA_MODEL_LAYERS_H
#define ESP_CUDA_MODEL_LAYERS_H

#include "kernels/cuda/cuda.h"

enum { ESP_CUDA_OWN_ROWS = 64 }; /* only products of more rows can use cuBLASLt */

/* Describes the properties of a pass that decide which kernels are launched. */
struct esp_cuda_shape {
    int rows, chunks;
    int keys;       /* number of cache rows, including the rows of the pass; only for timing */
    bool step;      /* the pass is a draft step in a graph */
    bool fc;        /* the residual stream is the output of a draft head's fc */
    bool states;    /* hidden states are returned */
    int head_rows;  /* number of rows whose logits are wanted */
    float *logits;  /* address for these logits, if the rows are adjacent; otherwise NULL */
    size_t stride;  /* distance between two rows of logits, in floats */
    int vocabulary; /* number of logits in a row */
};

/* Launches the kernels of a pass on all GPUs. The caller must have sent the numbers of the pass
 * (struct esp_cuda_pass) to the device. */
int esp_cuda_run_layers(struct esp_cuda_cache *c, const struct esp_cuda_shape *s);
/* Launches the kernels that advance the states of recurrent layers without computing rows. */
int esp_cuda_run_states(struct esp_cuda_cache *c);
/* Chooses algorithms of cuBLASLt for all shapes of matrices and all numbers of rows that can
 * occur. If several layers have the same shape, the algorithms are chosen only once. */
int esp_cuda_choose_algorithms(struct esp_cuda_cache *c);

#endif
