/* parameters.h - trained weights, with their gradients and AdamW's moments, and its steps.
 *
 * All of one kind are in one array, so that a step and a sum of squares process one array.
 * Values and moments, which a checkpoint keeps, are one after the other. A parameter begins at a
 * multiple of 16 floats; the padding stays zero.
 */
#ifndef ESP_TRAIN_PARAMETERS_H
#define ESP_TRAIN_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/train/operations.h"

enum { ESP_PARAMETER_NAME = 64 };

struct esp_parameter {
    char name[ESP_PARAMETER_NAME]; /* of the tensor in model.safetensors */
    int rows, columns;             /* (out, in); a vector has columns = 0 */
    size_t offset;                 /* in each of the arrays below */
};

struct esp_parameters {
    struct esp_parameter *list;
    int count, room;
    bool incomplete;       /* there was no memory for one */
    size_t total;          /* floats of each array */
    float *value;          /* (total), the beginning of the memory of all four */
    float *first, *second; /* (total) AdamW's running means of the gradient and its square */
    float *gradient;       /* (total) */
};

/* Adds a parameter, before esp_parameters_open(), which fails if there was no memory for one.
 * Returns its number, or -1. */
int esp_parameters_add(struct esp_parameters *p, const char *name, int rows, int columns);
/* Allocates the arrays, zeroed. */
int esp_parameters_open(struct esp_parameters *p, char *err, size_t errlen);
void esp_parameters_close(struct esp_parameters *p);

/* Its values and gradient; NULL for number -1, a missing parameter. */
static inline float *esp_parameter_value(const struct esp_parameters *p, int number)
{
    return number < 0 ? NULL : p->value + p->list[number].offset;
}

static inline float *esp_parameter_gradient(const struct esp_parameters *p, int number)
{
    return number < 0 ? NULL : p->gradient + p->list[number].offset;
}

static inline size_t esp_parameter_size(const struct esp_parameter *p)
{
    return (size_t)p->rows * (size_t)(p->columns > 0 ? p->columns : 1);
}

/* ------------------------------------------------------------------ steps */

/* AdamW with a warm-up, a cosine schedule and clipped gradients. */
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
