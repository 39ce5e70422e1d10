/* selector_features.h - what the selector looks at besides hidden states
 * (delayed-tree-expansion, app. E).
 *
 * p and q are the distributions after the token before the root (both have seen everything but
 * the root), q_root is the draft's after the root. All are as the text is sampled, tempered.
 */
#ifndef ESP_SELECTOR_FEATURES_H
#define ESP_SELECTOR_FEATURES_H

#include "kernels/kernels.h"

#define ESP_FEATURES(X)                                                                        \
    X(ENTROPY_P, "entropy of the target before the root")                                      \
    X(ENTROPY_Q, "entropy of the draft before the root")                                       \
    X(ENTROPY_ROOT, "entropy of the draft at the root")                                        \
    X(KL_PQ, "KL of the draft from the target")                                                \
    X(KL_QP, "KL of the target from the draft")                                                \
    X(DISTANCE, "distance of target and draft")                                                \
    X(LENGTH, "length of the text")                                                            \
    X(TEMPERATURE, "temperature")                                                              \
    X(TOP_P, "top-p")                                                                          \
    X(TIME_Q, "time of a draft pass")                                                          \
    X(TIME_P, "time of a target pass")

enum esp_feature {
#define X(name, text) ESP_FEATURE_##name,
    ESP_FEATURES(X)
#undef X
        ESP_SCALARS
};

const char *esp_feature_text(int feature);

/* Sets the first six features from distributions over n tokens. Logarithms are natural; a
 * probability below 1e-9 counts as 1e-9 in a logarithm, so that all values are finite. */
void esp_features_of(const float *p, const float *q, const float *q_root, int n,
                     float features[ESP_SCALARS]);

#endif
