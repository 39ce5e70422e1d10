/* parameters.h - stores trained weights with their gradients and AdamW's moments, and runs the
 * steps of AdamW.
 *
 * There is one array for all values, one for all gradients and one for each kind of moment. A
 * step or a sum of squares therefore processes whole arrays. Values and moments are next to
 * each other, so that a checkpoint can copy all of them together. A parameter begins at a
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
    char name[ESP_PARAMETER_NAME]; /* name of the tensor in model.safetensors */
    int rows, columns;             /* (out, in); a vector has columns = 0 */
    size_t offset;                 /* index of its first float in each of the arrays below */
};

struct esp_parameters {
    struct esp_parameter *list;
    int count, room;
    bool incomplete;       /* true: a parameter could not be added for lack of memory */
    size_t total;          /* number of floats in each array */
    float *value;          /* (total) the weights; the memory of all four arrays begins here */
    float *first, *second; /* (total) AdamW's running means of the gradient and its square */
    float *gradient;       /* (total) */
};

/* Adds a parameter and returns its index. If there is no memory, returns -1, and
 * esp_parameters_open() fails later. Add all parameters before calling esp_parameters_open().
 */
int esp_parameters_add(struct esp_parameters *p, const char *name, int rows, int columns);
/* Allocates the arrays, filled with zeros. */
int esp_parameters_open(struct esp_parameters *p, char *err, size_t errlen);
void esp_parameters_close(struct esp_parameters *p);

/* The first function returns the values of a parameter, and the second returns its gradient.
 * `number` is the index of the parameter. If it is -1, both functions return NULL. */
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

/* Holds the settings of AdamW, with a warm-up, a cosine schedule and clipped gradients. */
struct esp_optimizer {
    double rate; /* the largest learning rate */
    double beta1, beta2, epsilon, decay;
    double clip;           /* longer gradients are scaled down to this length; 0: not clipped */
    int64_t warmup, steps; /* the rate rises for `warmup` steps and falls to 0 at `steps` */
};

/* Returns the learning rate of a step (0..steps-1): it rises in a straight line, then falls
 * like half a period of a cosine (Loshchilov and Hutter, "SGDR", 2017). */
double esp_learning_rate(const struct esp_optimizer *optimizer, int64_t step);

/* Performs step number `step` (from 0): updates the values from the gradients and sets the
 * gradients to zero. Returns the length of the gradient before clipping. */
double esp_optimizer_step(const struct esp_optimizer *optimizer, struct esp_workers *workers,
                          struct esp_parameters *parameters, int64_t step);

#endif
