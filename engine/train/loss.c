/* loss.c - computes the losses of EAGLE, HASS and TALF; see loss.h.
 *
 * The logits of all rows would take more memory than everything else, so rows are processed in
 * chunks. For each chunk, this file computes the logits of both models and the loss. It then
 * computes the gradients of the draft's hidden states and of its LM head.
 */
#include "engine/train/loss.h"

#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/status.h"

enum { CHUNK = 512 };

struct esp_loss_memory {
    int vocabulary;
    float *draft, *target; /* (CHUNK, vocabulary) */
    struct esp_soft_result result[CHUNK];
    double distance[CHUNK];
};

int esp_loss_open(struct esp_loss_memory **memory, int vocabulary, char *err, size_t errlen)
{
    struct esp_loss_memory *m = calloc(1, sizeof *m);
    *memory = m;
    if (m) {
        m->vocabulary = vocabulary;
        m->draft = esp_cpu_alloc((size_t)vocabulary, CHUNK * sizeof *m->draft);
        m->target = esp_cpu_alloc((size_t)vocabulary, CHUNK * sizeof *m->target);
    }
    if (m && m->draft && m->target)
        return ESP_OK;
    esp_loss_close(m);
    *memory = NULL;
    return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for logits of %d tokens",
                    vocabulary);
}

void esp_loss_close(struct esp_loss_memory *m)
{
    if (!m)
        return;
    esp_cpu_free(m->draft);
    esp_cpu_free(m->target);
    free(m);
}

struct chunk {
    const struct esp_cpu_gradients *gradients;
    struct esp_loss_memory *m;
    const struct esp_loss_weights *weights;
    const struct esp_loss_input *in;
    int first; /* first row of the chunk in the input */
    bool failed[CHUNK];
};

static void rows_part(void *arg, int begin, int end, float *scratch)
{
    struct chunk *c = arg;
    const struct esp_loss_input *in = c->in;
    const size_t wide = (size_t)in->vocabulary;
    (void)scratch;
    for (int i = begin; i < end; i++) {
        const size_t row = (size_t)(c->first + i);
        const struct esp_soft_loss how = {(float)c->weights->cls, (float)c->weights->distil,
                                          c->weights->top, in->weight[row]};
        c->failed[i] = c->gradients->soft_loss(c->m->draft + (size_t)i * wide,
                                               c->m->target + (size_t)i * wide, in->vocabulary,
                                               &how, &c->m->result[i]) < 0;
        c->m->distance[i] = 0.0;
        if (c->weights->reg > 0.0 && in->d_out)
            c->m->distance[i] = c->gradients->regression(
                in->d_out + row * (size_t)in->hidden, in->out + row * (size_t)in->hidden,
                in->feature + row * (size_t)in->hidden, in->hidden, c->weights->smooth,
                (float)c->weights->reg * in->weight[row]);
    }
}

static int add_up(const struct chunk *c, int count, struct esp_loss_sums *sums)
{
    for (int i = 0; i < count; i++) {
        const int depth = c->in->depth[c->first + i];
        const struct esp_soft_result *r = &c->m->result[i];
        if (c->failed[i])
            return ESP_E_NUMERIC;
        sums->rows[depth] += 1.0;
        sums->loss[depth] += r->loss + c->weights->reg * c->m->distance[i];
        sums->gap[depth] += r->entropy_gap;
        sums->overlap[depth] += r->overlap;
        sums->agrees[depth] += r->agrees;
    }
    return ESP_OK;
}

int esp_loss(struct esp_workers *w, struct esp_loss_memory *m,
             const struct esp_loss_weights *weights, const struct esp_loss_input *in,
             struct esp_loss_sums *sums)
{
    struct chunk *c = calloc(1, sizeof *c);
    int status = c ? ESP_OK : ESP_E_MEMORY;
    for (int first = 0; first < in->rows && status == ESP_OK; first += CHUNK) {
        const int count = in->rows - first < CHUNK ? in->rows - first : CHUNK;
        const size_t row = (size_t)first;
        *c = (struct chunk){esp_workers_gradients(w), m, weights, in, first, {false}};
        esp_linear(w, m->target, in->feature + row * (size_t)in->target_hidden, in->target_head,
                   NULL, count, in->target_hidden, in->vocabulary, false);
        esp_linear(w, m->draft, in->out + row * (size_t)in->hidden, in->head, NULL, count,
                   in->hidden, in->vocabulary, false);
        esp_workers_share(w, count, rows_part, c);
        status = add_up(c, count, sums);
        if (in->d_out)
            esp_linear_back(w, in->d_out + row * (size_t)in->hidden, in->d_head, NULL, m->draft,
                            in->out + row * (size_t)in->hidden, in->head, count, in->hidden,
                            in->vocabulary, true);
    }
    free(c);
    return status;
}
