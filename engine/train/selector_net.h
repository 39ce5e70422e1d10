/* selector_net.h - the selector's network in double precision: forward, backward and its loss.
 *
 * delayed-tree-expansion, sec. 6 and app. E. A batch goes forward, the loss gives the gradient
 * of the logits, and a pass backward gives that of the weights.
 */
#ifndef ESP_SELECTOR_NET_H
#define ESP_SELECTOR_NET_H

#include "engine/selector/selector.h"
#include "engine/support/rng.h"

/* What a batch of `rows` needs; see selector_net.c for the shapes. */
struct esp_selector_net {
    struct esp_selector_shape shape;
    size_t count;                        /* numbers */
    int capacity;                        /* rows */
    int width, joined_width, wide_width; /* of the layers: see selector.h */
    int steps;                           /* taken */
    void *memory;                        /* of all that follows */
    double *weights, *gradient;          /* (count) */
    double *mean, *square;               /* (count) AdamW's moments of the gradient */
    double *state[ESP_SELECTOR_STATES];  /* (capacity, hidden[i]) inputs */
    double *scalars;                     /* (capacity, ESP_SCALARS) standardised inputs */
    double *logits, *logit_gradient;     /* (capacity, ESP_ACTIONS) */
    /* Of the last pass. (ESP_SELECTOR_STATES, capacity, width) before LayerNorm and before its
     * gain; (ESP_SELECTOR_STATES, capacity): */
    double *projected, *normal, *deviation;
    double *joined;                           /* (capacity, joined) */
    double *wide_in, *wide;                   /* (capacity, wide) before and after GELU */
    double *narrow_in, *narrow;               /* (capacity, ESP_SELECTOR_NARROW_WIDTH) */
    double *wide_kept, *narrow_kept;          /* the factors of dropout */
    double *turned;                           /* scratch: a transposed matrix */
    double *back, *back_narrow, *back_joined; /* gradients on the way */
};

/* Takes memory and sets the weights to random numbers (uniform, +-1 / sqrt(inputs)), gains to
 * 1. Returns 0 or ESP_E_MEMORY. */
int esp_selector_net_open(struct esp_selector_net *net, const struct esp_selector_shape *shape,
                          int capacity, uint64_t seed);
void esp_selector_net_close(struct esp_selector_net *net);

/* Inputs of `rows` rows become logits. With `rng`, dropout of a tenth; NULL: none. */
void esp_selector_net_forward(struct esp_selector_net *net, int rows, struct esp_rng *rng);

/* logit_gradient of the rows of the last forward pass becomes `gradient`, which is overwritten.
 */
void esp_selector_net_backward(struct esp_selector_net *net, int rows);

/* A step of AdamW (Loshchilov and Hutter 2019) against `gradient`, with betas .9 and .999,
 * epsilon 1e-8 and decay .01. */
void esp_selector_net_step(struct esp_selector_net *net, double rate);

/* What the loss knows of a row: by action, E^ and T^. Actions with E^ = 0 cannot be taken. */
struct esp_selector_goal {
    const float *expected, *seconds; /* (ESP_ACTIONS) */
    double base;                     /* tokens per second of the static action */
};

struct esp_selector_loss {
    double lambda, alpha; /* weight of the penalty, and the share of rows that it is about */
    double entropy;       /* weight of the policy's entropy, which is taken off; 0: none */
};

enum { ESP_SELECTOR_BATCH = 256 }; /* rows of a batch at most */

/* Equation 12 (without entropy): mean of -log r, and lambda times the mean, over the worst
 * share alpha of the rows, of max(1 - r, 0)^2; r = (sum pi E^ / sum pi T^) / base. Sets
 * `gradient` (rows, ESP_ACTIONS) unless it is NULL, and returns the loss.
 * rows: 1..ESP_SELECTOR_BATCH. */
double esp_selector_loss(const struct esp_selector_loss *loss, const double *logits,
                         const struct esp_selector_goal *goals, int rows, double *gradient);

#endif
