/* decode_run.h - decodes a text alone, into a run (tui/model/run.h); and opens models whose
 * target takes as long as one wishes. For races and lessons. */
#ifndef ESP_DECODE_RUN_H
#define ESP_DECODE_RUN_H

#include "tui/model/run.h"

struct esp_decode_options {
    struct esp_session_options session; /* observer and user are replaced */
    const char *prompt;
    int tokens;   /* new ones at most */
    int practice; /* tokens that are written to another prompt before, and not kept: a drafter
                     that weighs costs knows them then, and processors are awake */
    /* Is called between iterations, with the share that is done; false: stop. NULL: goes on. */
    bool (*goes_on)(void *user, bool practice, double share);
    void *user;
};

/* Fills an empty run. Returns 0, also when stopped, or a negative status with a sentence. */
int esp_decode_run(struct esp_run *run, struct esp_engine *engine,
                   const struct esp_decode_options *options, char *err, size_t errlen);

/* Opens the models of `options` with a target that is made as large as it must be for a pass to
 * take about `seconds`, as far as memory allows; *took becomes what one takes. Calls the
 * progress of the options. */
int esp_engine_open_slow(struct esp_engine **engine, const struct esp_engine_options *options,
                         double seconds, double *took, char *err, size_t errlen);

#endif
