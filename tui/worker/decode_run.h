/* decode_run.h - runs sessions for races, comparisons and lessons: a single session, or two in
 * lock step. It can store a session in a run (tui/model/run.h). It can also open models with a
 * target that is enlarged until a pass takes a given time. */
#ifndef ESP_DECODE_RUN_H
#define ESP_DECODE_RUN_H

#include "engine/compare.h"
#include "tui/model/run.h"

struct esp_decode_options {
    struct esp_session_options session; /* its observer and user are replaced */
    const char *prompt;
    const struct esp_text_token *text; /* (text_count) text to continue; NULL: `prompt` */
    int text_count;
    bool scores; /* store the scores of tokens (esp_session_score) */
    int tokens;  /* largest number of new tokens */
    /* Number of tokens for warming up. They are generated after another prompt, and not used.
     * After that, a drafter that measures costs has measured them, and the processors run at
     * full speed. */
    int practice;
    /* Called between iterations with the fraction that is done. If it returns false, decoding
     * stops. Can be NULL. */
    bool (*goes_on)(void *user, bool practice, double share);
    void *user;
};

/* Continues the text of `session` by at most options->tokens tokens. If `beside` is not NULL,
 * its second session decodes in lock step. `practice` is passed to goes_on(). Returns 0, or a
 * negative status with a message. It is not an error if goes_on() stops the decoding. */
int esp_decode_on(struct esp_session *session, struct esp_compare *beside,
                  const struct esp_decode_options *options, bool practice, char *err,
                  size_t errlen);

/* Decodes a text and stores it in an empty run. Returns 0, or a negative status with a message.
 * It is not an error if goes_on() stops the decoding. */
int esp_decode_run(struct esp_run *run, struct esp_engine *engine,
                   const struct esp_decode_options *options, char *err, size_t errlen);

/* Opens the models of `options`. Enlarges the target until a pass takes about `seconds`, or
 * until memory is full. Sets *took to the measured seconds of a pass. Calls the progress
 * function of the options. */
int esp_engine_open_slow(struct esp_engine **engine, const struct esp_engine_options *options,
                         double seconds, double *took, char *err, size_t errlen);

#endif
