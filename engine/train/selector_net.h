/* selector_net.h - runs the selector's network in double precision, forward and backward, and
 * computes the loss.
 *
 * See delayed-tree-expansion, sec. 6 and app. E. For a batch, the forward function computes
 * logits, the loss gives the gradient of the logits, and the backward function computes the
 * gradient of the weights.
 */
#ifndef ESP_SELECTOR_NET_H
#define ESP_SELECTOR_NET_H

#include "engine/selector/selector.h"
#include "engine/support/rng.h"

/* Holds the weights of a network, and its activations and gradients for one batch.
 * selector_net.c has the formulas. */
struct esp_selector_net {
    struct esp_selector_shape shape;
    size_t count;                        /* number of weights */
    int capacity;                        /* maximum number of rows in a batch */
    int width, joined_width, wide_width; /* widths of the layers: see selector.h */
    int steps;                           /* number of steps so far */
    void *memory;                        /* one allocation with all arrays below */
    double *weights, *gradient;          /* (count) */
    double *mean, *square;               /* (count) AdamW's moments of the gradient */
    double *state[ESP_SELECTOR_STATES];  /* inputs: (capacity, hidden[i]) hidden states */
    double *scalars;                     /* (capacity, ESP_SCALARS) inputs, standardised */
    double *logits, *logit_gradient;     /* (capacity, ESP_ACTIONS) */
    /* Results of the last forward pass. projected, normal: (ESP_SELECTOR_STATES, capacity,
     * width) the input of LayerNorm, and its output before the gain; deviation:
     * (ESP_SELECTOR_STATES, capacity). */
    double *projected, *normal, *deviation;
    double *joined;                           /* (capacity, joined) */
    double *wide_in, *wide;                   /* (capacity, wide) before and after GELU */
    double *narrow_in, *narrow;               /* (capacity, ESP_SELECTOR_NARROW_WIDTH) */
    double *wide_kept, *narrow_kept;          /* factors of dropout, shaped like wide and
                                                 narrow */
    double *turned;                           /* scratch: a transposed matrix */
    double *back, *back_narrow, *back_joined; /* gradients of wide, narrow and joined */
};

/* Allocates memory and initialises the weights: gains to 1, all other weights to uniform
 * random numbers up to +-1 / sqrt(inputs). Returns 0 or ESP_E_MEMORY. */
int esp_selector_net_open(struct esp_selector_net *net, const struct esp_selector_shape *shape,
                          int capacity, uint64_t seed);
void esp_selector_net_close(struct esp_selector_net *net);

/* Computes the logits of `rows` rows from their inputs. If `rng` is not NULL, dropout sets a
 * tenth of the activations to 0. */
void esp_selector_net_forward(struct esp_selector_net *net, int rows, struct esp_rng *rng);

/* Computes `gradient` from logit_gradient, for the rows of the last forward pass. */
void esp_selector_net_backward(struct esp_selector_net *net, int rows);

/* Performs an AdamW step (Loshchilov and Hutter 2019) with the learning rate `rate`, betas .9
 * and .999, epsilon 1e-8 and decay .01. */
void esp_selector_net_step(struct esp_selector_net *net, double rate);

/* Describes one row of a batch for the loss: E^ (expected tokens) and T^ (seconds) of each
 * action. Actions with E^ = 0 cannot be taken. */
struct esp_selector_goal {
    const float *expected, *seconds; /* (ESP_ACTIONS) */
    double base;                     /* tokens per second of the static action */
};

struct esp_selector_loss {
    double lambda, alpha; /* lambda: weight of the penalty; alpha: fraction of penalised rows */
    double entropy;       /* weight of the policy's entropy; the entropy term is subtracted */
};

enum { ESP_SELECTOR_BATCH = 256 }; /* maximum number of rows in a batch */

/* Returns the loss of equation 12 minus the entropy term. With r = (sum pi E^ / sum pi T^) /
 * base, equation 12 is the mean of -log r plus lambda times the mean of max(1 - r, 0)^2 over
 * the worst rows (a fraction alpha of all). Sets `gradient` (rows, ESP_ACTIONS) unless it is
 * NULL. rows: 1..ESP_SELECTOR_BATCH. */
double esp_selector_loss(const struct esp_selector_loss *loss, const double *logits,
                         const struct esp_selector_goal *goals, int rows, double *gradient);

#endif
