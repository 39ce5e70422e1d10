/* logits.cu - logits as the model's own product gives them, scaled (Granite) and capped (Gemma
 * 2). */
#include "kernels/cuda/cuda.h"

enum { THREADS = 256, COLUMNS = 4 * THREADS };

/* Block (row, piece of the columns). Columns beyond the model's are left alone. */
static __global__ void logits_kernel(struct esp_cuda_arrays at, int outputs, float scale,
                                     float cap)
{
    if ((int)blockIdx.x >= at.pass->wanted)
        return;
    float *row = at.pass->logits + at.wanted_at[blockIdx.x] * at.pass->logits_stride;
    const int begin = blockIdx.y * COLUMNS + threadIdx.x;
    const int own = outputs < at.pass->logits_vocabulary ? outputs : at.pass->logits_vocabulary;
    for (int i = begin; i < own && i < (int)(blockIdx.y + 1) * COLUMNS; i += THREADS) {
        const float value = row[i] * scale;
        row[i] = cap > 0.0f ? cap * tanhf(value / cap) : value;
    }
}

void esp_cuda_logits(struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    const struct esp_model_desc *d = w->desc;
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    ESP_LAUNCH(logits_kernel, dim3(rows, (d->outputs + COLUMNS - 1) / COLUMNS), dim3(THREADS),
               0, stream, c->at, d->outputs, d->logit_scale != 0 ? d->logit_scale : 1.0f,
               d->logit_cap);
}
