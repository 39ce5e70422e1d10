/* train_selector.h - trains selectors, which choose (K, L1, L2) for drafter nde: `espalier
 * train selector`.
 *
 * Training has three steps. (1) Passes are timed. (2) Samples are made, and stored in
 * OUTPUT.samples after each piece. This step takes most of the time. (3) A network is trained
 * for each verifier and written. The same samples are used for every goal. A run that was
 * interrupted in step 2 continues if it is started again with the same models, text, verifiers
 * and seed, and gives bit-identical files. Step 3 is repeated from its beginning, because it
 * only takes a minute.
 */
#ifndef ESP_TRAIN_SELECTOR_H
#define ESP_TRAIN_SELECTOR_H

#include "engine/espalier.h"

enum esp_train_step { ESP_TRAIN_TIMES, ESP_TRAIN_SAMPLES, ESP_TRAIN_NETWORK };

struct esp_selector_progress {
    enum esp_train_step step;
    const char *rule; /* the verifier for which a network is trained, or NULL */
    int done, total;  /* number of pieces of text, or of epochs */
    /* The loss after the last epoch, and the speed on held-out samples: tokens per second
     * divided by the tokens per second of the best static action. NaN means not known. */
    double loss, held_out;
};

/* Describes how good a selector is on the held-out samples of one sampling setting. The last
 * result is for all settings together. */
struct esp_selector_result {
    const char *rule;
    double temperature, top_p; /* the sampling setting; 0 means all settings */
    int samples;
    /* The static actions with the most tokens per second, and with the most tokens per
     * iteration, on the training samples. */
    char fastest[40], most[40];
    /* Tokens per iteration of the selector and of the two actions above. */
    double tokens, fastest_tokens, most_tokens;
    double speed; /* tokens per second, relative to the fastest static action */
};

struct esp_selector_training {
    struct esp_engine *engine; /* must have a draft model */
    const char *rules;         /* names of verifiers, separated by commas */
    const char *text;          /* (length) bytes; the target continues pieces of this text */
    size_t length;
    int pieces, epochs;
    const char *goal; /* "speed" (or NULL), "tokens" or "cheap-rows": see selector.h */
    uint64_t seed;
    const char *output; /* a file; for several verifiers a folder; NULL: next to the target */
    /* Called often; returns false to stop with ESP_E_CANCELLED. */
    bool (*progress)(void *user, const struct esp_selector_progress *progress);
    void (*result)(void *user, const struct esp_selector_result *result);
    void *user;
};

/* Trains a selector for each verifier and writes them. Returns 0, or a negative status with a
 * sentence in err. There is no sentence if the training was cancelled. */
int esp_train_selectors(const struct esp_selector_training *training, char *err, size_t errlen);

/* Writes the path of the file of samples. Returns false if it is too long. */
bool esp_selector_samples_path(const struct esp_selector_training *training, char *path,
                               size_t size);

#endif
