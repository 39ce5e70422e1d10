/* model_layers.h - the layers of a model, from the embedding to the logits. */
#ifndef ESP_CUDA_MODEL_LAYERS_H
#define ESP_CUDA_MODEL_LAYERS_H

#include "kernels/cuda/cuda.h"

enum { ESP_CUDA_OWN_ROWS = 64 }; /* products of more rows may use cuBLASLt */

/* Describes a pass, as far as this decides which kernels are launched. */
struct esp_cuda_shape {
    int rows, chunks;
    int keys;       /* if the pass is timed: cache rows of the text and of the pass */
    bool step;      /* a draft step, in a graph */
    bool fc;        /* the residual stream is the output of a draft head's fc */
    bool states;    /* hidden states are returned */
    int head_rows;  /* number of rows whose logits are wanted */
    float *logits;  /* where these logits go, if the rows are adjacent; otherwise NULL */
    size_t stride;  /* numbers between rows of logits */
    int vocabulary; /* logits in a row */
};

/* Launches the kernels of a pass on all GPUs. The block of numbers that they read must have
 * been sent before. */
int esp_cuda_run_layers(struct esp_cuda_cache *c, const struct esp_cuda_shape *s);
/* Launches the kernels that advance the states of recurrent layers without computing rows. */
int esp_cuda_run_states(struct esp_cuda_cache *c);
/* Chooses cuBLASLt's algorithms for all shapes and numbers of rows that may be needed; a shape
 * that several layers have is chosen once. */
int esp_cuda_choose_algorithms(struct esp_cuda_cache *c);

#endif
