/* decode_run.h - runs sessions for races, comparisons and lessons: one session alone, or two in
 * lock step. It can fill a run (tui/model/run.h), and open models with a target that is
 * enlarged until a pass takes a given time. */
#ifndef ESP_DECODE_RUN_H
#define ESP_DECODE_RUN_H

#include "engine/compare.h"
#include "tui/model/run.h"

struct esp_decode_options {
    struct esp_session_options session; /* observer and user are replaced */
    const char *prompt;
    const struct esp_text_token *text; /* (text_count) the text to continue; NULL: `prompt` */
    int text_count;
    bool scores; /* iterations have scores (esp_session_score) */
    int tokens;  /* maximum number of new tokens */
    /* Warm-up: so many tokens are decoded from another prompt and dropped. After that, a
     * drafter that measures costs has measured them, and the processors run at full speed. */
    int practice;
    /* Called between iterations with the fraction that is done. Returns false to stop. May be
     * NULL. */
    bool (*goes_on)(void *user, bool practice, double share);
    void *user;
};

/* Continues the text of `session` by up to options->tokens. If `beside` is not NULL, its
 * second session decodes in lock step. `practice` is passed to goes_on(). Returns 0 (also if
 * stopped) or a negative status with a message. */
int esp_decode_on(struct esp_session *session, struct esp_compare *beside,
                  const struct esp_decode_options *options, bool practice, char *err,
                  size_t errlen);

/* Fills an empty run. Returns 0 (also if stopped) or a negative status with a message. */
int esp_decode_run(struct esp_run *run, struct esp_engine *engine,
                   const struct esp_decode_options *options, char *err, size_t errlen);

/* Opens the models of `options` with a target that is enlarged until a pass takes about
 * `seconds`, as far as memory allows. Sets *took to the measured seconds. Calls the options'
 * progress function. */
int esp_engine_open_slow(struct esp_engine **engine, const struct esp_engine_options *options,
                         double seconds, double *took, char *err, size_t errlen);

#endif
