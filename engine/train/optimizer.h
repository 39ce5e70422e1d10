/* optimizer.h - AdamW with a warm-up, a cosine schedule and clipped gradients. */
#ifndef ESP_TRAIN_OPTIMIZER_H
#define ESP_TRAIN_OPTIMIZER_H

#include <stdint.h>

#include "engine/train/operations.h"
#include "engine/train/parameters.h"

struct esp_optimizer {
    double rate; /* the largest learning rate */
    double beta1, beta2, epsilon, decay;
    double clip;           /* largest length of the gradient; 0: any */
    int64_t warmup, steps; /* the rate rises for `warmup` steps and falls to 0 at `steps` */
};

/* The learning rate of step 0..steps-1: a straight line up, then half a cosine down (Loshchilov
 * and Hutter, "SGDR", 2017). */
double esp_learning_rate(const struct esp_optimizer *optimizer, int64_t step);

/* Changes the values by the gradients, as step number `step` (from 0), and zeroes the
 * gradients. Returns the length of the gradient before clipping. */
double esp_optimizer_step(const struct esp_optimizer *optimizer, struct esp_workers *workers,
                          struct esp_parameters *parameters, int64_t step);

#endif
