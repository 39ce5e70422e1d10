/* compatible.h - which acceptance rule is exact with which trees: the one place that knows. */
#ifndef ESP_COMPATIBLE_H
#define ESP_COMPATIBLE_H

#include "session.h"

/* With these settings, but this rule: does speculation keep what the model says? If not, why
 * not. */
enum esp_fit {
    ESP_FIT_LOSSLESS,
    ESP_FIT_GREEDY,  /* the rule is for temperature 0, and it is not 0 */
    ESP_FIT_RANDOM,  /* the rule draws at random, and the temperature is 0 */
    ESP_FIT_DRAWS,   /* it is exact only for children drawn in another way */
    ESP_FIT_PATHS,   /* it is exact only for a single path */
};

enum esp_fit esp_fit(const struct esp_settings *settings,
                     const struct esp_verifier_ops *verifier);

/* How the drafter draws children with these settings: of enum esp_draws. */
unsigned esp_draws_of(const struct esp_settings *settings);

/* Chooses the rule if the user did not, sets `lossy`, and refuses a rule that would change what
 * the model says, unless the user allowed it with lossy=allow. */
int esp_choose_rule(struct esp_settings *settings, char *err, size_t errlen);

#endif
