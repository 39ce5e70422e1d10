/* adamw.c - steps of Adam whose weight decay is no part of the gradient; see adamw.h. */
#include "engine/train/adamw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"

int esp_adamw_open(struct esp_adamw *adam, size_t count)
{
    *adam = (struct esp_adamw){1e-3, 0.9, 0.999, 1e-8, 0.01, .count = count};
    adam->mean = calloc(count, sizeof *adam->mean);
    adam->square = calloc(count, sizeof *adam->square);
    if (adam->mean && adam->square)
        return ESP_OK;
    esp_adamw_close(adam);
    return ESP_E_MEMORY;
}

void esp_adamw_close(struct esp_adamw *adam)
{
    free(adam->mean);
    free(adam->square);
    memset(adam, 0, sizeof *adam);
}

void esp_adamw_step(struct esp_adamw *adam, double *weights, const double *gradient)
{
    adam->steps++;
    const double unbiased1 = 1 - pow(adam->beta1, adam->steps);
    const double unbiased2 = 1 - pow(adam->beta2, adam->steps);
    for (size_t i = 0; i < adam->count; i++) {
        const double g = gradient[i];
        adam->mean[i] += (1 - adam->beta1) * (g - adam->mean[i]);
        adam->square[i] += (1 - adam->beta2) * (g * g - adam->square[i]);
        const double step =
            adam->mean[i] / unbiased1 / (sqrt(adam->square[i] / unbiased2) + adam->epsilon);
        weights[i] -= adam->rate * (step + adam->decay * weights[i]);
    }
}
