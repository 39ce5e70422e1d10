/* dense.c - a single small matrix, packed for the CPU backend's products; see dense.h.
 *
 * Reading the weights takes most of the time. The matrix is used rarely, and after each use the
 * weights of larger matrices displace its weights from the processor's caches. Storing the
 * weights as BF16 halves the time to read them.
 */
#include "kernels/dense.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

struct esp_dense {
    const struct esp_cpu_isa *isa;
    struct esp_packed w;
    void *data;
    float *bias;
};

/* Packs the weights as BF16. Outputs j and j + 16 of a panel share a word; see struct
 * esp_packed. */
static void pack(struct esp_dense *d, const float *weights)
{
    uint16_t *to = d->data;
    for (int c = 0; c < d->w.columns; c++)
        for (int r = 0; r < d->w.rows; r++) {
            const int panel = r / ESP_PANEL, j = r % ESP_PANEL;
            const int at = j < ESP_LANES ? 2 * j : 2 * (j - ESP_LANES) + 1;
            const size_t column = (size_t)panel * (size_t)d->w.columns + (size_t)c;
            esp_quantise(ESP_BF16, &weights[(size_t)c * (size_t)d->w.rows + (size_t)r], 1,
                         &to[column * ESP_PANEL + (size_t)at]);
        }
}

struct esp_dense *esp_dense_open(const float *weights, const float *bias, int inputs,
                                 int outputs)
{
    struct esp_dense *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    const size_t padded = esp_cpu_pad(outputs, ESP_PANEL);
    d->isa = esp_cpu_vectors();
    d->w = (struct esp_packed){.dtype = ESP_BF16,
                               .rows = outputs,
                               .columns = inputs,
                               .panels = (int)(padded / ESP_PANEL)};
    d->w.data = d->data = esp_cpu_alloc(padded * (size_t)inputs, sizeof(uint16_t));
    d->w.bias = d->bias = esp_cpu_alloc(padded, sizeof *d->bias);
    if (!d->data || !d->bias) {
        esp_dense_close(d);
        return NULL;
    }
    memcpy(d->bias, bias, (size_t)outputs * sizeof *bias);
    pack(d, weights);
    return d;
}

void esp_dense_close(struct esp_dense *d)
{
    if (!d)
        return;
    if (d->data)
        esp_cpu_free(d->data);
    if (d->bias)
        esp_cpu_free(d->bias);
    free(d);
}

void esp_dense_apply(const struct esp_dense *d, const float *x, float *y)
{
    const struct esp_matmul product = {
        .in = {(float *)x, (size_t)d->w.columns, NULL}, .y = y, .rows = 1};
    d->isa->matmul(&d->w, 0, d->w.panels, &product);
}
