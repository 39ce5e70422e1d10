/* adamw.h - AdamW (Loshchilov and Hutter 2019). */
#ifndef ESP_ADAMW_H
#define ESP_ADAMW_H

#include <stddef.h>

struct esp_adamw {
    double rate, beta1, beta2, epsilon, decay;
    size_t count;
    int steps;
    double *mean, *square; /* (count) moments of the gradient */
};

/* Takes memory for `count` numbers and sets the usual values: rate 1e-3, betas .9 and .999,
 * epsilon 1e-8, decay .01. Returns 0 or ESP_E_MEMORY. */
int esp_adamw_open(struct esp_adamw *adam, size_t count);
void esp_adamw_close(struct esp_adamw *adam);

/* One step: weights (count) move against gradient (count). */
void esp_adamw_step(struct esp_adamw *adam, double *weights, const double *gradient);

#endif
