/* network_reference.h - a simple implementation of the network that engine/train trains. It
 * computes one row after another, in double precision, directly from the formulas, and shares
 * no code with engine/train. This file also declares a small batch of rows for the tests. */
#ifndef ESP_NETWORK_REFERENCE_H
#define ESP_NETWORK_REFERENCE_H

#include "engine/train/network.h"
#include "engine/train/loss.h"

enum { REFERENCE_ROWS = 64, REFERENCE_VOCABULARY = 37, REFERENCE_HIDDEN = 24 };

/* A batch of two texts, with 6 and 4 tokens. Every second token is the root of a tree. A root
 * has two children, and each child has one child. */
struct reference_batch {
    struct esp_training_rows rows;
    int32_t token[REFERENCE_ROWS], position[REFERENCE_ROWS], parent[REFERENCE_ROWS];
    int32_t first[REFERENCE_ROWS], seen[REFERENCE_ROWS], extra[REFERENCE_ROWS * 2];
    int32_t depth[REFERENCE_ROWS];
    float weight[REFERENCE_ROWS];
    float feature[REFERENCE_ROWS * REFERENCE_HIDDEN]; /* the input of pass 0 */
    /* the desired output of all rows */
    float target_feature[REFERENCE_ROWS * REFERENCE_HIDDEN];
};

/* Makes the batch. If `features` is set, the rows are divided into passes, one for each depth.
 * Otherwise there is one pass, in which the rows of a text's trees follow the rows of the text.
 */
void reference_batch_make(struct reference_batch *batch, bool features);

void reference_shape(struct esp_network_shape *shape, bool features, bool bias, bool tied);

/* Sets all parameters to random values. */
void reference_randomise(struct esp_parameters *parameters, unsigned long long seed);

/* Returns the weighted loss of the batch. `value` (total) has the values of all parameters. */
double reference_loss(const struct esp_network *network, const double *value,
                      const struct reference_batch *batch, const struct esp_loss_input *input,
                      const struct esp_loss_weights *weights);

#endif
