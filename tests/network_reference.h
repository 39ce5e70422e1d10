/* network_reference.h - the network that training trains, in double and one row after the
 * other, straight from the formulas; it shares no code with engine/train. And a small batch for
 * it. */
#ifndef ESP_NETWORK_REFERENCE_H
#define ESP_NETWORK_REFERENCE_H

#include "engine/train/network.h"
#include "engine/train/loss.h"

enum { REFERENCE_ROWS = 64, REFERENCE_VOCABULARY = 37, REFERENCE_HIDDEN = 24 };

/* Two texts of 6 and 4 tokens, and on every second token a tree with two children of the root
 * and a child of each. */
struct reference_batch {
    struct esp_training_rows rows;
    int32_t token[REFERENCE_ROWS], position[REFERENCE_ROWS], parent[REFERENCE_ROWS];
    int32_t first[REFERENCE_ROWS], seen[REFERENCE_ROWS], extra[REFERENCE_ROWS * 2];
    int32_t depth[REFERENCE_ROWS];
    float weight[REFERENCE_ROWS];
    float feature[REFERENCE_ROWS * REFERENCE_HIDDEN];        /* what pass 0 reads */
    float target_feature[REFERENCE_ROWS * REFERENCE_HIDDEN]; /* what all rows should give */
};

/* With features: in passes. Without: the rows of a text and its trees one after the other. */
void reference_batch_make(struct reference_batch *batch, bool features);

void reference_shape(struct esp_network_shape *shape, bool features, bool bias, bool tied);

/* Random values for all parameters. */
void reference_randomise(struct esp_parameters *parameters, unsigned long long seed);

/* The weighted loss of the batch where the parameters have the values `value` (total). */
double reference_loss(const struct esp_network *network, const double *value,
                      const struct reference_batch *batch, const struct esp_loss_input *input,
                      const struct esp_loss_weights *weights);

#endif
