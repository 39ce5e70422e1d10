/* selector_features.h - what the selector looks at besides hidden states
 * (delayed-tree-expansion, app. E).
 *
 * p and q are the distributions after the token before the root (both have seen everything but
 * the root), q_root is the draft's after the root. All are as the text is sampled, tempered.
 */
#ifndef ESP_SELECTOR_FEATURES_H
#define ESP_SELECTOR_FEATURES_H

#include "kernels/kernels.h"

enum esp_feature {
    ESP_FEATURE_ENTROPY_P,    /* of the target before the root */
    ESP_FEATURE_ENTROPY_Q,    /* of the draft before the root */
    ESP_FEATURE_ENTROPY_ROOT, /* of the draft at the root */
    ESP_FEATURE_KL_PQ,        /* of the draft from the target */
    ESP_FEATURE_KL_QP,        /* of the target from the draft */
    ESP_FEATURE_DISTANCE,     /* of target and draft */
    ESP_FEATURE_LENGTH,       /* of the text */
    ESP_FEATURE_TEMPERATURE,
    ESP_FEATURE_TOP_P,
    ESP_FEATURE_TIME_Q, /* of a draft pass */
    ESP_FEATURE_TIME_P, /* of a target pass */
    ESP_SCALARS
};

/* Sets the first six features from distributions over n tokens. Logarithms are natural; a
 * probability below 1e-9 counts as 1e-9 in a logarithm, so that all values are finite. */
void esp_features_of(const float *p, const float *q, const float *q_root, int n,
                     float features[ESP_SCALARS]);

#endif
