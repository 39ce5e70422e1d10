/* logits.cu - scales (Granite) and caps (Gemma 2) logits, and moves the logits of draft heads
 * that have a smaller vocabulary to the columns of their tokens. */
#include "kernels/cuda/cuda.h"

enum { THREADS = 256, COLUMNS = 4 * THREADS };

struct logits_args {
    const float *outputs; /* (rows, outputs_width); NULL: logits need not move */
    size_t outputs_width;
    const int32_t *output_of; /* (vocabulary) the token's column of `outputs`, or -1 */
    int vocabulary;
    float scale, cap;
};

/* Scales, caps and moves logits. Grid: (rows, pieces of the columns). If logits are changed in
 * place, columns beyond the model's vocabulary are not written; otherwise the last blocks write
 * them, too. */
static __global__ void logits_kernel(struct esp_cuda_arrays at, struct logits_args a)
{
    if ((int)blockIdx.x >= at.pass->wanted)
        return;
    float *row = at.pass->logits + at.wanted_at[blockIdx.x] * at.pass->logits_stride;
    const float *outputs = a.outputs ? a.outputs + blockIdx.x * a.outputs_width : NULL;
    const int width = at.pass->logits_vocabulary;
    const bool last = blockIdx.y == gridDim.y - 1;
    int end = last ? a.vocabulary : (int)(blockIdx.y + 1) * COLUMNS;
    end = outputs && last ? width : end < width ? end : width;
    for (int i = blockIdx.y * COLUMNS + threadIdx.x; i < end; i += THREADS) {
        const int output = !outputs ? i : i < a.vocabulary ? a.output_of[i] : -1;
        if (output < 0) {
            row[i] = -1e30f;
            continue;
        }
        const float value = (outputs ? outputs[output] : row[i]) * a.scale;
        row[i] = a.cap > 0.0f ? a.cap * tanhf(value / a.cap) : value;
    }
}

void esp_cuda_logits(struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const struct esp_model_desc *d = w->base.desc;
    const int tokens = esp_model_desc_tokens(d);
    const struct logits_args a = {c->outputs,
                                  c->outputs_width,
                                  w->output_of,
                                  tokens,
                                  d->logit_scale != 0 ? d->logit_scale : 1.0f,
                                  d->logit_cap};
    ESP_LAUNCH(logits_kernel, dim3(rows, (tokens + COLUMNS - 1) / COLUMNS),
               dim3(THREADS), 0, esp_cuda_backend_of(c)->stream, c->at, a);
}
