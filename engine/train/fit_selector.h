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

/* Trains and prepares; esp_selector_open() has been called, and all but rule and pair is set.
 * The samples of each eighth group of pieces are kept apart. On these the selector is compared
 * with static actions, and training->result gets each setting, then all of them. */
int esp_selector_fit(const struct esp_selector_fit *fit, struct esp_selector *selector);

#endif
