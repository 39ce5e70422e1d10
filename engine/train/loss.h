/* loss.h - the losses of EAGLE, HASS and TALF.
 *
 * All three are sums over rows of -sum_v p(v) log q(v), where p is the target's distribution
 * after the tokens of a row and q the draft's ("SALF & TALF", section 2.2 and algorithm 1).
 * EAGLE and HASS add the distance of the features; HASS adds the ten likeliest tokens once more
 * (Zhang et al., "Learning Harmonized Representations for Speculative Sampling", 2025). Their
 * rows differ: EAGLE uses the text, HASS the text again with the draft's own features, TALF a
 * tree grown by the target.
 */
#ifndef ESP_TRAIN_LOSS_H
#define ESP_TRAIN_LOSS_H

#include "engine/train/operations.h"

/* Weights of the parts of a loss. */
struct esp_loss_weights {
    double cls, reg, distil;
    int top;     /* tokens of the distillation */
    bool smooth; /* the distance of the features is smooth L1 */
};

enum { ESP_LOSS_DEPTHS = 16 };

/* The results of a loss, summed over rows by their depth below the text. */
struct esp_loss_sums {
    double rows[ESP_LOSS_DEPTHS];
    double loss[ESP_LOSS_DEPTHS];    /* all parts, with their weights */
    double gap[ESP_LOSS_DEPTHS];     /* KL divergence of q from p */
    double overlap[ESP_LOSS_DEPTHS]; /* sum of min(p, q): the acceptance probability */
    double agrees[ESP_LOSS_DEPTHS];  /* the same likeliest token */
};

struct esp_loss_input {
    int rows, vocabulary;
    const float *weight;  /* (rows) in the gradient */
    const int32_t *depth; /* (rows) */
    int hidden;           /* of the draft */
    const float *out;     /* (rows, hidden) the draft's last hidden states */
    const float *head;    /* (vocabulary, hidden) the matrix from hidden states to logits */
    int target_hidden;
    const float *feature;     /* (rows, target_hidden) the target's, for the same tokens */
    const float *target_head; /* (vocabulary, target_hidden) */
    float *d_out;             /* (rows, hidden) adds the gradient; NULL: only sums */
    float *d_head;            /* (vocabulary, hidden) adds the gradient; or NULL */
};

struct esp_loss_memory; /* logits of some rows */

int esp_loss_open(struct esp_loss_memory **memory, int vocabulary, char *err, size_t errlen);
void esp_loss_close(struct esp_loss_memory *memory);

/* Adds to *sums. ESP_E_NUMERIC if a logit is not a number. */
int esp_loss(struct esp_workers *workers, struct esp_loss_memory *memory,
             const struct esp_loss_weights *weights, const struct esp_loss_input *input,
             struct esp_loss_sums *sums);

#endif
