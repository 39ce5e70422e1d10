/* fit_selector.h - trains a selector for one verifier from samples. */
#ifndef ESP_FIT_SELECTOR_H
#define ESP_FIT_SELECTOR_H

#include "engine/selector/selector.h"
#include "engine/train/sample_file.h"
#include "engine/train/train_selector.h"

struct esp_selector_fit {
    const struct esp_sample_file *samples;
    struct esp_sample_layout layout;
    int rule; /* index of the verifier in the samples' list of verifiers */
    const struct esp_pass_times *times;
    enum esp_goal goal; /* with ESP_GOAL_TOKENS, all actions are assumed to take the same
                           time */
    const struct esp_selector_training *training;
};

/* Trains the selector and prepares it for use. The caller must have opened the selector with
 * esp_selector_open() and have set the members that identify it. The samples of every eighth
 * group of pieces are held out. On these samples the selector is compared with static actions.
 * training->result is called once for each sampling setting, then once for all settings. */
int esp_selector_fit(const struct esp_selector_fit *fit, struct esp_selector *selector);

#endif
