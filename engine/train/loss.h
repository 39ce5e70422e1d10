/* loss.h - computes the losses of EAGLE, HASS and TALF.
 *
 * All three losses sum -sum_v p(v) log q(v) over rows ("SALF & TALF", section 2.2 and algorithm
 * 1). Here p is the target's distribution after the tokens of a row, and q is the draft's
 * distribution. EAGLE and HASS add the distance of the features. HASS counts the ten likeliest
 * tokens twice (Zhang et al., "Learning Harmonized Representations for Speculative Sampling",
 * 2025). The three losses also differ in their rows. EAGLE has the rows of the text. HASS adds
 * the text again, with the draft's own features. TALF adds trees that the target grew.
 */
#ifndef ESP_TRAIN_LOSS_H
#define ESP_TRAIN_LOSS_H

#include "engine/train/operations.h"

/* Holds the weight of each term of a loss. cls: -sum p log q over all tokens. reg: the distance
 * of the features. distil: -sum p log q over the likeliest tokens only, in addition to the
 * first term. */
struct esp_loss_weights {
    double cls, reg, distil;
    int top;     /* number of likeliest tokens in `distil` */
    bool smooth; /* true: the distance of the features is smooth L1; false: L1 */
};

enum { ESP_LOSS_DEPTHS = 16 };

/* Holds the results of a loss: sums over the rows at each depth below the text. */
struct esp_loss_sums {
    double rows[ESP_LOSS_DEPTHS];    /* number of rows */
    double loss[ESP_LOSS_DEPTHS];    /* all terms, with their weights */
    double gap[ESP_LOSS_DEPTHS];     /* KL divergence of q from p */
    double overlap[ESP_LOSS_DEPTHS]; /* sum of min(p, q): the acceptance probability */
    double agrees[ESP_LOSS_DEPTHS];  /* number of rows in which draft and target have the same
                                        likeliest token */
};

struct esp_loss_input {
    int rows, vocabulary;
    const float *weight;  /* (rows) weight of each row in the gradient */
    const int32_t *depth; /* (rows) depth below the text */
    int hidden;           /* hidden size of the draft */
    const float *out;     /* (rows, hidden) the draft's last hidden states */
    const float *head;    /* (vocabulary, hidden) the draft's LM head */
    int target_hidden;
    const float *feature;     /* (rows, target_hidden) the target's states for the same
                                 tokens */
    const float *target_head; /* (vocabulary, target_hidden) the target's LM head */
    float *d_out;             /* (rows, hidden) the gradient is added to this; NULL: only the
                                 sums are computed */
    float *d_head;            /* (vocabulary, hidden) the gradient is added to this; or NULL */
};

struct esp_loss_memory; /* memory for the logits of one chunk of rows */

int esp_loss_open(struct esp_loss_memory **memory, int vocabulary, char *err, size_t errlen);
void esp_loss_close(struct esp_loss_memory *memory);

/* Computes the loss of all rows and its gradients, and adds the results to *sums.
 * Returns ESP_E_NUMERIC if a logit is not a number. */
int esp_loss(struct esp_workers *workers, struct esp_loss_memory *memory,
             const struct esp_loss_weights *weights, const struct esp_loss_input *input,
             struct esp_loss_sums *sums);

#endif
