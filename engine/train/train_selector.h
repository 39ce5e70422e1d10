/* train_selector.h - trains selectors of (K, L1, L2) for drafter nde: `espalier train
 * selector`.
 *
 * Three steps: (1) passes are timed; (2) samples are made, which takes most of the time, and
 * stored in OUTPUT.samples after each piece; (3) a network is trained for each verifier and
 * written. Samples serve every goal. An interrupted run goes on where it was if it is started
 * again with the same models, text, verifiers and seed, and ends with the same files to the
 * last bit: step 3 is repeated from its beginning, since it takes a minute.
 */
#ifndef ESP_TRAIN_SELECTOR_H
#define ESP_TRAIN_SELECTOR_H

#include "engine/espalier.h"

enum esp_train_step { ESP_TRAIN_TIMES, ESP_TRAIN_SAMPLES, ESP_TRAIN_NETWORK };

struct esp_selector_progress {
    enum esp_train_step step;
    const char *rule;      /* the verifier whose network is trained, or NULL */
    int done, total;       /* pieces, or epochs */
    double loss, held_out; /* of the last epoch: the loss; tokens per second over those of the
                              best static action, on samples kept apart. NaN: not known. */
};

/* What a selector does on the samples kept apart, for one sampling setting or all (the last).
 */
struct esp_selector_result {
    const char *rule;
    double temperature, top_p; /* 0: all settings */
    int samples;
    char fastest[40], most[40]; /* the static actions with most tokens per second, and per
                                   iteration, on the samples trained on */
    double tokens, fastest_tokens,
        most_tokens; /* per iteration, of the selector and of these */
    double speed;    /* tokens per second over those of the fastest static action */
};

struct esp_selector_training {
    struct esp_engine *engine; /* with a draft model */
    const char *rules;         /* names of verifiers, divided by commas */
    const char *text;          /* (length) bytes to continue pieces of */
    size_t length;
    int pieces, epochs;
    const char *goal; /* "speed" (NULL is that), "tokens" or "cheap-rows": see selector.h */
    uint64_t seed;
    const char *output; /* a file; a folder for several verifiers; NULL: beside the target */
    /* Called often; returns false to stop with ESP_E_CANCELLED. */
    bool (*progress)(void *user, const struct esp_selector_progress *progress);
    void (*result)(void *user, const struct esp_selector_result *result);
    void *user;
};

/* Returns 0 or a negative status with a sentence. */
int esp_train_selectors(const struct esp_selector_training *training, char *err, size_t errlen);

/* Writes the path of the file with samples. False: it is too long. */
bool esp_selector_samples_path(const struct esp_selector_training *training, char *path,
                               size_t size);

#endif
