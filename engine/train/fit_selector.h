/* fit_selector.h - from samples to a selector for one verifier. */
#ifndef ESP_FIT_SELECTOR_H
#define ESP_FIT_SELECTOR_H

#include "engine/selector/selector.h"
#include "engine/train/sample_file.h"
#include "engine/train/train_selector.h"

struct esp_selector_fit {
    const struct esp_sample_file *samples;
    struct esp_sample_layout layout;
    int rule; /* number of the verifier among those of the samples */
    const struct esp_pass_times *times;
    enum esp_goal goal; /* of ESP_GOAL_TOKENS every action counts as equally long */
    const struct esp_selector_training *training;
};

/* Trains; esp_selector_open() has been called, and all but rule and pair is set. The samples of
 * each eighth group of pieces are kept apart. */
int esp_selector_fit(const struct esp_selector_fit *fit, struct esp_selector *selector);

/* Compares the prepared selector with static actions on the samples kept apart, and reports to
 * training->result: each setting, then all of them. */
int esp_selector_compare(const struct esp_selector_fit *fit,
                         const struct esp_selector *selector);

#endif
