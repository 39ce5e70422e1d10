/* selector_features.h - computes the numbers that the selector reads in addition to the hidden
 * states (delayed-tree-expansion, app. E).
 *
 * p and q are the distributions of target and draft after the token before the root, and
 * q_root is the draft's distribution after the root. All of them are tempered in the same way
 * as when the text is sampled.
 */
#ifndef ESP_SELECTOR_FEATURES_H
#define ESP_SELECTOR_FEATURES_H

#include "kernels/kernels.h"

enum esp_feature {
    ESP_FEATURE_ENTROPY_P,    /* entropy of p */
    ESP_FEATURE_ENTROPY_Q,    /* entropy of q */
    ESP_FEATURE_ENTROPY_ROOT, /* entropy of q_root */
    ESP_FEATURE_KL_PQ,        /* KL(p || q) */
    ESP_FEATURE_KL_QP,        /* KL(q || p) */
    ESP_FEATURE_DISTANCE,     /* L1 distance of p and q */
    ESP_FEATURE_LENGTH,       /* length of the text, in tokens */
    ESP_FEATURE_TEMPERATURE,
    ESP_FEATURE_TOP_P,
    ESP_FEATURE_TIME_Q, /* seconds that a draft pass with one row takes */
    ESP_FEATURE_TIME_P, /* seconds that a target pass with one row takes */
    ESP_SCALARS
};

/* Sets the first six features from distributions over n tokens. Logarithms are natural; in a
 * logarithm, a probability below 1e-9 is replaced by 1e-9, so that all values are finite. */
void esp_features_of(const float *p, const float *q, const float *q_root, int n,
                     float features[ESP_SCALARS]);

#endif
