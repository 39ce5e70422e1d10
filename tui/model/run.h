/* run.h - what one session did, kept in memory: its text, its iterations, and its own clock.
 *
 * A race shows two of these side by side, and a lesson asks about one. A run is filled by the
 * events of a session while it decodes, or from a recording, and needs neither afterwards.
 *
 * The clock of a run is the sum of its iterations' stage times: what the decoding took, without
 * pauses between iterations (a pace, step mode, the turn of another session).
 *
 * One thread fills a run, another may look at it: both hold its lock meanwhile.
 */
#ifndef ESP_RUN_H
#define ESP_RUN_H

#include <pthread.h>

#include "sessions/iteration_copy.h"
#include "sessions/text_token.h"
#include "sessions/texts.h"

struct esp_run_step {
    double at;  /* seconds of the run's clock at its end */
    int tokens; /* of the text after it */
    struct esp_iteration_copy copy;
};

struct esp_run {
    pthread_mutex_t lock; /* of everything below */
    char drafter[ESP_SPEC_TEXT], verifier[ESP_SPEC_TEXT];
    char target[160], draft[160]; /* names; "": none */
    double temperature;
    struct esp_texts texts;
    struct esp_text_token *tokens; /* (token_count) the text, prompt included */
    int token_count, token_capacity;
    struct esp_run_step *steps; /* (step_count) one for each iteration */
    int step_count, step_capacity;
    char end[64];  /* why it ended; "": it did not say */
    bool complete; /* nothing more comes */
};

void esp_run_init(struct esp_run *run);
void esp_run_free(struct esp_run *run);
/* Forgets everything. */
void esp_run_clear(struct esp_run *run);

/* Takes an event of a session; texts of tokens are copied. Returns 0 or ESP_E_MEMORY. */
int esp_run_take(struct esp_run *run, const struct esp_event *event,
                 const struct esp_tokens *tokens);

/* Fills an empty run with a recording, from its start up to where its text was cleared, if it
 * was. A text that was shortened meanwhile ends the run there. Returns 0 or a negative status
 * with a sentence. */
int esp_run_read(struct esp_run *run, const char *path, char *err, size_t errlen);

/* The texts of the run's tokens. */
struct esp_tokens esp_run_tokens(struct esp_run *run);
/* Tokens of the text that no prompt brought. */
int esp_run_written(const struct esp_run *run);
/* Seconds of the whole run. */
double esp_run_seconds(const struct esp_run *run);
/* How many of its steps had ended after `seconds` of its clock. */
int esp_run_steps_at(const struct esp_run *run, double seconds);

#endif
